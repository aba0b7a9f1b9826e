#include "app/metrics/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace ccixfer::metrics {

using State = trust::WebTls::State;

Client::Client(host::Descriptor fd, const Site& site, Clock::time_point now, std::shared_ptr<const Guard> guard)
    : fd_(std::move(fd)),
      site_(&site),
      guard_(std::move(guard)),
      http_(site, guard_ ? &guard_->token : nullptr),
      until_(now + request_time_max) {
  if (guard_) tls_.emplace(guard_->tls);
}

short Client::waits_for() const {
  // One that listens says nothing: what comes is its end.
  if (!out_.empty()) return POLLOUT;
  return wants_ == Next::status ? 0 : POLLIN;
}

bool Client::turn(Clock::time_point now, short ready) {
  // Of one that waits for our answer nothing is read, so that its end shows only so.
  if (wants_ == Next::status && out_.empty() && (ready & (POLLHUP | POLLERR)) != 0) return false;
  // An answer that was sent whole may have another request behind it. Only so many: one that asks as fast as it is answered would
  // have the thread for ever.
  for (int answers = 0; answers < answers_a_turn; ++answers) {
    if (!give(now)) return false;
    if (!out_.empty()) return true;
    if (!take(now)) return false;
    if (out_.empty()) return true;
  }
  return give(now);
}

bool Client::has_more() const { return out_.empty() && wants_ == Next::more && http_.has_waiting(); }

void Client::give_up() {
  if (tls_ && !shook_hands_ && site_->refused != nullptr) site_->refused->add(Refused::no_tls);
}

// Until there is an answer, or none can be made here.
bool Client::take(Clock::time_point now) {
  std::array<char, 4096> bytes;
  while (out_.empty() && (wants_ == Next::more || listens_)) {
    if (http_.has_waiting()) {
      answer_next({});
      continue;
    }
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    if (!until_ && !listens_) until_ = now + request_time_max;
    if (!hear({bytes.data(), static_cast<size_t>(got)})) return false;
  }
  return true;
}

// What came from the socket. False: it is over at once.
bool Client::hear(std::string_view bytes) {
  std::string plain;
  State state = State::open;
  if (tls_) {
    state = tls_->received(bytes, plain, out_);
    bytes = plain;
    shook_hands_ = shook_hands_ || state == State::open;
  }
  if (listens_ && (!bytes.empty() || state == State::over)) return false;
  if (state == State::over) {
    give_up();
    wants_ = Next::end;  // once the alert is sent
    return !out_.empty();
  }
  if (!bytes.empty()) answer_next(bytes);
  return true;
}

void Client::answer_next(std::string_view bytes) {
  std::string answer;
  wants_ = http_.received(bytes, answer);
  answered_ = answered_ || !answer.empty();
  say(answer);
}

void Client::say(const std::string& plain) {
  if (!tls_) {
    out_ += plain;
    return;
  }
  tls_->say(plain, out_);
  if (wants_ == Next::end) tls_->end(out_);
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
  } else if (wants_ == Next::more && answered_ && http_.is_between_requests()) {
    until_ = now + request_time_max;  // for the next one
    answered_ = false;
  }
  return true;
}

void Client::answer(std::string_view json) {
  std::string text;
  wants_ = http_.answer_status(json, text);
  answered_ = true;
  say(text);
}

void Client::begin_events() {
  listens_ = true;
  std::string text;
  http_.begin_events(text);
  say(text);
}

void Client::refuse_busy() {
  wants_ = Next::end;
  std::string text;
  http_.refuse_busy(text);
  say(text);
}

void Client::tell(const std::string& event, Clock::time_point now) {
  if (!listens_ || !out_.empty()) return;
  say(event);
  until_ = now + request_time_max;
}

}  // namespace ccixfer::metrics
