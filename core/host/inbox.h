// What other threads ask the thread of a loop to do. In: calls, from any thread, which the loop
// makes in the order in which they came. Guarantees: post() never waits for the loop, and wakes it;
// what was posted before it looked is done when take() returns.
// Ownership: the inbox outlives all who post to it. Bounds: none of its own; who posts says how much.
// Threads: post() any, the rest one, that of the loop which waits in `waker`.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/host/waker.h"

namespace ccixfer::host {

class Inbox {
 public:
  using Call = std::function<void()>;
  explicit Inbox(std::shared_ptr<Waker> waker);
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void post(Call call);
  void take();      // makes the calls that are there, if the loop was woken for some
  void take_all();  // whether it was or not: when nobody posts any more

 private:
  WatchList watched_;
  const WakeHandle wake_;
  std::mutex mutex_;
  std::vector<Call> calls_;
};

}  // namespace ccixfer::host
