// The definitions of Engine. A driver includes this in one file and instantiates its engine there.
#pragma once
#include <algorithm>
#include <utility>

#include "core/base/invariant.h"
#include "core/base/log.h"
#include "transports/connection/engine.h"
#include "transports/connection/work.h"

namespace ccixfer::connection {

template <typename D, typename C>
Engine<D, C>::Engine(const ports::TransportOptions& options, uint32_t max_send_bytes, D& driver, Counters& counters)
    : options_(options), max_send_bytes_(max_send_bytes), driver_(driver), counters_(counters) {
  invariant(options_.connections_max > 0 && options_.pending_requests_max > 0, "room for a connection");
  invariant(options_.sends_in_flight_max > 0 && options_.rmas_in_flight_max > 0, "room for an operation");
}

template <typename D, typename C>
void Engine<D, C>::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  sink_ = &sink;
  target_ = &target;
}

// ---- What the core asks: noted for the next turn.

template <typename D, typename C>
Result<ports::ConnectionId> Engine<D, C>::dial(const ports::DialRequest& request) {
  if (request.attribute == ports::Attribute::multicast_send || request.attribute == ports::Attribute::multicast_receive) {
    return fail(ErrorKind::usage, "multicast is not implemented on this transport");
  }
  if (request.data.size() > ports::connect_data_bytes_max) return fail(ErrorKind::usage, "connect data longer than 1024 bytes");
  if (!has_room()) return fail(ErrorKind::network, "too many connections");
  const Result<uint64_t> name = driver_.dial(request.uri);
  if (!name) return tl::unexpected<Error>(name.error());
  C& c = *admit(State::dialling);
  c.dialler = true;
  c.uri = std::string(request.uri);
  c.role = request.role;
  c.attribute = request.attribute;
  c.asks_later = request.ahead;
  if (!request.data.empty()) {
    c.connect_data = std::make_unique<std::vector<std::byte>>(request.data.begin(), request.data.end());
  }
  driver_.dialling(c, *name);
  c.step.set(request.timeout);
  touch_from_above(c);
  return c.id;
}

template <typename D, typename C>
Status Engine<D, C>::ask(ports::ConnectionId id, Bytes data) {
  C* c = find(id);
  if (c == nullptr || c->cancelled) return Status::not_found;
  if (!c->asks_later || data.size() > ports::connect_data_bytes_max) return Status::invalid;
  c->connect_data = std::make_unique<std::vector<std::byte>>(data.begin(), data.end());
  c->asks_later = false;
  touch_from_above(*c);
  return Status::success;
}

template <typename D, typename C>
Status Engine<D, C>::accept(ports::ConnectionId id) {
  C* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->state != State::requested) return Status::invalid;
  driver_.say_accept(*c);
  set_state(*c, State::accepting);
  c->step.set(options_.handshake_timeout);
  touch_from_above(*c);
  return Status::success;
}

template <typename D, typename C>
Status Engine<D, C>::reject(ports::ConnectionId id, std::string_view reason) {
  C* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->state != State::requested) return Status::invalid;
  static_cast<void>(driver_.say_end(*c, {Parting::Kind::reject, Status::refused, reason}));
  begin_lingering(*c);
  touch_from_above(*c);
  return Status::success;
}

template <typename D, typename C>
void Engine<D, C>::disconnect(ports::ConnectionId id) {
  C* c = find(id);
  if (c == nullptr || c->cancelled || c->left) return;
  if (c->state == State::requested) {
    static_cast<void>(reject(id, "disconnected"));
    return;
  }
  if (is_dialling(c->state)) {
    c->cancelled = true;
  } else if (c->state == State::accepting || c->state == State::open) {
    c->left = true;
  } else {
    return;
  }
  touch_from_above(*c);
}

// Its operations end in the next turn, and their memory is free then, whatever the peer has not taken.
template <typename D, typename C>
void Engine<D, C>::abort(ports::ConnectionId id) {
  C* c = find(id);
  if (c == nullptr) return;
  if (!is_established(c->state)) return disconnect(id);
  c->left = c->cancelled = true;
  touch_from_above(*c);
}

template <typename D, typename C>
Status Engine<D, C>::why_not(const C* c) {
  if (c == nullptr) return Status::not_found;
  if (c->left || c->state == State::closing) return Status::disconnected;
  if (const auto* work = work_if_any(*c); work != nullptr && work->messages.peer_leaving()) return Status::disconnected;
  return c->state == State::open || c->state == State::accepting ? Status::success : Status::not_found;
}

template <typename D, typename C>
Status Engine<D, C>::send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token) {
  C* c = find(id);
  if (const Status status = why_not(c); status != Status::success) return status;
  size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  if (size > c->max_send_bytes) return Status::message_size;
  auto& work = work_of(*c);
  if (work.messages.in_queue() + work.fenced.size() >= work.messages.window()) return Status::no_buffers;
  if (work.fenced.empty() && !work.rma.fence_before(work.rma.issued())) {
    work.messages.push({false, token}, driver_.copy_message(parts), c->send_timeout);
    driver_.message_pushed(*c);
  } else {  // what the fence waits for wakes us
    work.fenced.push(token, driver_.copy_message(parts), c->send_timeout, work.rma.issued());
  }
  return Status::success;
}

template <typename D, typename C>
Status Engine<D, C>::rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token) {
  C* c = find(id);
  if (const Status status = why_not(c); status != Status::success) return status;
  if ((request.write ? request.source.size() : request.destination.size()) == 0 || c->is_unreliable()) return Status::invalid;
  if (request.has_completion_message && request.completion_message.size() > c->max_send_bytes) return Status::message_size;
  auto& work = work_of(*c);
  if (work.rma.full()) return Status::no_buffers;
  work.rma.push(request, token, work.messages.issued() + work.fenced.size());
  touch_from_above(*c);
  return Status::success;
}

template <typename D, typename C>
void Engine<D, C>::set_send_timeout(ports::ConnectionId id, Duration timeout) {
  if (C* c = find(id)) c->send_timeout = timeout;
}

template <typename D, typename C>
void Engine<D, C>::set_keepalive(ports::ConnectionId id, Duration timeout) {
  C* c = find(id);
  if (c == nullptr) return;
  c->keepalive.ask(timeout);
  touch_from_above(*c);
}

template <typename D, typename C>
std::vector<ports::HopInfo> Engine<D, C>::hops(ports::ConnectionId id) const {
  const C* c = find(id);
  if (c == nullptr) return {};
  ports::HopInfo hop;
  hop.transport = std::string(driver_.scheme());
  hop.node = driver_.node(*c);
  hop.round_trip = driver_.round_trip(*c);
  hop.peer = driver_.peer(*c).proved;
  hop.protection = driver_.protection(*c);
  return {hop};
}

template <typename D, typename C>
ports::PeerIdentity Engine<D, C>::peer(ports::ConnectionId id) const {
  const C* c = find(id);
  return c == nullptr ? ports::PeerIdentity{} : driver_.peer(*c);
}

// ---- The table and the states.

template <typename D, typename C>
C* Engine<D, C>::find(ports::ConnectionId id) const {
  C* c = connections_.find(id.index, id.generation);
  return c == nullptr || c->dead || c->state == State::gone ? nullptr : c;
}

template <typename D, typename C>
C* Engine<D, C>::find_open(ports::ConnectionId id) const {
  C* c = find(id);
  return c == nullptr || c->left || c->state != State::open ? nullptr : c;
}

template <typename D, typename C>
wire::Offer Engine<D, C>::our_offer() const {
  return {max_send_bytes_, options_.sends_in_flight_max, options_.rmas_in_flight_max};
}

template <typename D, typename C>
C* Engine<D, C>::admit(State state) {
  if (!has_room()) return nullptr;
  const auto name = connections_.add();
  C& c = *connections_.find(name);
  c.id = {name.index, name.generation};
  c.state = state;
  c.keepalive.heard(now_);
  if (is_pending(state)) ++pending_;
  update_accepting();
  return &c;
}

template <typename D, typename C>
void Engine<D, C>::set_state(C& c, State next) {
  invariant(may_follow(c.state, next), "may_follow(c.state, next)");
  if (is_pending(next)) ++pending_;
  if (is_pending(c.state)) --pending_;
  c.state = next;
  update_accepting();
}

template <typename D, typename C>
void Engine<D, C>::update_accepting() {
  const bool pause = takes_no_more();
  if (pause == accepting_paused_) return;
  accepting_paused_ = pause;
  driver_.pause_accepting(pause);
}

template <typename D, typename C>
void Engine<D, C>::touch(C& c, bool patient) {
  ready_.add(c.id.index, c.queued, patient);
}

template <typename D, typename C>
void Engine<D, C>::touch_from_above(C& c) {
  touch(c);
  if (in_turn_ || woken_) return;
  woken_ = true;
  driver_.set_deadline(now_);
}

// ---- How a connection begins.

template <typename D, typename C>
void Engine<D, C>::hello_is_out(C& c) {
  set_state(c, State::hello_sent);
}

template <typename D, typename C>
Agreed Engine<D, C>::agree(C& c, const wire::Offer& theirs) {
  const wire::Offer ours = our_offer();
  c.max_send_bytes = std::min(ours.max_send_bytes, theirs.max_send_bytes);
  c.keepalive.begin(options_.keepalive, now_);
  return {std::min(ours.sends_in_flight_max, theirs.sends_in_flight_max),
          std::min(ours.rmas_in_flight_max, theirs.rmas_in_flight_max)};
}

template <typename D, typename C>
void Engine<D, C>::answered(C& c) {
  c.connect_data.reset();
  set_state(c, State::awaiting_accept);
}

template <typename D, typename C>
void Engine<D, C>::requested(C& c, Bytes data) {
  if (c.state != State::requested) set_state(c, State::requested);
  c.step.set(forever);
  sink_->on_connect_request(c.id, c.role, c.attribute, data);
}

template <typename D, typename C>
void Engine<D, C>::accepted_by_peer(C& c) {
  set_state(c, State::open);
  c.step.set(forever);
  sink_->on_connected(c.id, Status::success, {c.max_send_bytes}, {});
}

template <typename D, typename C>
void Engine<D, C>::opened_by_dialler(C& c) {
  if (c.state != State::accepting || c.left) return;  // our application has gone meanwhile: leave() comes, or has come
  set_state(c, State::open);
  c.step.set(forever);
  sink_->on_accepted(c.id, Status::success, {c.max_send_bytes});
}

// ---- The turn: what the network tells, what each connection has to do (bounded), the timers that are due.

template <typename D, typename C>
void Engine<D, C>::turn(Instant now) {
  invariant(sink_ != nullptr && target_ != nullptr, "bind() comes before the first turn");
  now_ = now;
  in_turn_ = true;
  woken_ = false;
  driver_.poll(now);
  ready_.serve_all([this](uint32_t index) {
    C& c = *connections_.at(index);
    c.queued = false;
    serve(c);
  });
  run_timers();
  driver_.end_turn();
  remove_released();
  in_turn_ = false;
  // Who turns us again at next_deadline() sends a held acknowledgement at once; who waits for the OS handle, a little later.
  const bool patient = !ready_.empty() && !ready_.urgent();
  driver_.set_deadline(patient ? std::min({timers(), driver_.own_deadline(), after(now_, patience_max)}) : next_deadline());
}

template <typename D, typename C>
void Engine<D, C>::remove_released() {
  for (const uint32_t index : released_) connections_.remove(index);
  if (!released_.empty()) ready_.forget([this](uint32_t index) { return connections_.at(index) == nullptr; });
  released_.clear();
}

template <typename D, typename C>
Instant Engine<D, C>::next_deadline() const {
  if (!ready_.empty() && driver_.can_serve()) return now_;
  return std::min(timers(), driver_.own_deadline());
}

template <typename D, typename C>
void Engine<D, C>::serve(C& c) {
  ++visits_;
  if (c.state == State::gone) return;
  if (std::exchange(c.cancelled, false)) return part(c, Parting::Kind::gave_up, Status::cancelled, "cancelled");
  if (c.left) leave(c);
  c.step.stamp(now_);
  c.keepalive.stamp(now_);
  driver_.serve(c);
  if (c.state == State::gone) return;
  if (!c.step.is_stamped()) touch(c);
  schedule(c);
}

template <typename D, typename C>
void Engine<D, C>::leave(C& c) {
  c.left = false;
  if (c.state == State::accepting) sink_->on_accepted(c.id, Status::cancelled, {});
  if (c.state != State::open && c.state != State::accepting) return;
  set_state(c, State::closing);
  driver_.stop_receiving(c);
  c.step.set(disconnect_flush_max);
}

template <typename D, typename C>
void Engine<D, C>::release_fenced(C& c) {
  auto& work = work_of(c);
  if (work.fenced.empty()) return;
  work.fenced.release([&work](uint64_t operations) { return !work.rma.fence_before(operations); },
                      [&work](uint64_t token, typename C::Message message, Duration timeout) {
                        work.messages.push({false, token}, std::move(message), timeout);
                      });
}

template <typename D, typename C>
void Engine<D, C>::message_ended(C& c, const reliability::MessageOwner& owner, Status status) {
  if (!owner.rma) return operation_ended(c, owner.token, status);
  work_of(c).rma.announced(static_cast<uint32_t>(owner.token), status,
                           [&](uint64_t token, ports::OperationResult ending) { operation_ended(c, token, ending); });
}

// ---- How a connection ends.

// Everything in flight ends, in the order of issue: messages, then RMAs; nothing of the core's memory is touched afterwards.
template <typename D, typename C>
void Engine<D, C>::fail_operations(C& c, Status status) {
  if (work_if_any(c) == nullptr) return;
  driver_.operations_end(c);
  auto& work = work_of(c);
  work.messages.fail_all(status, [&](const reliability::MessageOwner& owner, Status end) { message_ended(c, owner, end); });
  work.rma.fail_all(status, [&](uint64_t token, ports::OperationResult ending) { operation_ended(c, token, ending); });
  work.fenced.fail_all([&](uint64_t token) { operation_ended(c, token, status); });
}

template <typename D, typename C>
void Engine<D, C>::report_end(C& c, Status status, std::string_view reason) {
  if (c.dead) return;
  c.dead = true;
  // What an operation hears: that the connection is gone, whatever took it.
  if (is_established(c.state)) fail_operations(c, status == Status::timed_out ? Status::timed_out : Status::disconnected);
  switch (c.state) {
    case State::dialling:
    case State::hello_sent:
    case State::awaiting_accept:
      // It ended before it began.
      sink_->on_connected(c.id, status == Status::disconnected ? Status::refused : status, {}, reason);
      break;
    case State::accepting:
      sink_->on_accepted(c.id, c.left ? Status::cancelled : status, {});
      break;
    case State::open:
      if (!c.left) sink_->on_disconnected(c.id, status, reason);
      break;
    case State::requested:  // accept() and reject() answer not_found from now on
      sink_->on_disconnected(c.id, status, reason);
      break;
    case State::awaiting_hello:
    case State::closing:
    case State::lingering:
    case State::gone:
      break;
  }
}

template <typename D, typename C>
void Engine<D, C>::lose(C& c, Status status, std::string_view reason) {
  report_end(c, status, reason);
  release(c);
}

template <typename D, typename C>
void Engine<D, C>::part(C& c, Parting::Kind kind, Status status, std::string_view reason) {
  report_end(c, status, reason);
  if (c.state == State::lingering || !driver_.say_end(c, {kind, status, reason})) return release(c);
  begin_lingering(c);
}

template <typename D, typename C>
void Engine<D, C>::violation(C& c, std::string_view reason) {
  const bool before_hello = c.state == State::awaiting_hello;
  counters_.add(before_hello ? Counter::hello_rejected : Counter::frames_rejected);
  // A dialler that hears nonsense has dialled something else than this protocol, and is told so by the end of its dial.
  const bool greeting = c.state == State::hello_sent;
  log(greeting ? LogLevel::info : LogLevel::warning, "connection={}.{} state={} rejected: {}{}", c.id.index, c.id.generation,
      to_string(c.state), before_hello ? "who dialled is not a ccixfer: " : "", reason);
  if (greeting) return lose(c, Status::version, std::string("what answers there is not a ccixfer: ").append(reason));
  part(c, Parting::Kind::violation, Status::error, reason);
}

template <typename D, typename C>
void Engine<D, C>::begin_lingering(C& c) {
  c.dead = true;
  c.keepalive.stop();
  set_state(c, State::lingering);
  c.step.set(goodbye_wait_max);
  touch(c);
}

template <typename D, typename C>
void Engine<D, C>::release(C& c) {
  if (c.state == State::gone) return;
  driver_.released(c);
  deadlines_.set(c.id.index, never);
  released_.push_back(c.id.index);
  set_state(c, State::gone);
}

// ---- What happens when nothing happens.

template <typename D, typename C>
Instant Engine<D, C>::keepalive_deadline(const C& c) {
  const bool counts = c.state == State::awaiting_accept || c.state == State::requested || is_established(c.state);
  return counts ? c.keepalive.deadline() : never;
}

template <typename D, typename C>
Instant Engine<D, C>::deadline_of(const C& c) const {
  const auto* work = work_if_any(c);
  const Instant in_flight = work == nullptr ? never : std::min(work->messages.deadline(), driver_.deadline(c));
  return std::min({c.step.deadline(), keepalive_deadline(c), in_flight});
}

// A deadline that moves away leaves its entry where it is: it is looked at again when the entry is due.
template <typename D, typename C>
void Engine<D, C>::schedule(C& c) {
  if (c.state == State::gone) return;  // released: its slot has no deadline any more
  const Instant wanted = deadline_of(c);
  if (wanted < deadlines_.get(c.id.index)) deadlines_.set(c.id.index, wanted);
}

template <typename D, typename C>
void Engine<D, C>::run_timers() {
  while (deadlines_.earliest() <= now_) {
    ++visits_;
    C& c = *connections_.at(deadlines_.earliest_slot());
    if (deadline_of(c) <= now_) on_timer(c);
    if (c.state == State::gone) continue;
    // What is still due now has work in the next pass, not here again.
    const Instant next = deadline_of(c);
    deadlines_.set(c.id.index, next > now_ ? next : never);
    if (next <= now_) touch(c);
  }
}

template <typename D, typename C>
void Engine<D, C>::on_timer(C& c) {
  if (c.step.deadline() <= now_) return on_step_timeout(c);
  if (work_if_any(c) != nullptr && driver_.deadline(c) <= now_) {
    driver_.on_timer(c);
    if (c.state == State::gone) return;
    touch(c);
  }
  if (const auto* work = work_if_any(c); work != nullptr && work->messages.deadline() <= now_) {
    work_of(c).messages.timer(now_,
                              [&](const reliability::MessageOwner& owner, Status status) { message_ended(c, owner, status); });
    touch(c);
  }
  if (keepalive_deadline(c) <= now_) on_keepalive_timer(c);
}

template <typename D, typename C>
std::string Engine<D, C>::words_of_silence(const C& c, const char* of_peer) const {
  std::string why;
  if constexpr (requires { driver_.why_silent(c); }) why = driver_.why_silent(c);
  return why.empty() ? of_peer : why;
}

template <typename D, typename C>
void Engine<D, C>::on_step_timeout(C& c) {
  c.step.expire();
  switch (c.state) {
    case State::dialling:
    case State::hello_sent:
    case State::awaiting_accept:
      return part(c, Parting::Kind::gave_up, Status::timed_out, words_of_silence(c, "no answer in time"));
    case State::awaiting_hello:
      counters_.add(Counter::hello_rejected);
      return release(c);
    case State::accepting:
      return part(c, Parting::Kind::gave_up, Status::timed_out, "the dialler did not acknowledge in time");
    case State::closing:
      return part(c, Parting::Kind::finished, Status::disconnected, "the peer disconnected");
    case State::lingering:
      return release(c);
    case State::requested:
    case State::open:
    case State::gone:
      return;
  }
}

template <typename D, typename C>
void Engine<D, C>::on_keepalive_timer(C& c) {
  if constexpr (requires { driver_.outflow(c); }) {
    if (c.keepalive.gets_on(driver_.outflow(c))) return heard(c);
  }
  switch (c.keepalive.due(now_)) {
    case Keepalive::Verdict::probe:
      driver_.probe(c);
      return touch(c);
    case Keepalive::Verdict::tell:
      if (!c.dead && c.state == State::open) sink_->on_keepalive_timeout(c.id);
      return;
    case Keepalive::Verdict::lost:
      return lose(c, Status::timed_out, words_of_silence(c, "the peer does not answer"));
  }
}

}  // namespace ccixfer::connection
