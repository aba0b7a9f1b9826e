// The buffers that puts have filled: those that nobody has looked at yet, in the order in which
// they came, and how many are away from the pool altogether, those that jobs write from included. A
// session may hold only its part of the pool, so it has to know.
#pragma once
#include <cstdint>
#include <utility>

#include "app/recv/lanes.h"
#include "core/base/invariant.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::recv {

class Inbox {
 public:
  void add(ReceivedSegment arrival) {
    ++held_;
    arrivals_.push_back(std::move(arrival));
  }
  [[nodiscard]] bool empty() const { return arrivals_.empty(); }
  // The first one that nobody has looked at. It counts as held until it is released.
  [[nodiscard]] ReceivedSegment take() {
    invariant(!arrivals_.empty(), "a buffer is waiting");
    ReceivedSegment arrival = std::move(arrivals_.front());
    arrivals_.drop_front();
    return arrival;
  }
  // Gives the buffer back to the pool.
  void release(ReceivedSegment& arrival) {
    invariant(held_ > 0, "a buffer is held");
    arrival.buffer.reset();
    --held_;
  }
  [[nodiscard]] uint32_t held() const { return held_; }

 private:
  RingBuffer<ReceivedSegment> arrivals_;
  uint32_t held_ = 0;
};

}  // namespace ccixfer::recv
