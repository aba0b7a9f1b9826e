// Waits for many descriptors, a deadline and other threads with one epoll descriptor, for everybody in a process who has to wait:
// the networks of several endpoints, and the loop itself. Each of them has a WatchList: the descriptors that it watches, what
// became ready of them, and when it wants to be called again. The waker asks the kernel once for all lists, and each list keeps
// what it was told until its owner takes it, so that an edge is never lost.
//
// A loop waits in one of two ways:
// - Waits::inside, with wait(): no timer is ever set, because the wait itself is given the deadline, and what a wait learned is
//   what the lists report next. One system call a wait, however many lists there are.
// - Waits::for_handle, on os_handle(), which is readable when a list has something to take or a deadline of arm() has come. It
//   costs a timer that is set anew, and is for loops of somebody else.
//
// Threads: one, but for WakeHandle::wake. Bounds: events_per_batch_max events a call; what is ready besides comes with the next.
// Errors: create: network, with the system's words (no descriptor is left).
#pragma once
#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/base/time.h"
#include "core/host/descriptor.h"

namespace ccixfer::host {

inline constexpr int events_per_batch_max = 256;

// Wakes the loop from any thread, also after the waker is gone. Movable.
class WakeHandle {
 public:
  explicit WakeHandle(int event_descriptor);  // it is duplicated
  void wake() const;
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(event_); }  // false: no descriptor was left for it

 private:
  Descriptor event_;
};

class WatchList;

enum class Waits : uint8_t { inside, for_handle };

class Waker {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Waker>> create(Waits waits);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Waits::inside only. Until a list has something to take, a deadline of a list or `until` has come, or a signal was handled.
  // Deadlines are met to the millisecond above. Returns at once, without asking the kernel, when something waits to be taken or the
  // time has come.
  void wait(Instant now, Instant until);
  [[nodiscard]] int os_handle() const { return epoll_.get(); }

 private:
  friend class WatchList;
  struct Watched {
    WatchList* list = nullptr;
    uint64_t token = 0;
    int fd = -1;
    uint32_t ready = 0;  // events that its list has not taken
  };
  explicit Waker(Waits waits) : waits_(waits) {}
  [[nodiscard]] bool watch(int fd, uint64_t data, uint32_t events) const;
  void gather(int timeout_ms);
  void told(uint64_t data, uint32_t events);
  void read_clock(Instant now);
  void poke();  // the OS handle becomes readable
  void set_timer();

  const Waits waits_;
  Descriptor epoll_, timer_, event_;
  std::vector<WatchList*> lists_;
  NamedSlots<Watched> watched_;  // in epoll's 64 bits is its packed name
  std::array<epoll_event, events_per_batch_max> batch_;
  uint64_t batches_ = 0;      // how often the kernel was asked
  size_t to_take_ = 0;        // of all lists: descriptors that are ready, and wakes
  uint32_t asking_ = 0;       // lists whose look ever asked the kernel
  Instant now_{};             // of the last look, which may be long ago; the time of a test is not the clock's
  Duration clock_{};          // what CLOCK_MONOTONIC said then
  Instant timer_at_ = never;  // of the timerfd; never: not set
  bool poked_ = false;        // since the last look
};

// What is watched, until it is removed. The name of one that was removed finds nothing.
using WatchId = SlotName;

struct Ready {
  uint64_t token = 0;
  uint32_t events = 0;  // EPOLLIN ..., all that came since it was taken last
};

// Its descriptors are removed or closed before it ends. What is ready of a descriptor that was removed is never reported.
class WatchList {
 public:
  explicit WatchList(std::shared_ptr<Waker> waker);
  ~WatchList();
  WatchList(const WatchList&) = delete;
  WatchList& operator=(const WatchList&) = delete;

  // `events` as of epoll_ctl(2): EPOLLIN, EPOLLOUT, EPOLLET ... nullopt: errno says why.
  [[nodiscard]] std::optional<WatchId> add(int fd, uint64_t token, uint32_t events);
  bool remove(WatchId id);  // before the descriptor is closed. False: errno says why, and it is watched still
  void closed(WatchId id);  // the same without a system call, for one that is closed now: the kernel forgets it by itself

  // Asks the kernel what is ready without waiting, unless a wait or another list has asked since this list did.
  void look(Instant now);
  // This list alone asks, in a loop that waits inside the waker. Then nobody else depends on that it asks each time.
  [[nodiscard]] bool looks_alone() const;
  [[nodiscard]] bool has_news() const;        // something to take, or the kernel was asked since the last look
  [[nodiscard]] std::optional<Ready> next();  // takes one; nullopt: there is none
  // For another thread to wake the loop; woken() then tells this list, once.
  [[nodiscard]] WakeHandle wake_handle();
  [[nodiscard]] bool woken();
  // In place of its last deadline: a wait ends at `when`, or the OS handle is readable from then on. In the past: at once.
  void arm(Instant when);
  // For what the kernel does not see (memory that is shared with another process): asked each time before anybody sleeps, which is
  // in each wait(), or in each arm() where the loop waits on the OS handle. True: from now on a descriptor of this list becomes
  // ready when there is news. False: there is news, and nobody sleeps.
  void ask_before_sleep(std::function<bool()> may_sleep) { may_sleep_ = std::move(may_sleep); }

  [[nodiscard]] const Waker& waker() const { return *waker_; }

 private:
  friend class Waker;
  [[nodiscard]] Waker::Watched* find(WatchId id) const;
  void forget(uint32_t index);
  std::shared_ptr<Waker> waker_;
  std::function<bool()> may_sleep_;
  RingBuffer<uint32_t> queue_;  // indices of watched_; one whose `ready` is 0, or which is another list's, was removed
  Instant deadline_ = never;
  uint64_t batches_seen_ = 0;
  bool asks_ = false;
  bool wants_wakes_ = false;
  bool woken_ = false;
};

}  // namespace ccixfer::host
