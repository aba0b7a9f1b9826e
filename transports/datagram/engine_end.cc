// How connections end.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

// The peer restarted, or gave this connection up long ago. Only who saw our packets knows the key.
void Engine::on_gone(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = connections_.at(header.destination);
  if (c == nullptr || c->remote_key == 0 || c->remote_key != header.key || c->address != from) return;
  if (c->state == State::draining) return release(*c);
  lose(*c, Status::disconnected, "the peer does not know this connection");
}

void Engine::message_ended(Connection& c, const MessageOwner& owner, Status status) {
  if (!owner.rma) return sink_->on_completion(c.id, owner.token, status);
  c.rma.announced(static_cast<uint32_t>(owner.token), status,
                  [&](uint64_t token, ports::Ending end) { sink_->on_completion(c.id, token, end); });
}

// Everything in flight ends, in the order of issue: messages, then RMAs; nothing of the core's memory is touched afterwards.
void Engine::fail_operations(Connection& c, Status status) {
  c.served.abandon(*target_);
  c.messages.fail_all(status, [&](const MessageOwner& owner, Status end) { message_ended(c, owner, end); });
  c.rma.fail_all(status, [&](uint64_t token, ports::Ending end) { sink_->on_completion(c.id, token, end); });
  for (const Fenced& message : std::exchange(c.fenced, {})) sink_->on_completion(c.id, message.token, status);
}

void Engine::report_end(Connection& c, Status status, std::string_view reason) {
  if (c.dead) return;
  c.dead = true;
  const Status operations = status == Status::timed_out ? Status::timed_out : Status::disconnected;
  switch (c.state) {
    case State::resolving:
    case State::hello_sent:
    case State::awaiting_accept:
      if (status == Status::disconnected) status = Status::refused;  // it ended before it began
      sink_->on_connected(c.id, status, {}, reason);
      break;
    case State::accepting:
      fail_operations(c, operations);
      sink_->on_accepted(c.id, c.left ? Status::cancelled : status, {});
      break;
    case State::open:
      fail_operations(c, operations);
      if (!c.left) sink_->on_disconnected(c.id, status, reason);
      break;
    case State::closing:
      fail_operations(c, operations);
      break;
    case State::requested:  // accept() and reject() answer not_found from now on
      sink_->on_disconnected(c.id, status, reason);
      break;
    case State::draining:
    case State::gone:
      break;
  }
}

void Engine::lose(Connection& c, Status status, std::string_view reason) {
  report_end(c, status, reason);
  release(c);
}

void Engine::part(Connection& c, Status status, std::string_view reason) {
  report_end(c, status, reason);
  if (c.remote_key == 0 || c.state == State::draining) return release(c);
  say_farewell(c, false, status, reason);
}

void Engine::violation(Connection& c, std::string_view reason) {
  counters_.add(Counter::frames_rejected);
  log(LogLevel::warning, "connection={}.{} state={} rejected: {}", c.id.index, c.id.generation, to_string(c.state), reason);
  part(c, Status::error, reason);
}

void Engine::say_farewell(Connection& c, bool reject, Status status, std::string_view reason) {
  c.keepalive_mode = Keepalive::off;
  c.farewell_due = true;
  c.farewell_is_reject = reject;
  c.farewell_status = status == Status::success ? Status::disconnected : status;
  c.farewell_reason = std::string(reason.substr(0, wire::reason_bytes_max));
  c.dead = true;
  set_state(c, State::draining);
  limit_step(c, goodbye_wait_max);
  touch(c);
}

void Engine::release(Connection& c) {
  if (c.state == State::gone) return;
  if (!c.dialler && by_hello_.erase(hello_name(c)) > 0) {
    ended_hellos_.insert(hello_name(c));
    ended_hellos_order_.push_back(hello_name(c));
    if (ended_hellos_order_.size() > hellos_remembered_max) {
      ended_hellos_.erase(ended_hellos_order_.front());
      ended_hellos_order_.drop_front();
    }
  }
  if (c.query != 0) by_query_.erase(c.query);
  deadlines_.set(c.id.index, never);
  set_state(c, State::gone);
  --connections_count_;
  released_.push_back(c.id.index);
}

}  // namespace ccixfer::datagram
