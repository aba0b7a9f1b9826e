// Messages that were sent behind a fenced RMA operation. They join the queue of messages once every fence before them is passed;
// messages that were sent before the fence are among what the fence waits for. Pure; single-threaded. Source: CCI §III.C.
#pragma once
#include <memory>
#include <utility>

#include "core/base/ring_buffer.h"
#include "core/base/time.h"

namespace ccixfer::connection {

template <typename Message>
class FencedMessages {
 public:
  [[nodiscard]] bool empty() const { return waiting_ == nullptr || waiting_->empty(); }
  [[nodiscard]] size_t size() const { return waiting_ == nullptr ? 0 : waiting_->size(); }
  // `operations_before`: RMA operations that were issued before it.
  void push(uint64_t token, Message message, Duration timeout, uint64_t operations_before) {
    if (waiting_ == nullptr) waiting_ = std::make_unique<RingBuffer<Waiting>>();
    waiting_->push_back({token, std::move(message), timeout, operations_before});
  }
  // `passed(operations_before)`: no fence among so many operations is still ahead. `send(token, message, timeout)`.
  template <typename Passed, typename Send>
  void release(const Passed& passed, const Send& send) {
    while (!empty() && passed(waiting_->front().operations_before)) {
      Waiting next = waiting_->pop_front();
      send(next.token, std::move(next.message), next.timeout);
    }
    if (empty()) waiting_.reset();
  }
  // The connection is over. `ended(token)`, in the order of issue.
  template <typename Ended>
  void fail_all(const Ended& ended) {
    while (!empty()) ended(waiting_->pop_front().token);
    waiting_.reset();
  }

 private:
  struct Waiting {
    uint64_t token = 0;
    Message message;
    Duration timeout = forever;
    uint64_t operations_before = 0;
  };
  std::unique_ptr<RingBuffer<Waiting>> waiting_;  // nullptr nearly always: an idle connection has none
};

}  // namespace ccixfer::connection
