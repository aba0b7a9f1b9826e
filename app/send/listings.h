// The batches that the walk has listed and that wait until their records are announced, in the
// order of the walk. With --checksum a batch waits for its digests first: several batches are read
// at a time, and each is named by its number.
// Single-threaded; a job that reads digests has the batch for itself from start_digests() to
// digested().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "app/send/walk.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::send {

class Listings {
 public:
  void add(std::shared_ptr<WalkBatch> batch, bool needs_digests);
  // The first batch whose digests nobody reads yet; none: there is no such batch.
  [[nodiscard]] std::optional<uint64_t> next_without_digests() const;
  [[nodiscard]] std::shared_ptr<WalkBatch> start_digests(uint64_t number);
  void digested(uint64_t number);
  // The next record to announce and its texts, until pop() or add(). nullptr: there is none, or its
  // digests are still being read.
  [[nodiscard]] const WalkRecord* front() const;
  [[nodiscard]] std::string_view front_path() const;
  [[nodiscard]] std::string_view front_more() const;
  [[nodiscard]] const WalkBatch& front_batch() const { return *listings_.front().batch; }
  void pop();
  [[nodiscard]] size_t batches() const { return listings_.size(); }
  [[nodiscard]] uint32_t sources_announced() const { return sources_announced_; }  // all records of those before it are popped

 private:
  struct Listing {
    std::shared_ptr<WalkBatch> batch;
    size_t next = 0;    // record
    bool ready = true;  // digests are in
    bool digests_started = false;
  };
  void drop_announced();

  RingBuffer<Listing> listings_;
  uint64_t first_number_ = 0;  // of listings_.front()
  uint32_t sources_announced_ = 0;
};

}  // namespace ccixfer::send
