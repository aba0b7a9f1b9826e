#include "app/metrics/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace ccixfer::metrics {

short Client::waits_for() const {
  // One that listens says nothing: what comes is its end.
  if (!out_.empty()) return POLLOUT;
  return wants_ == Next::status ? 0 : POLLIN;
}

bool Client::turn(Clock::time_point now, short ready) {
  // Of one that waits for our answer nothing is read, so that its end shows only so.
  if (wants_ == Next::status && out_.empty() && (ready & (POLLHUP | POLLERR)) != 0) return false;
  return (out_.empty() ? take(now) : true) && give(now);
}

// Until there is an answer, or none can be made here.
bool Client::take(Clock::time_point now) {
  std::array<char, 4096> bytes;
  while (out_.empty() && (wants_ == Next::more || listens_)) {
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0 || listens_) return false;
    if (!until_) until_ = now + request_time_max;
    wants_ = http_.received({bytes.data(), static_cast<size_t>(got)}, out_);
  }
  return true;
}

bool Client::give(Clock::time_point now) {
  while (!out_.empty()) {
    const ssize_t sent = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    out_.erase(0, static_cast<size_t>(sent));
  }
  if (wants_ == Next::end) return false;
  if (listens_) {
    until_.reset();
  } else if (wants_ == Next::more && http_.is_between_requests()) {
    until_ = now + request_time_max;  // for the next one
  }
  return true;
}

void Client::answer(std::string_view json) { wants_ = http_.answer_status(json, out_); }

void Client::begin_events() {
  listens_ = true;
  http_.begin_events(out_);
}

void Client::refuse_busy() {
  wants_ = Next::end;
  http_.refuse_busy(out_);
}

void Client::tell(const std::string& event, Clock::time_point now) {
  if (!listens_ || !out_.empty()) return;
  out_ = event;
  until_ = now + request_time_max;
}

}  // namespace ccixfer::metrics
