#include "app/main/turn_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <utility>

#include "core/base/check.h"
#include "core/base/result.h"
#include "core/host/clock.h"

namespace ccixfer::program {
namespace {

constexpr Duration late_by_itself = std::chrono::seconds(2);  // a busy host makes a turn late by less

// Tokens of the watch list.
constexpr uint64_t signals_token = 1;
constexpr uint64_t other_token = 2;  // it wakes the loop, and its owner looks at it in the turn

// As many descriptors as the administrator allows: a connection takes one, and the 1,024 of a login shell are for programs that
// use select(2), which we do not.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

}  // namespace

void let_writes_fail() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  sigaction(SIGXFSZ, &ignore, nullptr);  // beyond RLIMIT_FSIZE
}

bool is_ignored(int signal_number) {
  struct sigaction now {};
  return sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

TurnLoop::TurnLoop() : hangups_end_(!is_ignored(SIGHUP)) {
  raise_open_files();
  let_writes_fail();
  last_hangups_end_ = hangups_end_;
  sigset_t set = set_of({SIGINT, SIGTERM, SIGUSR1});
  if (hangups_end_) sigaddset(&set, SIGHUP);
  CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  auto waker = host::Waker::create(host::Waits::inside);
  if (!signals_ || !waker) {
    problem_ = Error{ErrorKind::file_io, fmt::format("this process cannot wait for anything: {}: give it descriptors and memory, "
                                                     "and try again",
                                                     std::strerror(errno))};
    return;
  }
  waker_ = std::move(*waker);
  watched_.emplace(waker_);
  CHECK(watched_->add(signals_.get(), signals_token, EPOLLIN));
}

void TurnLoop::take_hangups() {
  hangups_end_ = false;
  last_hangups_end_ = false;
  const sigset_t set = set_of({SIGINT, SIGTERM, SIGUSR1, SIGHUP});
  CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  CHECK(signalfd(signals_.get(), &set, 0) == signals_.get());
}

void TurnLoop::release_signals() {
  sigset_t set = set_of({SIGINT, SIGTERM});
  if (hangups_end_) sigaddset(&set, SIGHUP);
  // One that waits would end the process right here, before it has said how the command ended.
  const timespec at_once{};
  while (sigtimedwait(&set, nullptr, &at_once) > 0) interrupted_ = true;
  CHECK(sigprocmask(SIG_UNBLOCK, &set, nullptr) == 0);
}

unsigned TurnLoop::times_told_to_end() {
  class Nobody final : public LoopHandler {
   public:
    bool turn(Instant) override { return false; }
    [[nodiscard]] Instant next_deadline() const override { return never; }
    void on_signal(int, Instant) override {}
  } nobody;
  only_counts_ = true;
  take_signals(nobody);
  return told_again_ ? 2 : interrupted_ ? 1 : 0;
}

bool TurnLoop::is_told_to_end() {
  sigset_t pending;
  sigemptyset(&pending);
  if (sigpending(&pending) != 0) return false;
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         (last_hangups_end_ && sigismember(&pending, SIGHUP) == 1);
}

TurnLoop::~TurnLoop() = default;

Instant TurnLoop::now() const { return host::SystemClock().now(); }

void TurnLoop::watch(int fd) {
  if (fd < 0) return;
  CHECK(watched_->add(fd, other_token, EPOLLIN));
}

void TurnLoop::run(LoopHandler& handler) {
  interrupted_ = false;
  Instant due = never;  // when the loop is to be here again at the latest
  for (;;) {
    const Instant at = now();
    if (at > after(due, late_by_itself)) handler.stood_still();
    due = at;
    const bool goes_on = handler.turn(at);
    service_manager_.turn(at);
    if (!goes_on) return;
    if (wait(handler, due)) take_signals(handler);
  }
}

// Until there is something to do, unless the handler spins; true: there are signals.
bool TurnLoop::wait(const LoopHandler& handler, Instant& due) {
  const bool signals = take_ready();  // of the rest, the turn has seen what became ready during it
  if (!signals && !handler.spins()) {
    const Instant deadline = std::min(handler.next_deadline(), service_manager_.next_deadline());
    due = std::max(due, deadline);
    waker_->wait(now(), deadline);
  }
  if (watched_->looks_alone()) watched_->look(now());  // no network asks the kernel in the turns
  return take_ready() || signals;
}

bool TurnLoop::take_ready() {
  bool signals = false;
  while (const auto ready = watched_->next()) signals = signals || ready->token == signals_token;
  return signals;
}

void TurnLoop::at_abrupt_end(std::function<void()> action) { at_abrupt_end_ = std::move(action); }

void TurnLoop::take_signals(LoopHandler& handler) {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (repeated_.is_repeated(number, info.ssi_code, static_cast<pid_t>(info.ssi_pid), now())) continue;
    const bool ends = number != SIGUSR1 && (number != SIGHUP || hangups_end_);
    const bool is_passed_on = info.ssi_code == SI_QUEUE && info.ssi_int == passed_on_mark;
    Came& came = came_[number];
    const unsigned before = std::max(came.passed_on, came.directly);
    ++(is_passed_on ? came.passed_on : came.directly);
    if (std::max(came.passed_on, came.directly) == before) continue;  // the other half of one that was taken
    if (number == SIGHUP && hangups_end_ && interrupted_) continue;   // the terminal's kernel and its shell each send one
    if (ends && interrupted_ && only_counts_) {
      told_again_ = true;
      continue;
    }
    if (ends && interrupted_) {
      if (at_abrupt_end_) at_abrupt_end_();
      _exit(exit_code(ErrorKind::interrupted));
    }
    interrupted_ = interrupted_ || ends;
    handler.on_signal(number, now());
  }
}

}  // namespace ccixfer::program
