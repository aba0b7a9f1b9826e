#include "core/host/waker.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/host/clock.h"

namespace ccixfer::host {
namespace {

// In epoll's 64 bits: what is watched has its generation above its index, and generations begin with 1.
constexpr uint64_t timer_data = 1;
constexpr uint64_t event_data = 2;

void add_one(int event_descriptor) {
  const uint64_t one = 1;
  static_cast<void>(!write(event_descriptor, &one, sizeof one));  // full means readable already
}

// epoll waits whole milliseconds: rounded up, so that a deadline has passed when we wake.
int wait_ms(Duration left) {
  constexpr int64_t longest_ms = 60'000;
  return static_cast<int>(std::min(longest_ms, left.count() / 1'000'000 + 1));
}

}  // namespace

WakeHandle::WakeHandle(int event_descriptor) : event_(fcntl(event_descriptor, F_DUPFD_CLOEXEC, 0)) {}
void WakeHandle::wake() const { add_one(event_.get()); }

Result<std::shared_ptr<Waker>> Waker::create(Waits waits) {
  std::shared_ptr<Waker> waker(new Waker(waits));
  waker->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  waker->event_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (waits == Waits::for_handle) waker->timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  // Edge-triggered: neither needs to be read, because each write or expiry is an event of its own.
  const bool made = waker->epoll_ && waker->event_ && waker->watch(waker->event_.get(), event_data, EPOLLIN | EPOLLET) &&
                    (waits == Waits::inside || (waker->timer_ && waker->watch(waker->timer_.get(), timer_data, EPOLLIN | EPOLLET)));
  if (!made) return fail(ErrorKind::network, std::generic_category().message(errno));
  return waker;
}

Waker::~Waker() = default;

bool Waker::watch(int fd, uint64_t data, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Waker::wait(Instant now, Instant until) {
  CHECK(waits_ == Waits::inside);
  for (const WatchList* list : lists_) until = std::min(until, list->deadline_);
  if (to_take_ > 0 || until <= now) return;
  for (const WatchList* list : lists_) {
    if (list->may_sleep_ && !list->may_sleep_()) return;
  }
  gather(until == never ? -1 : wait_ms(until - now));
}

void Waker::gather(int timeout_ms) {
  const int count = epoll_wait(epoll_.get(), batch_.data(), events_per_batch_max, timeout_ms);
  CHECK(count >= 0 || errno == EINTR);
  ++batches_;
  for (int i = 0; i < count; ++i) told(batch_[static_cast<size_t>(i)].data.u64, batch_[static_cast<size_t>(i)].events);
}

void Waker::told(uint64_t data, uint32_t events) {
  if (data == timer_data) {
    timer_at_ = never;
  } else if (data == event_data) {
    for (WatchList* list : lists_) {
      if (!list->wants_wakes_ || std::exchange(list->woken_, true)) continue;
      ++to_take_;
    }
  } else {
    Watched* watched = watched_.find(WatchId::of(data));
    if (watched == nullptr) return;  // it was removed, and somebody has a duplicate of its descriptor
    if (watched->ready == 0) {
      watched->list->queue_.push_back(WatchId::of(data).index);
      ++to_take_;
    }
    watched->ready |= events;
  }
}

void Waker::read_clock(Instant now) {
  now_ = now;
  clock_ = SystemClock().now().time_since_epoch();
}

void Waker::poke() {
  if (std::exchange(poked_, true)) return;
  add_one(event_.get());
}

// A deadline that moved away leaves the timer as it is: one wakeup for nothing is cheaper than a call each turn.
void Waker::set_timer() {
  Instant at = never;
  for (const WatchList* list : lists_) at = std::min(at, list->deadline_);
  if (at <= now_) return poke();
  if (at == never || (timer_at_ > now_ && timer_at_ <= at)) return;
  const Duration when = clock_ + std::min<Duration>(at - now_, std::chrono::hours(24 * 365));
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(when.count() / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(when.count() % 1'000'000'000);
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0) timer_at_ = at;
}

WatchList::WatchList(std::shared_ptr<Waker> waker) : waker_(std::move(waker)) {
  CHECK(waker_ != nullptr);
  waker_->lists_.push_back(this);
}

WatchList::~WatchList() {
  for (uint32_t i = 0; i < waker_->watched_.size(); ++i) {
    if (waker_->watched_.is_live(i) && waker_->watched_[i].list == this) forget(i);
  }
  if (woken_) --waker_->to_take_;
  if (asks_) --waker_->asking_;
  std::erase(waker_->lists_, this);
}

Waker::Watched* WatchList::find(WatchId id) const {
  Waker::Watched* watched = waker_->watched_.find(id);
  return watched != nullptr && watched->list == this ? watched : nullptr;
}

std::optional<WatchId> WatchList::add(int fd, uint64_t token, uint32_t events) {
  const WatchId id = waker_->watched_.take();
  if (!waker_->watch(fd, id.packed(), events)) {
    waker_->watched_.release(id.index);
    return std::nullopt;
  }
  Waker::Watched& watched = waker_->watched_[id.index];
  watched.list = this;
  watched.token = token;
  watched.fd = fd;
  return id;
}

bool WatchList::remove(WatchId id) {
  const Waker::Watched* watched = find(id);
  if (watched == nullptr) return true;
  if (epoll_ctl(waker_->epoll_.get(), EPOLL_CTL_DEL, watched->fd, nullptr) != 0) return false;
  forget(id.index);
  return true;
}

void WatchList::closed(WatchId id) {
  if (find(id) != nullptr) forget(id.index);
}

void WatchList::forget(uint32_t index) {
  Waker::Watched& watched = waker_->watched_[index];
  if (std::exchange(watched.ready, 0) != 0) --waker_->to_take_;
  waker_->watched_.release(index);
}

void WatchList::look(Instant now) {
  if (waker_->waits_ == Waits::for_handle) waker_->read_clock(now);
  waker_->poked_ = false;
  if (batches_seen_ == waker_->batches_) {
    if (!std::exchange(asks_, true)) ++waker_->asking_;
    waker_->gather(0);
  }
  batches_seen_ = waker_->batches_;
}

bool WatchList::looks_alone() const { return waker_->waits_ == Waits::inside && waker_->asking_ == (asks_ ? 1u : 0u); }
bool WatchList::has_news() const { return !queue_.empty() || woken_ || batches_seen_ != waker_->batches_; }

std::optional<Ready> WatchList::next() {
  while (!queue_.empty()) {
    Waker::Watched& watched = waker_->watched_[queue_.pop_front()];
    if (watched.list != this || watched.ready == 0) continue;  // removed meanwhile
    --waker_->to_take_;
    return Ready{watched.token, std::exchange(watched.ready, 0)};
  }
  return std::nullopt;
}

WakeHandle WatchList::wake_handle() {
  wants_wakes_ = true;
  return WakeHandle(waker_->event_.get());
}

bool WatchList::woken() {
  if (!std::exchange(woken_, false)) return false;
  --waker_->to_take_;
  return true;
}

void WatchList::arm(Instant when) {
  deadline_ = when;
  if (waker_->waits_ == Waits::inside) return;
  if (may_sleep_ && !may_sleep_()) return waker_->poke();
  if (!queue_.empty() || woken_) return waker_->poke();  // another list's look has taken the edge from the kernel
  waker_->set_timer();
}

}  // namespace ccixfer::host
