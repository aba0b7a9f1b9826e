#include "app/main/driver.h"

#include <sys/epoll.h>
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

// epoll waits whole milliseconds: rounded up, so that a deadline has passed when we wake.
int wait_ms(Instant now, Instant deadline) {
  if (deadline <= now) return 0;
  if (deadline == never) return -1;
  constexpr int64_t longest_ms = 60'000;
  return static_cast<int>(std::min<int64_t>(longest_ms, (deadline - now).count() / 1'000'000 + 1));
}

}  // namespace

Driver::Driver() {
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

void Driver::run(LoopUser& user) {
  bool interrupted = false;
  while (user.turn(now())) {
    std::array<epoll_event, 16> events{};
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms(now(), user.next_deadline()));
    CHECK(count >= 0 || errno == EINTR);
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      const bool ends = number != SIGUSR1 && number != SIGHUP;
      if (ends && interrupted) _exit(exit_code(ErrorKind::interrupted));
      interrupted = interrupted || ends;
      user.on_signal(number);
    }
  }
}

}  // namespace ccixfer::program
