// What the core asks of the transport: nothing happens here, it is noted for the next turn.
#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

Result<ports::ConnectionId> Engine::dial(const ports::DialRequest& request) {
  if (request.attribute == ports::Attribute::multicast_send || request.attribute == ports::Attribute::multicast_receive) {
    return fail(ErrorKind::usage, "multicast is not implemented on this transport");
  }
  if (request.data.size() > ports::connect_data_bytes_max) return fail(ErrorKind::usage, "connect data longer than 1024 bytes");
  if (connections_count_ >= options_.connections_max) return fail(ErrorKind::network, "too many connections");
  const Result<uint64_t> query = net_->resolve(request.uri);
  if (!query) return tl::unexpected<Error>(query.error());
  Connection& c = *create(State::resolving);
  c.dialler = true;
  c.query = *query;
  by_query_[*query] = c.id.index;
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
  c->accept_due = true;
  set_state(*c, State::accepting);
  limit_step(*c, options_.handshake_timeout);
  touch_from_above(*c);
  return Status::success;
}

Status Engine::reject(ports::ConnectionId id, std::string_view reason) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->state != State::requested) return Status::invalid;
  c->dead = true;
  say_farewell(*c, true, Status::refused, reason);
  touch_from_above(*c);
  return Status::success;
}

void Engine::disconnect(ports::ConnectionId id) {
  Connection* c = find(id);
  if (c == nullptr || c->cancelled || c->left) return;
  switch (c->state) {
    case State::resolving:
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
  std::vector<std::byte> copy;
  copy.reserve(size);
  for (const Bytes part : parts) copy.insert(copy.end(), part.begin(), part.end());
  if (c->fenced.empty() && !c->rma.fence_before(c->rma.issued())) {
    c->messages.push({false, token}, std::move(copy), c->send_timeout);
  } else {
    c->fenced.push_back({token, std::move(copy), c->send_timeout, c->rma.issued()});
  }
  touch_from_above(*c);
  return Status::success;
}

Status Engine::rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token) {
  Connection* c = find(id);
  if (c == nullptr) return Status::not_found;
  if (c->left || c->state == State::closing || c->messages.peer_leaving()) return Status::disconnected;
  if (c->state != State::open && c->state != State::accepting) return Status::not_found;
  const size_t size = request.write ? request.source.size() : request.destination.size();
  if (size == 0 || c->attribute == ports::Attribute::unreliable) return Status::invalid;
  if (request.has_completion_message && request.completion_message.size() > c->max_send_bytes) return Status::message_size;
  if (c->rma.full()) return Status::no_buffers;
  c->rma.push(request, token, c->messages.issued() + c->fenced.size());
  touch_from_above(*c);
  return Status::success;
}

// Messages issued after a fence follow it; those before it are among what it waits for.
void Engine::release_fenced(Connection& c) {
  while (!c.fenced.empty() && !c.rma.fence_before(c.fenced.front().operations_before)) {
    Fenced& next = c.fenced.front();
    c.messages.push({false, next.token}, std::move(next.bytes), next.timeout);
    c.fenced.drop_front();
  }
}

void Engine::hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch) {
  Connection* c = find(id);
  if (c == nullptr || c->left || c->state != State::open) return;
  c->hints.push(mailbox, epoch);
  touch_from_above(*c);
}

void Engine::set_send_timeout(ports::ConnectionId id, Duration timeout) {
  if (Connection* c = find(id)) c->send_timeout = timeout;
}

void Engine::set_keepalive(ports::ConnectionId id, Duration timeout) {
  Connection* c = find(id);
  if (c == nullptr) return;
  c->keepalive = timeout;
  c->keepalive_mode = timeout > Duration{0} && timeout != forever ? Keepalive::notify : Keepalive::off;
  c->probes = 0;
  c->keepalive_unstamped = true;
  touch_from_above(*c);
}

std::vector<ports::HopInfo> Engine::hops(ports::ConnectionId id) const {
  const Connection* c = find(id);
  if (c == nullptr) return {};
  ports::HopInfo hop;
  hop.transport = std::string(net_->scheme());
  hop.node = c->uri;
  hop.round_trip = c->dialler ? c->round_trip : c->rtt.known() ? c->rtt.smoothed() : Duration{0};
  return {hop};
}

}  // namespace ccixfer::datagram
