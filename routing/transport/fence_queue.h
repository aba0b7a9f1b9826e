// Messages and RMA operations of a routed connection that wait behind a fence, in the order of the
// calls. The first of them may begin when all that it has to wait for has ended.
// Pure; single-threaded. Bounds: by the caller, who counts what waits. Source: CCI §III.C.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/ring_buffer.h"

namespace ccixfer::routing {

class FenceQueue {
 public:
  void push_message(uint64_t token, std::vector<std::byte> message) {
    waiting_.push_back({false, false, token, std::move(message)});
    ++messages_;
  }
  void push_operation(uint64_t number, bool fence) {
    waiting_.push_back({true, fence, number, {}});
    ++operations_;
  }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] uint32_t messages() const { return messages_; }
  [[nodiscard]] uint32_t operations() const { return operations_; }

  // `all_ended()`: nothing that began before is under way. Those that may begin are given to
  // `send(token, message)` and `start(number)`, and do not wait any more by then.
  template <typename AllEnded, typename Send, typename Start>
  void release(const AllEnded& all_ended, const Send& send, const Start& start) {
    while (!waiting_.empty()) {
      if (waiting_.front().fence && !all_ended()) return;
      const Waiting next = waiting_.pop_front();
      if (next.is_operation) {
        --operations_;
        start(next.name);
      } else {
        --messages_;
        send(next.name, next.message);
      }
    }
  }
  // The connection is over. `ended(token)` for each message; nothing waits any more.
  template <typename Ended>
  void end_all(const Ended& ended) {
    const RingBuffer<Waiting> gone = std::exchange(waiting_, {});
    messages_ = operations_ = 0;
    for (const Waiting& each : gone) {
      if (!each.is_operation) ended(each.name);
    }
  }

 private:
  struct Waiting {
    bool is_operation = false;
    bool fence = false;
    uint64_t name = 0;  // a message's token, an operation's number
    std::vector<std::byte> message;
  };
  RingBuffer<Waiting> waiting_;
  uint32_t messages_ = 0, operations_ = 0;
};

}  // namespace ccixfer::routing
