// What the core asks of the transport: noted for the next turn, but for a message that finds nothing before it.
#include "transports/stream/engine.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

Result<ports::ConnectionId> Engine::dial(const ports::DialRequest& request) {
  if (request.attribute == ports::Attribute::multicast_send || request.attribute == ports::Attribute::multicast_receive) {
    return fail(ErrorKind::usage, "multicast is not implemented on this transport");
  }
  if (request.data.size() > ports::connect_data_bytes_max) return fail(ErrorKind::usage, "connect data longer than 1024 bytes");
  if (connections_count_ >= options_.connections_max) return fail(ErrorKind::network, "too many connections");
  const Result<StreamId> stream = net_->dial(request.uri);
  if (!stream) return tl::unexpected<Error>(stream.error());
  Connection& c = *create(*stream, State::dialling);
  c.uri = std::string(request.uri);
  c.role = request.role;
  c.attribute = request.attribute;
  c.connect_data.assign(request.data.begin(), request.data.end());
  limit_step(c, request.timeout);
  touch_from_above(c);
  return c.id;
}

Status Engine::accept(ports::ConnectionId id) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->state != State::requested) return Status::invalid;
  wire::Writer out(c->handshake_out);
  wire::encode_empty(out, wire::Kind::connect_accept);
  set_state(*c, State::accepting);
  limit_step(*c, options_.handshake_timeout);
  touch_from_above(*c);
  return Status::success;
}

Status Engine::reject(ports::ConnectionId id, std::string_view reason) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->state != State::requested) return Status::invalid;
  wire::Writer out(c->handshake_out);
  wire::encode_reject(out, {Status::refused, reason});
  c->dead = true;
  drain(*c);
  touch_from_above(*c);
  return Status::success;
}

void Engine::disconnect(ports::ConnectionId id) {
  Connection* c = find(id);
  if (c == nullptr) return;
  switch (c->state) {
    case State::dialling:
    case State::hello_sent:
    case State::awaiting_accept:
      c->cancelled = true;
      break;
    case State::requested:
      static_cast<void>(reject(id, "disconnected"));
      return;
    case State::accepting:
    case State::open:
      c->left = true;
      break;
    default:
      return;
  }
  touch_from_above(*c);
}

Status Engine::send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->left || c->state == State::closing || c->messages.peer_leaving()) return Status::disconnected;
  if (c->state != State::open && c->state != State::accepting) return Status::not_found;
  size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  if (size > c->max_send_bytes) return Status::message_size;
  if (c->messages.in_queue() + c->fenced.size() >= c->messages.window()) return Status::no_buffers;
  if (c->fenced.empty() && !c->rma.fence_before(c->rma.issued())) {
    c->messages.push({false, token}, copy_message(parts), c->send_timeout);
    send_at_once(*c);
  } else {
    c->fenced.push_back({token, copy_message(parts), c->send_timeout, c->rma.issued()});  // what the fence waits for wakes us
  }
  return Status::success;
}

Status Engine::rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->left || c->state == State::closing || c->messages.peer_leaving()) return Status::disconnected;
  if (c->state != State::open && c->state != State::accepting) return Status::not_found;
  if ((request.write ? request.source.size() : request.destination.size()) == 0 || c->unreliable) return Status::invalid;
  if (request.has_completion_message && request.completion_message.size() > c->max_send_bytes) return Status::message_size;
  if (c->rma.full()) return Status::no_buffers;
  c->rma.push(request, token, c->messages.issued() + c->fenced.size());
  touch_from_above(*c);
  return Status::success;
}

// Messages issued after a fence follow it; those before it are among what it waits for.
void Engine::release_fenced(Connection& c) {
  while (!c.fenced.empty() && !c.rma.fence_before(c.fenced.front().operations_before)) {
    Fenced next = c.fenced.pop_front();
    c.messages.push({false, next.token}, std::move(next.bytes), next.timeout);
  }
}

void Engine::resume(ports::ConnectionId id) {
  Connection* c = find(id);
  if (c == nullptr) return;
  c->served.resume();
  while (!c->waiting_writes.empty()) c->writes.push_front(c->waiting_writes.pop_back());
  touch_from_above(*c);
}

void Engine::hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch) {
  Connection* c = find(id);
  if (c == nullptr || c->left || c->state != State::open || c->hints.size() >= hints_waiting_max) return;
  c->hints.push_back({mailbox, epoch});
  touch_from_above(*c);
}

void Engine::set_send_timeout(ports::ConnectionId id, Duration timeout) {
  if (Connection* c = find(id)) c->send_timeout = timeout;
}

void Engine::set_keepalive(ports::ConnectionId id, Duration timeout) {
  Connection* c = find(id);
  if (c == nullptr) return;
  c->keepalive = timeout;
  c->keepalive_mode = timeout > Duration{0} ? Keepalive::notify : Keepalive::off;
  c->probes = 0;
  c->keepalive_unstamped = true;
  touch_from_above(*c);
}

// Its operations end in the next turn, and their memory is free then, whatever the peer has not taken.
void Engine::abort(ports::ConnectionId id) {
  Connection* c = find(id);
  if (c == nullptr) return;
  const bool established = c->state == State::accepting || c->state == State::open || c->state == State::closing;
  if (!established) return disconnect(id);
  c->left = c->cancelled = true;
  touch_from_above(*c);
}

std::optional<uint64_t> Engine::delivered_bytes(ports::ConnectionId id) const {
  const Connection* c = find(id);
  if (c == nullptr) return std::nullopt;
  return c->given_bytes - std::min(c->given_bytes, net_->waiting_bytes(c->stream));
}

std::optional<uint64_t> Engine::received_bytes(ports::ConnectionId id) const {
  const Connection* c = find(id);
  return c == nullptr ? std::nullopt : std::optional(c->received_bytes);
}

std::vector<ports::HopInfo> Engine::hops(ports::ConnectionId id) const {
  const Connection* c = find(id);
  if (c == nullptr) return {};
  ports::HopInfo hop;
  hop.transport = std::string(net_->scheme());
  hop.node = c->uri;
  hop.round_trip = c->round_trip;
  return {hop};
}

}  // namespace ccixfer::stream
