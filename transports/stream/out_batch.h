// What a connection has put together to go out and the network has not yet taken: a few frames, whose payloads stay where they are.
// Only connections with something to send have a batch.
#pragma once
#include <array>
#include <vector>

#include "core/base/invariant.h"
#include "core/reliability/message_window.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "core/wire/sealed_record.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

struct OutItem {
  enum class Type : uint8_t { control, message, write, read_reply };
  static constexpr size_t header_bytes_max =
      wire::sealed_overhead_bytes + wire::message_header_bytes + reliability::MessageBytes::short_bytes_max;
  static_assert(header_bytes_max >= wire::sealed_overhead_bytes + wire::rma_write_header_bytes);

  Type type = Type::control;
  bool sealed = false;  // it is, or begins with, a sealed record
  // Not control: those have all their bytes in OutBatch::control. A short message is behind its header, and counts as a part of it.
  std::array<std::byte, header_bytes_max> header;
  size_t header_bytes = 0;
  uint32_t slot = 0;          // write, read_reply
  uint64_t offset_bytes = 0;  // write, read_reply: of the chunk in the operation; control: in OutBatch::control
  size_t payload_bytes = 0;
  size_t done_bytes = 0;              // of header and payload together
  reliability::MessageBytes message;  // not a short one
  uint64_t flight = 0;                // message

  [[nodiscard]] size_t left_bytes() const { return header_bytes + payload_bytes - done_bytes; }
};

class OutBatch {
 public:
  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] bool full() const { return end_ == batch_items_max && first_ == 0; }
  [[nodiscard]] size_t count() const { return end_ - first_; }
  [[nodiscard]] size_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] OutItem& operator[](size_t index) { return items_[first_ + index]; }
  [[nodiscard]] OutItem& front() { return items_[first_]; }

  // A new item at the back; `commit` counts it once its sizes are set.
  OutItem& add() {
    if (end_ == batch_items_max) {
      for (size_t i = first_; i < end_; ++i) items_[i - first_] = std::move(items_[i]);
      end_ -= first_;
      first_ = 0;
    }
    invariant(end_ < batch_items_max, "room in the batch");
    OutItem& item = items_[end_++];
    item.header_bytes = item.payload_bytes = item.done_bytes = 0;
    item.sealed = false;
    return item;
  }
  void commit(const OutItem& item) { queued_bytes_ += item.left_bytes(); }
  void advance(OutItem& item, size_t bytes) {
    item.done_bytes += bytes;
    queued_bytes_ -= bytes;
  }
  void pop_front() {
    items_[first_++].message.elsewhere.reset();
    if (first_ == end_) clear();
  }
  // Forgets everything but an item of which the peer has seen a part. Answers how many sealed records are forgotten.
  size_t keep_begun() {
    size_t records = 0;
    while (end_ > first_ && items_[end_ - 1].done_bytes == 0) {
      records += items_[end_ - 1].sealed ? 1u : 0u;
      queued_bytes_ -= items_[end_ - 1].left_bytes();
      items_[--end_].message.elsewhere.reset();
    }
    if (first_ == end_) clear();
    return records;
  }
  void clear() {
    for (size_t i = first_; i < end_; ++i) items_[i].message.elsewhere.reset();
    first_ = end_ = queued_bytes_ = 0;
    control_.clear();
  }
  [[nodiscard]] std::vector<std::byte>& control() { return control_; }
  [[nodiscard]] size_t control_items() const {
    size_t count = 0;
    for (size_t i = first_; i < end_; ++i) count += items_[i].type == OutItem::Type::control ? 1u : 0u;
    return count;
  }

 private:
  std::array<OutItem, batch_items_max> items_;
  size_t first_ = 0;
  size_t end_ = 0;
  size_t queued_bytes_ = 0;
  std::vector<std::byte> control_;
};

}  // namespace ccixfer::stream
