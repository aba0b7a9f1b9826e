#include "app/main/driver.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "core/base/check.h"
#include "core/base/result.h"
#include "core/host/clock.h"

namespace ccixfer::program {
namespace {

constexpr uint32_t spins_per_signal_check = 1024;

// epoll waits whole milliseconds: rounded up, so that a deadline has passed when we wake.
int wait_ms(Instant now, Instant deadline) {
  if (deadline <= now) return 0;
  if (deadline == never) return -1;
  constexpr int64_t longest_ms = 60'000;
  return static_cast<int>(std::min<int64_t>(longest_ms, (deadline - now).count() / 1'000'000 + 1));
}

// As many descriptors as the administrator allows: a connection takes one, and the 1,024 of a login shell are for programs that
// use select(2), which we do not.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace

Driver::Driver() {
  raise_open_files();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  sigaction(SIGXFSZ, &ignore, nullptr);  // a write beyond RLIMIT_FSIZE is an error of that write
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  CHECK(signals_ >= 0 && epoll_ >= 0);
  watch(signals_);
}

void Driver::take_hangups() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) sigaddset(&set, number);
  CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  CHECK(signalfd(signals_, &set, 0) == signals_);
}

void Driver::release_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM}) sigaddset(&set, number);
  CHECK(sigprocmask(SIG_UNBLOCK, &set, nullptr) == 0);
}

Driver::~Driver() {
  close(signals_);
  close(epoll_);
}

Instant Driver::now() const { return host::SystemClock().now(); }

void Driver::watch(int fd) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0);
}

void Driver::watch(cci::Endpoint& endpoint) {
  CHECK(endpoint_ == nullptr);
  if (endpoint.adopt(epoll_)) {
    endpoint_ = &endpoint;
  } else {
    watch(endpoint.os_handle());
  }
}

void Driver::run(LoopHandler& handler) {
  interrupted_ = false;
  while (handler.turn(now())) {
    if (wait(handler)) take_signals(handler);
  }
}

// Until there is something to do, unless the handler spins; true: there may be signals.
bool Driver::wait(const LoopHandler& handler) {
  const bool spins = handler.spins();
  if (endpoint_ != nullptr) return spins ? endpoint_->wait({}, {}) : endpoint_->wait(now(), handler.next_deadline());
  if (spins) return ++spins_ % spins_per_signal_check == 0;
  std::array<epoll_event, 16> events{};
  const Instant deadline = handler.next_deadline();
  const int count =
      epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), deadline == never ? -1 : wait_ms(now(), deadline));
  CHECK(count >= 0 || errno == EINTR);
  return std::any_of(events.begin(), events.begin() + std::max(count, 0),
                     [this](const epoll_event& event) { return event.data.fd == signals_; });
}

void Driver::at_abrupt_end(std::function<void()> action) { at_abrupt_end_ = std::move(action); }

void Driver::take_signals(LoopHandler& handler) {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    const bool ends = number != SIGUSR1 && number != SIGHUP;
    if (ends && interrupted_) {
      if (at_abrupt_end_) at_abrupt_end_();
      _exit(exit_code(ErrorKind::interrupted));
    }
    interrupted_ = interrupted_ || ends;
    handler.on_signal(number, now());
  }
}

}  // namespace ccixfer::program
