#include "routing/transport/routed_messages.h"

#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::routing {

void RoutedMessages::open(RoutedConnection& connection) {
  const bool unreliable = connection.path.attribute == ports::Attribute::unreliable;
  connection.messages.sender.open(messages_in_flight_max, unreliable);
  connection.messages.receiver.open(messages_in_flight_max, unreliable);
}

// --- Out ---

void RoutedMessages::begin(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token) {
  push_back(connection, {false, token}, parts);
}

void RoutedMessages::announce(RoutedConnection& connection, Bytes message, uint64_t token, ports::OperationResult ending) {
  connection.messages.announced.push_back({token, ending});
  push_back(connection, {true, token}, {&message, 1});
}

void RoutedMessages::push_back(RoutedConnection& connection, reliability::MessageOwner owner, std::span<const Bytes> parts) {
  MessageTraffic& messages = connection.messages;
  messages.sender.push(owner, reliability::copy_message(parts), messages.send_timeout);
  ++messages.begun;
  connections_.activate(connection);
}

// An unreliable message ends here; a reliable one when the far end's endpoint has it.
void RoutedMessages::push(RoutedConnection& connection, Instant now) {
  MessageTraffic& messages = connection.messages;
  const auto ended = [&](const auto& owner, Status status) { on_ended(connection, owner, status); };
  messages.sender.stamp(now);
  if (messages.receiver.acknowledgement_due()) acknowledge(connection);
  while (connection.hop.empty() && messages.sender.sendable()) {
    const reliability::MessageSender::Outgoing next = messages.sender.take(ended);
    std::vector<std::byte> message;
    encode_message_header(next.sequence, message);
    const Bytes payload = next.bytes.bytes();
    message.insert(message.end(), payload.begin(), payload.end());
    post_.post_message(connection, std::move(message), next.flight);
  }
  if (messages.sender.sendable() || messages.receiver.acknowledgement_due()) connections_.activate(connection);
}

void RoutedMessages::acknowledge(RoutedConnection& connection) {
  // It waits as a flag, so that a peer that sends and does not read makes no queue grow.
  if (!connection.hop.empty()) return;
  const reliability::MessageReceiver::Acknowledgement acknowledgement = connection.messages.receiver.acknowledgement();
  post_.say(connection, MessageAck{acknowledgement.next, acknowledgement.status});
}

void RoutedMessages::on_ended(RoutedConnection& connection, const reliability::MessageOwner& owner, Status status) {
  --connection.messages.begun;
  ports::OperationResult ending(status);
  if (owner.rma) {
    const MessageTraffic::Announced announced = connection.messages.announced.pop_front();
    CHECK(announced.token == owner.token);
    if (ending.good()) ending = announced.ending;
  }
  sink_.on_completion(connection.id, owner.token, ending);
}

bool RoutedMessages::on_acknowledgement(RoutedConnection& connection, Bytes message, Instant now) {
  const auto ack = decode_message_ack(message);
  const bool is_known =
      ack && (ack->status == Status::success || ack->status == Status::receiver_not_ready || ack->status == Status::disconnected);
  const auto ended = [&](const auto& owner, Status status) { on_ended(connection, owner, status); };
  if (is_known && connection.messages.sender.acknowledge(ack->next, ack->status, now, ended)) return true;
  ender_.reject(connection, "an acknowledgement of what was not sent");
  return false;
}

void RoutedMessages::run_timer(RoutedConnection& connection, Instant now) {
  connection.messages.sender.timer(now, [&](const auto& owner, Status status) { on_ended(connection, owner, status); });
}

void RoutedMessages::fail_all(RoutedConnection& connection) {
  const auto ended = [&](const auto& owner, Status status) { on_ended(connection, owner, status); };
  connection.messages.sender.fail_all(Status::disconnected, ended);
}

// --- In ---

// Without a buffer above, the message and all that follow it are refused, until the sender has gone
// back to it.
void RoutedMessages::on_message(RoutedConnection& connection, Bytes message) {
  using Verdict = reliability::MessageReceiver::Verdict;
  const auto routed = decode_message(message);
  if (!routed || routed->payload.size() > connection.path.limits.max_send_bytes) {
    return ender_.reject(connection, "malformed message");
  }
  reliability::MessageReceiver& receiver = connection.messages.receiver;
  switch (receiver.arriving(routed->id)) {
    case Verdict::violation:
      return ender_.reject(connection, "a message out of order or beyond the window");
    case Verdict::drop:
      receiver.dropped();
      break;
    case Verdict::deliver:
      if (deliver(connection, routed->payload)) {
        receiver.delivered();
      } else {
        receiver.refused();
      }
      break;
  }
  connections_.activate(connection);
}

bool RoutedMessages::deliver(RoutedConnection& connection, Bytes payload) {
  const MutableBytes into = sink_.on_message_begin(connection.id, static_cast<uint32_t>(payload.size()));
  if (into.data() == nullptr) return false;
  if (!payload.empty()) std::memcpy(into.data(), payload.data(), payload.size());
  sink_.on_message_end(connection.id, true);
  return true;
}

}  // namespace ccixfer::routing
