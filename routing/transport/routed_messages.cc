// Messages of a routed connection, both ways, and the routing messages that come in.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/units.h"
#include "routing/transport/routed_impl.h"

namespace ccixfer::routing {
namespace {

// Replies to a peer (keepalive_ack) are dropped once so much waits: only a flood gets there.
constexpr size_t out_replies_max = 1024;

}  // namespace

// --- Out ---

Status RoutedTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  RoutedConnection* slot = find(connection);
  if (slot == nullptr || slot->phase == Phase::leaving) return Status::not_found;
  if (slot->phase != Phase::open) return Status::again;
  work_ = true;
  if (slot->mode == Mode::direct) {
    const Status status = lower_->send(slot->hop.connection(), parts, token);
    if (status == Status::success) ++slot->direct_in_flight;
    return status;
  }
  if (slot->left || slot->messages.peer_leaving()) return Status::disconnected;
  size_t total = 0;
  for (const Bytes part : parts) total += part.size();
  if (total > slot->limits.max_send_bytes) return Status::message_size;
  if (slot->messages.in_queue() + slot->fenced.messages() >= messages_in_flight_max) return Status::no_buffers;
  if (slot->fenced.empty()) {
    post_message(*slot, parts, {false, token});
    return Status::success;
  }
  std::vector<std::byte> message;
  for (const Bytes part : parts) message.insert(message.end(), part.begin(), part.end());
  slot->fenced.push_message(token, std::move(message));
  return Status::success;
}

void RoutedTransport::post_message(RoutedConnection& slot, std::span<const Bytes> parts, reliability::MessageOwner owner) {
  slot.messages.push(owner, reliability::copy_message(parts), slot.send_timeout);
  ++slot.messages_begun;
  activate(slot);
}

// An unreliable message ends here; a reliable one when the far end's endpoint has it.
void RoutedTransport::push_messages(RoutedConnection& slot) {
  const auto ended = [&](const auto& owner, Status status) { message_ended(slot, owner, status); };
  slot.messages.stamp(now_);
  if (slot.incoming.acknowledgement_due()) acknowledge(slot);
  while (slot.hop.empty() && slot.messages.sendable()) {
    const reliability::MessageSender::Outgoing next = slot.messages.take(ended);
    std::vector<std::byte> message;
    encode_message_header(next.sequence, message);
    const Bytes payload = next.bytes.bytes();
    message.insert(message.end(), payload.begin(), payload.end());
    slot.hop.push_message(std::move(message), next.flight);
    flush(slot);
  }
  if (slot.messages.sendable() || slot.incoming.acknowledgement_due()) activate(slot);
  if (slot.messages.deadline() < timers_.get(slot.id.index)) keep_alive(slot);
}

void RoutedTransport::acknowledge(RoutedConnection& slot) {
  if (!slot.hop.empty()) return;  // it waits as a flag: a peer that sends and does not read makes nothing grow
  const reliability::MessageReceiver::Acknowledgement acknowledgement = slot.incoming.acknowledgement();
  std::vector<std::byte> message;
  encode(MessageAck{acknowledgement.next, acknowledgement.status}, message);
  post(slot, std::move(message));
}

void RoutedTransport::message_ended(RoutedConnection& slot, const reliability::MessageOwner& owner, Status status) {
  --slot.messages_begun;
  ports::OperationResult ending(status);
  if (owner.rma) {
    const auto announced = slot.announcing.extract(owner.token);
    if (ending.good() && announced) ending = announced.mapped();
  }
  complete(slot, owner.token, ending);
}

void RoutedTransport::post(RoutedConnection& slot, std::vector<std::byte> message) {
  slot.hop.push(std::move(message));
  flush(slot);
  if (!slot.hop.empty()) activate(slot);
}

void RoutedTransport::post_plain(RoutedConnection& slot, MessageKind kind) {
  if (slot.hop.size() > out_replies_max) return;
  std::vector<std::byte> message;
  encode_plain(kind, message);
  post(slot, std::move(message));
}

void RoutedTransport::flush(RoutedConnection& slot) {
  // Silent: only a failure would be told, and that is followed by the end of the connection.
  const auto send_below = [this](cci::Connection lower, Bytes message) { return lower_->send(lower, message, 0, true); };
  slot.hop.flush(send_below, [&slot](uint64_t flight) { slot.messages.sent(flight); });
}

void RoutedTransport::release_waiting(RoutedConnection& slot) {
  const auto all_ended = [&slot] { return slot.begun() == 0; };
  const auto send_message = [&](uint64_t token, const std::vector<std::byte>& message) {
    const Bytes part(message);
    post_message(slot, {&part, 1}, {false, token});
  };
  const auto start_operation = [&](uint64_t number) {
    slot.rma->start(number);
    activate(slot);
  };
  slot.fenced.release(all_ended, send_message, start_operation);
}

void RoutedTransport::on_message_ack(RoutedConnection& slot, Bytes message) {
  const auto ack = decode_message_ack(message);
  const bool known =
      ack && (ack->status == Status::success || ack->status == Status::receiver_not_ready || ack->status == Status::disconnected);
  const bool fine = known && slot.messages.acknowledge(ack->next, ack->status, now_, [&](const auto& owner, Status status) {
    message_ended(slot, owner, status);
  });
  if (!fine) return reject_peer(slot, "an acknowledgement of what was not sent");
  release_waiting(slot);
  activate(slot);
}

void RoutedTransport::complete(RoutedConnection& slot, uint64_t token, ports::OperationResult ending) {
  if (slot.mode == Mode::direct) {
    if (const auto source = slot.direct_sources.find(token); source != slot.direct_sources.end()) {
      static_cast<void>(memory_->deregister_region(source->second));
      slot.direct_sources.erase(source);
    }
    CHECK(slot.direct_in_flight > 0);
    --slot.direct_in_flight;
  }
  sink_->on_completion(slot.id, token, ending);
  if (slot.mode == Mode::direct && slot.phase == Phase::leaving) try_finish(slot);
}

// --- In ---

// Messages of direct connections go from below straight into memory from above.
std::optional<MutableBytes> RoutedTransport::message_begins(cci::Connection lower, uint32_t length_bytes) {
  const auto found = by_lower_.find(lower.packed());
  RoutedConnection* slot = found == by_lower_.end() ? nullptr : find(found->second);
  if (slot == nullptr || slot->mode != Mode::direct) return std::nullopt;
  if (slot->phase == Phase::dialling || slot->phase == Phase::accepting) direct_opened(*slot);
  if (slot->phase != Phase::open) return MutableBytes{};
  const MutableBytes memory = sink_->on_message_begin(slot->id, length_bytes);
  slot->message_open = memory.data() != nullptr;
  return memory;
}

void RoutedTransport::message_ends(cci::Connection lower, bool complete) {
  const auto found = by_lower_.find(lower.packed());
  RoutedConnection* slot = found == by_lower_.end() ? nullptr : find(found->second);
  if (slot == nullptr || !std::exchange(slot->message_open, false)) return;
  sink_->on_message_end(slot->id, complete);
}

void RoutedTransport::on_receive(RoutedConnection& slot, const cci::Event& event) {
  const auto kind = kind_of(event.data());
  if (!kind) return reject_peer(slot, "unknown routing message");
  on_routing_message(slot, *kind, event.data());
}

void RoutedTransport::on_routing_message(RoutedConnection& slot, MessageKind kind, Bytes message) {
  if (slot.phase != Phase::open) {
    if (slot.phase == Phase::requesting && kind == MessageKind::connect_reply) return on_connect_reply(slot, message);
    if (slot.phase == Phase::awaiting_request && kind == MessageKind::connect_request) return on_connect_request(slot, message);
    if (slot.phase == Phase::accepting && kind == MessageKind::connect_ack) return on_connect_ack(slot);
    if (slot.phase == Phase::requesting && kind == MessageKind::connect_pending) {
      auto waits = decode_connect_pending(message);
      if (!waits) return reject_peer(slot, "malformed connect_pending");
      return slot.attempts->note_waits(std::move(*waits));
    }
    if (slot.phase == Phase::accepting && kind == MessageKind::draining) {  // it is told when the acceptance is
      slot.draining = true;
      return;
    }
    if (kind != MessageKind::bye) return reject_peer(slot, "a routing message out of order");
  }
  if (kind != MessageKind::fragment_released) {  // that one comes from the next router
    slot.far_end.heard(now_);
  }
  switch (kind) {
    case MessageKind::message:
      return on_message(slot, message);
    case MessageKind::message_ack:
      return on_message_ack(slot, message);
    case MessageKind::fragment_ack:
      return on_fragment_ack(slot, message);
    case MessageKind::fragment_released:
      return on_taken(slot, message);
    case MessageKind::read_reply:
      return on_read_reply(slot, message);
    case MessageKind::mailbox_hint: {
      const auto hint = decode_mailbox_hint(message);
      if (!hint) return reject_peer(slot, "malformed mailbox hint");
      return sink_->on_mailbox_ready(slot.id, hint->mailbox, hint->epoch);
    }
    case MessageKind::keepalive:
      return post_plain(slot, MessageKind::keepalive_ack);
    case MessageKind::keepalive_ack:
      return;
    case MessageKind::draining:
      if (!std::exchange(slot.draining, true) && !slot.left) sink_->on_draining(slot.id);
      return;
    case MessageKind::bye: {
      const auto bye = decode_bye(message);
      if (!bye) return reject_peer(slot, "malformed bye");
      const Status status = bye->status == Status::success ? Status::disconnected : bye->status;
      if (slot.phase == Phase::requesting) {
        slot.attempts->note(Told::dead, Status::unreachable, bye->reason);
        lower_->disconnect(slot.hop.connection());
        detach(slot);
        return dial_next(slot);
      }
      return close_slot(slot, status, bye->reason, false);
    }
    default:
      return reject_peer(slot, "a routing message for routers only");
  }
}

bool RoutedTransport::deliver(RoutedConnection& slot, Bytes payload) {
  const MutableBytes into = sink_->on_message_begin(slot.id, static_cast<uint32_t>(payload.size()));
  if (into.data() == nullptr) return false;
  if (!payload.empty()) std::memcpy(into.data(), payload.data(), payload.size());
  sink_->on_message_end(slot.id, true);
  return true;
}

// Without a buffer above it is refused, and all that follow it, until the sender has gone back to it.
void RoutedTransport::on_message(RoutedConnection& slot, Bytes message) {
  using Verdict = reliability::MessageReceiver::Verdict;
  const auto routed = decode_message(message);
  if (!routed || routed->payload.size() > slot.limits.max_send_bytes) return reject_peer(slot, "malformed message");
  switch (slot.incoming.arriving(routed->id)) {
    case Verdict::violation:
      return reject_peer(slot, "a message out of order or beyond the window");
    case Verdict::drop:
      slot.incoming.dropped();
      break;
    case Verdict::deliver:
      if (deliver(slot, routed->payload)) {
        slot.incoming.delivered();
      } else {
        slot.incoming.refused();
      }
      break;
  }
  activate(slot);
}

}  // namespace ccixfer::routing
