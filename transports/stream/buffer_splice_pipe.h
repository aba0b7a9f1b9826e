// A splice pipe in memory, for networks that are simulated: bounded, so that its user meets a full one.
#pragma once
#include <algorithm>
#include <vector>

#include "core/base/invariant.h"
#include "core/ports/splice_pipe.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::stream {

class BufferSplicePipe final : public ports::SplicePipe {
 public:
  explicit BufferSplicePipe(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  [[nodiscard]] size_t held_bytes() const override { return bytes_.size() - taken_; }
  [[nodiscard]] size_t room_bytes() const { return capacity_bytes_ - held_bytes(); }
  void unload(MutableBytes memory) override {
    std::copy_n(front(), held_bytes(), memory.begin());
    take(held_bytes());
  }
  void put(Bytes bytes) {
    invariant(bytes.size() <= room_bytes(), "bytes.size() <= room_bytes()");
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] const std::byte* front() const { return bytes_.data() + taken_; }
  void take(size_t count) {
    invariant(count <= held_bytes(), "count <= held_bytes()");
    taken_ += count;
    if (taken_ < bytes_.size()) return;
    bytes_.clear();
    taken_ = 0;
  }

 private:
  const size_t capacity_bytes_;
  std::vector<std::byte> bytes_;
  size_t taken_ = 0;
};

// What StreamNet::recv_to does, by its recv.
inline int64_t receive_to(StreamNet& net, StreamId id, BufferSplicePipe& splice_pipe, size_t size) {
  if (splice_pipe.room_bytes() == 0) return io_full;
  std::vector<std::byte> bytes(std::min(size, splice_pipe.room_bytes()));
  const IoSpan span{bytes.data(), bytes.size()};
  const int64_t n = net.recv(id, {&span, 1});
  if (n > 0) splice_pipe.put(Bytes(bytes).first(static_cast<size_t>(n)));
  return n;
}

}  // namespace ccixfer::stream
