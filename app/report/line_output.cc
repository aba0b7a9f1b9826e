#include "app/report/line_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace ccixfer::report {
namespace {

constexpr int look_every_ms = 100;
constexpr unsigned idle_looks_max = 50;

// A terminal that polls writable may take fewer bytes than we have, and block for the rest. Opened once more it has a mode of our
// own. -1: it is no terminal, or another account's.
int own_terminal(int fd) {
  if (isatty(fd) != 1) return -1;
  return ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

// A pipe that polls writable takes PIPE_BUF bytes without blocking (pipe(7)). Whole lines, where they fit: another output of ours
// may be the same pipe.
size_t piece_of(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text.size();
  const size_t line_end = text.rfind('\n', PIPE_BUF - 1);
  return line_end == std::string_view::npos ? PIPE_BUF : line_end + 1;
}

}  // namespace

LineOutput::LineOutput(int fd, std::function<bool()> told_to_end, AfterFailure after_failure)
    : own_(own_terminal(fd)),
      fd_(own_ >= 0 ? own_ : fd),
      told_to_end_(std::move(told_to_end)),
      after_failure_(after_failure),
      open_(fd >= 0) {}

LineOutput::~LineOutput() {
  if (own_ >= 0) ::close(own_);
}

void LineOutput::put(std::string_view text) {
  if (!open_) return;
  append(text);
  flush();
  while (open_ && is_full() && !is_told_to_end()) static_cast<void>(wait_and_write());
}

void LineOutput::append(std::string_view text) {
  if (std::exchange(is_cut_, false)) queue_ += '\n';
  queue_.append(text);
}

void LineOutput::line(std::string_view text) {
  if (open_) append(text);
  put("\n");
}

void LineOutput::flush() {
  if (open_ && !queue_.empty()) static_cast<void>(write_some());
}

void LineOutput::flush_all() {
  for (unsigned idle_looks = 0; open_ && !queue_.empty();) {
    idle_looks = wait_and_write() ? 0 : std::min(idle_looks + 1, idle_looks_max);
    if (idle_looks == idle_looks_max && is_told_to_end()) give_up(0);
  }
}

bool LineOutput::wait_and_write() {
  pollfd ready{fd_, POLLOUT, 0};
  const bool is_ready = ::poll(&ready, 1, look_every_ms) > 0;
  const bool wrote = is_ready && write_some();
  if (is_ready && open_ && !wrote) ::poll(nullptr, 0, look_every_ms);  // it has room, and too little
  return wrote;
}

bool LineOutput::write_some() {
  const size_t before = written_;
  while (written_ < queue_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, 0);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) break;
    const std::string_view left = std::string_view(queue_).substr(written_);
    const ssize_t wrote = ::write(fd_, left.data(), piece_of(left));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote <= 0) {
      give_up(wrote < 0 ? errno : EIO);
      return false;
    }
    written_ += static_cast<size_t>(wrote);
    is_line_ended_ = queue_[written_ - 1] == '\n';
  }
  const bool wrote = written_ > before;
  if (written_ == queue_.size() || written_ > (1u << 20)) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  return wrote;
}

void LineOutput::give_up(int error) {
  error_ = error;
  open_ = after_failure_ == AfterFailure::next;
  is_cut_ = !is_line_ended_;
  queue_.clear();
  written_ = 0;
}

}  // namespace ccixfer::report
