#include "routing/router/message_relay.h"

#include <utility>

namespace ccixfer::routing {

MessageRelay::MessageRelay(MessageSender& sender, ConnectionEnder& ender, ConnectionTable& connections, size_t copied_bytes_max,
                           std::function<bool()> may_send, Counters& counters, Traffic* traffic)
    : sender_(sender),
      ender_(ender),
      connections_(connections),
      copied_bytes_max_(copied_bytes_max),
      may_send_(std::move(may_send)),
      counters_(counters),
      traffic_(traffic) {}

void MessageRelay::forward(RelayedConnection& connection, uint8_t from, cci::Event event) {
  const auto routed = decode_message(event.data());
  if (!routed) return ender_.reject(connection, "malformed message");
  counters_.add(Counter::routed_messages);
  counters_.add(Counter::routed_bytes, routed->payload.size());
  connection.forwarded_bytes += routed->payload.size();
  if (traffic_ != nullptr) traffic_->add(connection.legs[from].device, connection.legs[1 - from].device, routed->payload.size());
  Outgoing outgoing;
  outgoing.is_event = true;
  outgoing.event = std::move(event);
  post(connection, static_cast<uint8_t>(1 - from), std::move(outgoing));
}

void MessageRelay::pass_on(RelayedConnection& connection, uint8_t from, Bytes message) {
  post(connection, static_cast<uint8_t>(1 - from), std::vector<std::byte>(message.begin(), message.end()));
}

void MessageRelay::post(RelayedConnection& connection, uint8_t to, std::vector<std::byte> message) {
  Outgoing outgoing;
  outgoing.copy = std::move(message);
  post(connection, to, std::move(outgoing));
}

void MessageRelay::post_plain(RelayedConnection& connection, uint8_t to, MessageKind kind) {
  std::vector<std::byte> message;
  encode_plain(kind, message);
  post(connection, to, std::move(message));
}

// A leg has a queue only while something waits on it.
void MessageRelay::post(RelayedConnection& connection, uint8_t to, Outgoing outgoing) {
  Leg& leg = connection.legs[to];
  if (!leg.live) return;
  flush(connection, to);
  if (leg.out.empty() && goes_out(connection, to, outgoing)) return;
  hold(connection, outgoing);
  leg.out.push_back(std::move(outgoing));
  connections_.activate(connection);
  if (connection.phase != ConnectionPhase::closing && leg.out.size() > out_messages_max)
    return ender_.reject(connection, "more messages than can be held");
  if (copied_bytes_ > copied_bytes_max_) close_largest();
}

void MessageRelay::hold(RelayedConnection& connection, Outgoing& outgoing) {
  if (outgoing.is_event && held_events_ < held_events_max) {
    ++held_events_;
  } else if (outgoing.is_event) {
    const Bytes bytes = outgoing.event.data();
    outgoing.copy.assign(bytes.begin(), bytes.end());
    outgoing.is_event = false;
    outgoing.event = cci::Event();
  }
  if (!outgoing.is_event) {
    copied_bytes_ += outgoing.copy.size();
    connection.copied_bytes += outgoing.copy.size();
  }
  outgoing.counted = true;
}

// The memory is all connections' together: the one that has most of it gives its part back, not the
// one that happens to need some now.
void MessageRelay::close_largest() {
  RelayedConnection* largest = nullptr;
  connections_.for_each([&](RelayedConnection& each) {
    if (largest == nullptr || each.copied_bytes > largest->copied_bytes) largest = &each;
  });
  for (Leg& leg : largest->legs) drop(*largest, leg);
  if (largest->phase != ConnectionPhase::closing) ender_.reject(*largest, "more messages than can be held");
}

// Of what leaves a queue: no longer counted.
void MessageRelay::forget(RelayedConnection& connection, Outgoing& outgoing) {
  if (!std::exchange(outgoing.counted, false)) return;
  if (outgoing.is_event) {
    --held_events_;
  } else {
    copied_bytes_ -= outgoing.copy.size();
    connection.copied_bytes -= outgoing.copy.size();
  }
}

void MessageRelay::drop(RelayedConnection& connection, Leg& leg) {
  for (Outgoing& outgoing : leg.out) forget(connection, outgoing);
  leg.out = {};
}

// False: there is no room below. What fails otherwise is gone with its connection, which an event
// tells.
bool MessageRelay::goes_out(RelayedConnection& connection, uint8_t to, const Outgoing& outgoing) {
  if (may_send_ && !may_send_()) return false;
  const Leg& leg = connection.legs[to];
  const Status status = sender_.send(leg.device, leg.connection, outgoing.bytes(), connection.ref(to));
  return status != Status::no_buffers && status != Status::again;
}

void MessageRelay::flush(RelayedConnection& connection, uint8_t which) {
  Leg& leg = connection.legs[which];
  if (leg.out.empty()) return;
  while (!leg.out.empty() && leg.live) {
    Outgoing& next = leg.out.front();
    if (!goes_out(connection, which, next)) return;
    forget(connection, next);
    leg.out.drop_front();
  }
  if (leg.out.empty()) leg.out = {};
}

}  // namespace ccixfer::routing
