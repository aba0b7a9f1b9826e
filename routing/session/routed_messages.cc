// Messages of a routed connection, both ways, and the routing messages that come in.
#include <algorithm>
#include <cstring>
#include <utility>

#include "routing/session/routed_impl.h"

namespace ccixfer::routing {
namespace {

// Replies to a peer (keepalive_ack) are dropped once so much waits: only a flood gets there.
constexpr size_t out_replies_max = 1024;

}  // namespace

// --- Out ---

Status RoutedTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  Slot* slot = find(connection);
  if (slot == nullptr || slot->phase == Phase::leaving) return Status::not_found;
  if (slot->phase != Phase::open) return Status::again;
  work_ = true;
  if (slot->mode == Mode::direct) {
    const Status status = lower_->send(slot->lower, parts, token);
    if (status == Status::success) ++slot->direct_in_flight;
    return status;
  }
  size_t total = 0;
  for (const Bytes part : parts) total += part.size();
  if (total > slot->limits.max_send_bytes) return Status::message_size;
  if (slot->messages.size() + slot->waiting_messages >= messages_in_flight_max) return Status::no_buffers;
  if (slot->waiting.empty()) {
    post_message(*slot, parts, token);
    return Status::success;
  }
  Waiting behind;
  behind.token = token;
  for (const Bytes part : parts) behind.message.insert(behind.message.end(), part.begin(), part.end());
  slot->waiting.push_back(std::move(behind));
  ++slot->waiting_messages;
  return Status::success;
}

void RoutedTransport::post_message(Slot& slot, std::span<const Bytes> parts, uint64_t token) {
  const uint64_t id = slot.next_message++;
  std::vector<std::byte> message;
  encode_message_header(id, message);
  for (const Bytes part : parts) message.insert(message.end(), part.begin(), part.end());
  slot.messages.emplace_back(id, token);
  post(slot, std::move(message));
}

void RoutedTransport::post(Slot& slot, std::vector<std::byte> message) {
  slot.out.push_back(std::move(message));
  flush(slot);
  if (!slot.out.empty()) activate(slot);
}

void RoutedTransport::post_plain(Slot& slot, MessageKind kind) {
  if (slot.out.size() > out_replies_max) return;
  std::vector<std::byte> message;
  encode_plain(kind, message);
  post(slot, std::move(message));
}

void RoutedTransport::flush(Slot& slot) {
  while (!slot.out.empty() && slot.lower_live) {
    // Silent: only a failure would be told, and that is followed by the end of the connection.
    const Status status = lower_->send(slot.lower, Bytes(slot.out.front()), 0, true);
    if (status == Status::no_buffers || status == Status::again) return;
    work_ = true;
    slot.out.pop_front();
  }
}

// The front of what waits behind a fence may begin once all before it has ended.
void RoutedTransport::release_waiting(Slot& slot) {
  while (!slot.waiting.empty()) {
    if (slot.waiting.front().fence && slot.begun() > 0) return;
    Waiting next = std::move(slot.waiting.front());
    slot.waiting.pop_front();
    if (next.is_rma) {
      --slot.waiting_rmas;
      slot.issuing.push_back(next.operation);
      activate(slot);
    } else {
      --slot.waiting_messages;
      const Bytes part(next.message);
      post_message(slot, {&part, 1}, next.token);
    }
  }
}

void RoutedTransport::on_message_ack(Slot& slot, Bytes message) {
  const auto ack = decode_ack(message);
  if (!ack) return reject_peer(slot, "malformed message ack");
  const auto found =
      std::find_if(slot.messages.begin(), slot.messages.end(), [&](const auto& sent) { return sent.first == ack->id; });
  if (found == slot.messages.end()) {
    counters_.add(Counter::routed_rejected);
    return;
  }
  const uint64_t token = found->second;
  slot.messages.erase(found);
  complete(slot, token, ack->status);
  while (!slot.ending.empty() && slot.messages.size() < messages_in_flight_max) {
    const uint64_t number = slot.ending.front();
    slot.ending.pop_front();
    try_end_operation(slot, number);
  }
  release_waiting(slot);
}

void RoutedTransport::complete(Slot& slot, uint64_t token, Status status) {
  if (slot.mode == Mode::direct) {
    if (const auto source = slot.direct_sources.find(token); source != slot.direct_sources.end()) {
      static_cast<void>(memory_->deregister_region(source->second));
      slot.direct_sources.erase(source);
    }
    if (slot.direct_in_flight > 0) --slot.direct_in_flight;
  }
  sink_->on_completion(slot.id, token, status);
  if (slot.mode == Mode::direct && slot.phase == Phase::leaving) try_finish(slot);
}

// --- In ---

void RoutedTransport::on_receive(Slot& slot, cci::Event event) {
  if (slot.mode == Mode::direct) {
    if (!slot.held.empty() || !deliver(slot, event.data())) {
      if (slot.held.empty()) holding_.push_back(slot.id.packed());
      slot.held.push_back(std::move(event));
    }
    return;
  }
  const auto kind = kind_of(event.data());
  if (!kind) return reject_peer(slot, "unknown routing message");
  on_routing_message(slot, *kind, event);
}

void RoutedTransport::on_routing_message(Slot& slot, MessageKind kind, cci::Event& event) {
  const Bytes message = event.data();
  if (slot.phase != Phase::open) {
    if (slot.phase == Phase::requesting && kind == MessageKind::connect_reply) return on_connect_reply(slot, message);
    if (slot.phase == Phase::awaiting_request && kind == MessageKind::connect_request) return on_connect_request(slot, message);
    if (slot.phase == Phase::accepting && kind == MessageKind::connect_ack) return on_connect_ack(slot);
    if (kind != MessageKind::bye) return reject_peer(slot, "a routing message out of order");
  }
  if (kind != MessageKind::taken) {  // that one comes from the next router
    slot.heard_at = now_;
    slot.probes = 0;
  }
  switch (kind) {
    case MessageKind::message: {
      const auto routed = decode_message(message);
      if (!routed || routed->payload.size() > slot.limits.max_send_bytes) return reject_peer(slot, "malformed message");
      // Held ones are bounded by the lower endpoint's receive buffers: when those are out, the last router waits.
      if (!slot.held.empty() || !deliver(slot, routed->payload)) {
        if (slot.held.empty()) holding_.push_back(slot.id.packed());
        slot.held.push_back(std::move(event));
      }
      return;
    }
    case MessageKind::message_ack:
      return on_message_ack(slot, message);
    case MessageKind::fragment_ack:
      return on_fragment_ack(slot, message);
    case MessageKind::taken:
      return on_taken(slot, message);
    case MessageKind::read_reply:
      return on_read_reply(slot, message);
    case MessageKind::keepalive:
      return post_plain(slot, MessageKind::keepalive_ack);
    case MessageKind::keepalive_ack:
      return;
    case MessageKind::bye: {
      const auto bye = decode_bye(message);
      if (!bye) return reject_peer(slot, "malformed bye");
      const Status status = bye->status == Status::success ? Status::disconnected : bye->status;
      if (slot.phase == Phase::requesting) {
        note_answer(slot, Status::unreachable, bye->reason);
        lower_->disconnect(slot.lower);
        detach(slot);
        return dial_next(slot);
      }
      return close_slot(slot, status, bye->reason, false);
    }
    default:
      return reject_peer(slot, "a routing message for routers only");
  }
}

bool RoutedTransport::deliver(Slot& slot, Bytes payload) {
  const MutableBytes into = sink_->on_message_begin(slot.id, static_cast<uint32_t>(payload.size()));
  if (into.data() == nullptr) return false;
  if (!payload.empty()) std::memcpy(into.data(), payload.data(), payload.size());
  sink_->on_message_end(slot.id, true);
  return true;
}

void RoutedTransport::deliver_held(Slot& slot) {
  while (!slot.held.empty()) {
    const Bytes data = slot.held.front().data();
    if (!deliver(slot, slot.mode == Mode::direct ? data : data.subspan(message_header_bytes))) {
      holding_.push_back(slot.id.packed());
      return;
    }
    slot.held.pop_front();
  }
  if (slot.phase == Phase::leaving) try_finish(slot);
}

}  // namespace ccixfer::routing
