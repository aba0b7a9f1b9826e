#include "app/report/event_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ccixfer::report {

void EventOutput::line(std::string_view text) {
  if (!open_) return;
  queue_.append(text).append(1, '\n');
  write_some(false);
  while (open_ && queue_.size() - written_ > event_bytes_queued_max) write_some(true);
}

void EventOutput::flush() {
  if (open_ && !queue_.empty()) write_some(false);
}

void EventOutput::flush_all() {
  while (open_ && !queue_.empty()) write_some(true);
}

// A pipe that polls writable takes PIPE_BUF bytes without blocking (pipe(7)).
void EventOutput::write_some(bool blocking) {
  while (written_ < queue_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, blocking ? -1 : 0);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) break;
    const size_t size = std::min<size_t>(queue_.size() - written_, PIPE_BUF);
    const ssize_t wrote = ::write(fd_, queue_.data() + written_, size);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (wrote <= 0) {
      error_ = wrote < 0 ? errno : EIO;
      open_ = false;
      queue_.clear();
      written_ = 0;
      return;
    }
    written_ += static_cast<size_t>(wrote);
    if (blocking) break;
  }
  if (written_ == queue_.size() || written_ > (1u << 20)) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

}  // namespace ccixfer::report
