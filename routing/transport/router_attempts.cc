#include "routing/transport/router_attempts.h"

#include <algorithm>
#include <utility>

#include "core/base/units.h"

namespace ccixfer::routing {

RouterAttempts::RouterAttempts(const ports::DialRequest& request) {
  request_.destination = request.uri;
  request_.role = request.role;
  request_.attribute = request.attribute;
  request_.data.assign(request.data.begin(), request.data.end());
  request_.timeout = request.timeout;
}

void RouterAttempts::begin(std::vector<std::string> routers, Instant now) {
  deadline_ = after(now, request_.timeout);
  left_ = std::move(routers);
}

bool RouterAttempts::next() {
  if (left_.empty()) return false;
  router_ = std::move(left_.back());
  left_.pop_back();
  pending_.reset();
  asked_at_.reset();
  return true;
}

Duration RouterAttempts::patience(Instant now) const {
  if (deadline_ == never) return router_dial_timeout;
  const Duration share = (deadline_ - now) / static_cast<int64_t>(left_.size() + 1);
  return std::max<Duration>(std::min<Duration>(router_dial_timeout, share), std::chrono::milliseconds(1));
}

ConnectRequest RouterAttempts::ask(Instant now) {
  asked_at_ = now;
  ConnectRequest request = request_;
  request.timeout = deadline_ == never ? forever : std::max<Duration>(deadline_ - now, std::chrono::milliseconds(1));
  return request;
}

Duration RouterAttempts::round_trip(Instant now) const { return std::max(now - *asked_at_, ports::round_trip_min); }

std::string RouterAttempts::of_router(std::string_view reason) const { return "router " + router_ + ": " + std::string(reason); }

void RouterAttempts::note(Told told, Status status, std::string_view reason) {
  if (told < told_) return;
  told_ = told;
  answer_ = {status, reason.empty() ? std::string(to_string(status)) : printable(reason)};
}

void RouterAttempts::note_unreachable(std::string_view reason) { note(Told::dead, Status::unreachable, of_router(reason)); }

void RouterAttempts::note_not_let_in(Status status, std::string_view reason) { note(Told::not_let_in, status, of_router(reason)); }

bool RouterAttempts::note_reply(const ConnectReply& reply) {
  const Told told = reply.status == Status::no_route      ? Told::no_way
                    : reply.status == Status::unreachable ? Told::no_answer
                                                          : Told::the_end;
  note(told, reply.status, reply.reason);
  return told != Told::the_end && !left_.empty();
}

void RouterAttempts::note_pending(ConnectPending pending) {
  pending.node = printable(pending.node);
  pending_ = std::move(pending);
}

std::string RouterAttempts::why_late() const {
  if (!answer_.reason.empty()) return answer_.reason;
  const ConnectPending pending = pending_.value_or(ConnectPending{router_, asked_at_.has_value()});
  return pending.node.empty() ? "no answer in time" : words_of(pending);
}

}  // namespace ccixfer::routing
