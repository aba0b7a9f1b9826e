// How connections begin and end.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "transports/stream/engine.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

using ports::Attribute;

wire::Offer Engine::our_offer() const {
  return {max_send_offered_bytes, options_.sends_in_flight_max, options_.rmas_in_flight_max};
}

bool Engine::offer_is_sane(const wire::Offer& offer) {
  return offer.max_send_bytes >= ports::max_send_bytes_floor && offer.sends_in_flight_max > 0 && offer.rmas_in_flight_max > 0;
}

void Engine::agree(Connection& c, const wire::Offer& theirs, const wire::Machine& machine) {
  const wire::Offer ours = our_offer();
  c.max_send_bytes = std::min(ours.max_send_bytes, theirs.max_send_bytes);
  const uint32_t sends = std::min(ours.sends_in_flight_max, theirs.sends_in_flight_max);
  const uint32_t rmas = std::min(ours.rmas_in_flight_max, theirs.rmas_in_flight_max);
  c.unreliable = c.attribute == Attribute::unreliable;
  c.messages.open(sends, c.unreliable);
  c.incoming.open(sends, c.unreliable);
  c.rma.open(rmas);
  c.served.open(rmas, c.id.packed());
  if (wire::are_apart(machine, net_->machine())) net_->peer_is_elsewhere(c.stream);
  c.lends = net_->lends(c.stream);
  if (options_.keepalive > Duration{0}) {
    c.keepalive_mode = Keepalive::lose;
    c.keepalive = options_.keepalive;
  }
  c.last_received = c.last_probe = now_;
}

void Engine::greet(Connection& c) {
  wire::Hello hello;
  hello.role = c.role;
  hello.attribute = c.attribute;
  hello.offer = our_offer();
  hello.machine = net_->machine();
  hello.data = c.connect_data;
  wire::Writer out(c.handshake_out);
  wire::encode(out, hello);
  c.connect_data = {};
  c.hello_at = now_;
  c.readable = true;
  set_state(c, State::hello_sent);
}

void Engine::refuse_hello(Connection& c, Status status, std::string_view reason) {
  counters_.add(Counter::hello_rejected);
  wire::HelloReply reply;
  reply.status = status;
  reply.offer = our_offer();
  reply.reason = reason;
  wire::Writer out(c.handshake_out);
  wire::encode(out, reply);
  c.dead = true;
  drain(c);
}

void Engine::on_hello(Connection& c, Bytes header) {
  const std::optional<wire::Hello> hello = wire::decode_hello(header);
  if (!hello || hello->magic != wire::magic) return violation(c, "not a hello of this protocol");
  if (hello->version != wire::version) {
    return refuse_hello(c, Status::version, fmt::format("this end speaks version {} of the stream protocol", wire::version));
  }
  if (!offer_is_sane(hello->offer)) return refuse_hello(c, Status::version, "the hello's limits cannot be used");
  if (hello->attribute == Attribute::multicast_send || hello->attribute == Attribute::multicast_receive) {
    return refuse_hello(c, Status::not_implemented, "multicast is not implemented on this transport");
  }
  switch (wire::scan_options(hello->options)) {
    case wire::OptionScan::fine:
      break;
    case wire::OptionScan::malformed:
      return violation(c, "malformed options in the hello");
    case wire::OptionScan::unknown_mandatory:
      return refuse_hello(c, Status::version, "the hello demands an option that this end does not know");
  }
  c.role = hello->role;
  c.attribute = hello->attribute;
  agree(c, hello->offer, hello->machine);
  wire::HelloReply reply;
  reply.offer = our_offer();
  reply.machine = net_->machine();
  wire::Writer out(c.handshake_out);
  wire::encode(out, reply);
  set_state(c, State::requested);
  limit_step(c, forever);
  sink_->on_connect_request(c.id, c.role, c.attribute, hello->data);
}

void Engine::on_hello_reply(Connection& c, Bytes header) {
  const std::optional<wire::HelloReply> reply = wire::decode_hello_reply(header);
  if (!reply || reply->magic != wire::magic) return violation(c, "not an answer of this protocol");
  if (reply->status != Status::success) return lose(c, reply->status, printable(reply->reason));
  if (reply->version != wire::version || !offer_is_sane(reply->offer))
    return lose(c, Status::version, "the peer's version or limits cannot be used");
  agree(c, reply->offer, reply->machine);
  c.round_trip = std::max(now_ - c.hello_at, ports::round_trip_min);
  set_state(c, State::awaiting_accept);
}

void Engine::on_connect_accept(Connection& c) {
  wire::Writer out(c.handshake_out);
  wire::encode_empty(out, wire::Kind::connect_ack);
  set_state(c, State::open);
  limit_step(c, forever);
  sink_->on_connected(c.id, Status::success, {c.max_send_bytes}, {});
}

void Engine::on_connect_reject(Connection& c, Bytes header) {
  const std::optional<wire::Farewell> reject = wire::decode_farewell(header);
  if (!reject || reject->status == Status::success) return violation(c, "malformed reject");
  lose(c, reject->status, printable(reject->reason));
}

void Engine::on_connect_ack(Connection& c) {
  if (c.state != State::accepting) return;  // closing: our application left meanwhile
  set_state(c, State::open);
  limit_step(c, forever);
  sink_->on_accepted(c.id, Status::success, {c.max_send_bytes});
}

void Engine::on_bye(Connection& c, Bytes header) {
  const std::optional<wire::Farewell> bye = wire::decode_farewell(header);
  if (!bye || bye->status == Status::success) return violation(c, "malformed bye");
  lose(c, bye->status, printable(bye->reason));
}

void Engine::complete(Connection& c, uint64_t token, ports::Ending ending) { sink_->on_completion(c.id, token, ending); }

void Engine::message_ended(Connection& c, const MessageOwner& owner, Status status) {
  if (!owner.rma) return complete(c, owner.token, status);
  c.rma.announced(static_cast<uint32_t>(owner.token), status, [&](uint64_t token, ports::Ending end) { complete(c, token, end); });
}

// Everything in flight ends, in the order of issue: messages, then RMAs; nothing of the core's memory is touched afterwards.
void Engine::fail_operations(Connection& c, Status status) {
  if (c.rx.payload == Payload::message) sink_->on_message_end(c.id, false);
  c.rx.payload = Payload::none;
  c.rx.rest_bytes = 0;
  c.served.abandon(*target_);
  c.messages.fail_all(status, [&](const MessageOwner& owner, Status end) { message_ended(c, owner, end); });
  c.rma.fail_all(status, [&](uint64_t token, ports::Ending end) { complete(c, token, end); });
  while (!c.fenced.empty()) complete(c, c.fenced.pop_front().token, status);
  c.writes.clear();
  c.waiting_writes.clear();
  c.read_requests.clear();
}

void Engine::report_end(Connection& c, Status status, std::string_view reason) {
  if (c.dead) return;
  c.dead = true;
  // What an operation hears: that the connection is gone, whatever took it.
  const Status operations = status == Status::timed_out ? Status::timed_out : Status::disconnected;
  switch (c.state) {
    case State::dialling:
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
    case State::awaiting_hello:
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
  if (c.state == State::dialling || c.state == State::awaiting_hello || c.state == State::draining) return release(c);
  // Memory of operations that have just ended is their owner's again: what the network still has of it must not arrive.
  if (c.lent_until > acknowledged_bytes(c)) return release(c);
  if (c.batch != nullptr) {
    c.batch->keep_begun();
    // Half a chunk of memory that is no longer ours to read: no goodbye fits in behind it.
    const bool broken =
        !c.batch->empty() && (c.batch->front().type == OutItem::Type::write || c.batch->front().type == OutItem::Type::read_reply);
    if (broken) return release(c);
  }
  c.handshake_out.clear();
  wire::Writer out(c.handshake_out);
  wire::encode_bye(out, {status, reason});
  drain(c);
}

void Engine::violation(Connection& c, std::string_view reason) {
  const bool before_hello = c.state == State::awaiting_hello;
  counters_.add(before_hello ? Counter::hello_rejected : Counter::frames_rejected);
  // A dialler that hears nonsense has dialled something else than this protocol, and is told so by the end of its dial.
  const bool greeting = c.state == State::hello_sent;
  log(greeting ? LogLevel::info : LogLevel::warning, "connection={}.{} state={} rejected: {}{}", c.id.index, c.id.generation,
      to_string(c.state), before_hello ? "who dialled is not a ccixfer: " : "", reason);
  if (greeting) return lose(c, Status::version, fmt::format("what answers there is not a ccixfer: {}", reason));
  part(c, Status::error, reason);
}

void Engine::drain(Connection& c) {
  c.keepalive_mode = Keepalive::off;
  set_state(c, State::draining);
  limit_step(c, close_wait_max);
  touch(c);
}

void Engine::release(Connection& c) {
  if (c.state == State::gone) return;
  net_->close(c.stream);
  c.served.closed(*target_);
  by_stream_.erase(c.stream);
  deadlines_.set(c.id.index, never);
  if (c.batch != nullptr) keep_batch(std::move(c.batch));
  set_state(c, State::gone);
  --connections_count_;
  released_.push_back(c.id.index);
  update_accepting();
}

}  // namespace ccixfer::stream
