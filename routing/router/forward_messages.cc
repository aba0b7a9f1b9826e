// Messages of routed connections: what comes on one side goes out on the other, in order. A message that cannot go on holds its
// receive buffer (back-pressure); beyond held_events_max it is copied, so that acks of others always find a buffer.
#include <utility>

#include "routing/router/router_impl.h"

namespace ccixfer::routing {

void Router::Impl::on_routing_message(Pair& pair, uint8_t which, cci::Event event) {
  const Bytes message = event.data();
  const auto kind = kind_of(message);
  if (!kind) return reject_peer(pair, "unknown routing message");
  if (pair.phase == PairPhase::closing) return;
  if (pair.phase != PairPhase::open) {
    if (kind == MessageKind::connect_request && which == 0 && pair.phase == PairPhase::awaiting_request)
      return on_connect_request(pair, message);
    if (kind == MessageKind::connect_reply && which == 1 && pair.phase == PairPhase::requesting)
      return on_connect_reply(pair, message);
    if (kind == MessageKind::hop_waits && which == 1 && pair.phase == PairPhase::requesting) {
      if (!decode_hop_waits(message)) return reject_peer(pair, "malformed hop_waits");
      pair.hop_late_at = never;  // the hop itself is there
      set_timer(pair, pair.deadline);
      return pass_on(pair, which, message);
    }
    if (kind == MessageKind::bye && which == 1 && pair.phase == PairPhase::requesting) {
      const auto bye = decode_bye(message);
      return refuse(pair, Status::refused, bye ? bye->reason : "malformed bye");
    }
    if (kind == MessageKind::bye && which == 0) return close_pair(pair, Status::disconnected, "the initiator gave up", 0);
    return reject_peer(pair, "a routing message out of order");
  }
  const auto to = static_cast<uint8_t>(1 - which);
  switch (*kind) {
    case MessageKind::message:
      return forward_message(pair, which, std::move(event));
    case MessageKind::message_ack:
      if (!decode_message_ack(message)) return reject_peer(pair, "malformed message ack");
      return pass_on(pair, which, message);
    case MessageKind::connect_ack:
      if (which != 0) return reject_peer(pair, "a connect ack from the acceptor");
      return pass_on(pair, which, message);
    case MessageKind::keepalive:
    case MessageKind::keepalive_ack:
      return pass_on(pair, which, message);
    case MessageKind::draining:
      if (pair.side[which].is_end) return reject_peer(pair, "an end that says that it is a router");
      return pass_on(pair, which, message);
    case MessageKind::others_wait:
      if (pair.side[which].is_end) return reject_peer(pair, "an end that says that it is a router");
      pair.pressed_until = after(now, 2 * press_interval);
      return drop_if_in_vain(pair);
    case MessageKind::watched:
      endpoint(pair.side[to].device).set_keepalive(pair.side[to].connection, Duration{0});
      pair.side[to].unwatched = true;
      return pair.side[to].is_end ? void() : pass_on(pair, which, message);
    case MessageKind::mailbox_hint:
      if (!decode_mailbox_hint(message)) return reject_peer(pair, "malformed mailbox hint");
      return pass_on(pair, which, message);
    case MessageKind::write_request:
    case MessageKind::read_request:
    case MessageKind::read_reply:
      return on_fragment_message(pair, which, message);
    case MessageKind::taken:
      return on_taken(pair, which, message);
    case MessageKind::fragment_ack:
      return on_fragment_ack(pair, which, message);
    case MessageKind::bye: {
      const auto bye = decode_bye(message);
      if (!bye) return reject_peer(pair, "malformed bye");
      return close_pair(pair, bye->status == Status::success ? Status::disconnected : bye->status, bye->reason, which);
    }
    default:
      return reject_peer(pair, "a routing message that does not belong here");
  }
}

void Router::Impl::forward_message(Pair& pair, uint8_t from, cci::Event event) {
  const auto to = static_cast<uint8_t>(1 - from);
  const auto routed = decode_message(event.data());
  if (!routed) return reject_peer(pair, "malformed message");
  counters.add(Counter::routed_messages);
  counters.add(Counter::routed_bytes, routed->payload.size());
  Outgoing outgoing;
  outgoing.is_event = true;
  outgoing.event = std::move(event);
  post(pair, to, std::move(outgoing));
}

void Router::Impl::pass_on(Pair& pair, uint8_t from, Bytes message) {
  post(pair, static_cast<uint8_t>(1 - from), std::vector<std::byte>(message.begin(), message.end()));
}

void Router::Impl::post(Pair& pair, uint8_t to, std::vector<std::byte> message) {
  Outgoing outgoing;
  outgoing.copy = std::move(message);
  post(pair, to, std::move(outgoing));
}

void Router::Impl::post(Pair& pair, uint8_t to, Outgoing outgoing) {
  Side& side = pair.side[to];
  if (!side.live) return;
  side.out.push_back(std::move(outgoing));
  flush(pair, to);
  if (side.out.empty()) return;
  activate(pair);
  Outgoing& last = side.out.back();
  if (last.is_event && held_events < held_events_max) {
    ++held_events;
  } else if (last.is_event) {
    const Bytes bytes = last.event.data();
    last.copy.assign(bytes.begin(), bytes.end());
    last.is_event = false;
    last.event = cci::Event();
  }
  if (!last.is_event) {
    copied_bytes += last.copy.size();
    pair.copied_bytes += last.copy.size();
  }
  last.counted = true;
  if (pair.phase != PairPhase::closing && side.out.size() > out_messages_max)
    return reject_peer(pair, "more messages than can be held");
  if (copied_bytes > options.copied_bytes_max) close_largest();
}

// The memory is all pairs' together: the one that has most of it gives its part back, not the one that happens to need some now.
void Router::Impl::close_largest() {
  Pair* largest = nullptr;
  pairs.for_each([&](Pair& pair) {
    if (largest == nullptr || pair.copied_bytes > largest->copied_bytes) largest = &pair;
  });
  for (Side& side : largest->side) {
    for (Outgoing& outgoing : side.out) forget(*largest, outgoing);
    side.out.clear();
  }
  if (largest->phase != PairPhase::closing) reject_peer(*largest, "more messages than can be held");
}

// Of what leaves a queue: no longer counted.
void Router::Impl::forget(Pair& pair, Outgoing& outgoing) {
  if (!std::exchange(outgoing.counted, false)) return;
  if (outgoing.is_event) {
    --held_events;
  } else {
    copied_bytes -= outgoing.copy.size();
    pair.copied_bytes -= outgoing.copy.size();
  }
}

void Router::Impl::flush(Pair& pair, uint8_t which) {
  Side& side = pair.side[which];
  while (!side.out.empty() && side.live) {
    if (!options.mechanisms.messages_apart && !pool.has(0, 0)) return activate(pair);
    Outgoing& next = side.out.front();
    const Status status = endpoint(side.device).send(side.connection, next.bytes(), pair.ref(which).packed(), true);
    if (status == Status::no_buffers || status == Status::again) return;
    forget(pair, next);
    side.out.drop_front();
  }
}

}  // namespace ccixfer::routing
