#include "transports/rdma/packet_writer.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "transports/rdma/limits.h"

namespace ccixfer::rdma {

using wire::Kind;

namespace {

// What is never divided fits into the smallest packet that a net may have.
constexpr size_t packet_overhead_bytes = packet_header_bytes + packet_tag_bytes;
static_assert(packet_tag_bytes == trust::tag_bytes);
static_assert(packet_overhead_bytes + wire::header_bytes_max + wire::hello_reply_header_bytes_min <= send_bytes_floor);
static_assert(packet_overhead_bytes + wire::rma_write_header_bytes + inline_bytes_max <= send_bytes_floor);
static_assert(packet_overhead_bytes + wire::message_header_bytes + ports::max_send_bytes_floor <= send_bytes_floor);
constexpr size_t packet_bytes_max = packet_overhead_bytes + wire::message_header_bytes + max_send_offered_bytes;

bool hints_due(const Connection& c) { return c.hints != nullptr && !c.hints->empty(); }

}  // namespace

PacketWriter::PacketWriter(Engine& engine, RdmaNet& net, const RegisteredMemory& memory)
    : engine_(engine), net_(net), memory_(memory), packet_(std::min<size_t>(net.send_bytes_max(), packet_bytes_max)) {
  CHECK(net.send_bytes_max() >= send_bytes_floor);
}

uint32_t PacketWriter::max_send_bytes(const RdmaNet& net) {
  const size_t packet_bytes = std::min<size_t>(net.send_bytes_max(), packet_bytes_max);
  return static_cast<uint32_t>(packet_bytes - packet_overhead_bytes - wire::message_header_bytes);
}

// ---- Whether.

bool PacketWriter::acknowledges_alone(const Connection& c) {
  return c.incoming.acknowledgement_due() && (c.incoming.refusal_due() || !c.messages.sendable());
}

bool PacketWriter::operations_to_send(const Connection& c) {
  return c.served.reply_due() || c.served.progress_due() || c.served.inline_read_due() || hints_due(c) || c.rma.request_due() ||
         c.rma.write_due();
}

bool PacketWriter::wants_to_send(const Connection& c) {
  if (c.greeting != nullptr || c.proof_due()) return true;
  if (c.state == State::lingering) return false;
  return c.probe_due || c.probe_answer_due || c.incoming.acknowledgement_due() || operations_to_send(c) || c.messages.sendable();
}

bool PacketWriter::can_go_on(const Connection& c) {
  if (c.blocked || c.pair == 0) return false;
  if (c.unsent != nullptr) return true;
  return (c.credits.any() && wants_to_send(c)) || (c.state != State::lingering && c.credits.due());
}

// An application answers what it received: the acknowledgement waits one turn for that, and both are one packet and one wakeup.
bool PacketWriter::hold_acknowledgement(Connection& c) {
  if (c.ack_held || c.state != State::open || !c.incoming.acknowledgement_may_wait()) return c.ack_held = false;
  const bool has_more = c.unsent != nullptr || c.greeting != nullptr || c.probe_due || c.probe_answer_due ||
                        operations_to_send(c) || c.messages.sendable();
  return c.ack_held = !has_more;
}

// As in the stream transport: a message with nothing of this connection on its way before it need not wait for a turn, unless the
// last such one was the first of many.
void PacketWriter::send_at_once(Connection& c) {
  const bool is_first = c.messages.in_queue() == 1;
  const bool was_alone = c.burst <= 1;
  c.burst = is_first ? 1 : c.burst + 1;
  if (!is_first || !was_alone || engine_.in_turn() || c.state != State::open || c.is_unreliable() || c.left || c.withdrawn ||
      c.blocked || !c.credits.any() || c.unsent != nullptr || c.greeting != nullptr || c.proof_due() || operations_to_send(c)) {
    return engine_.touch_from_above(c);
  }
  transmit(c);
  c.ack_held = false;
  engine_.take_back(c);  // it was to have a turn for the acknowledgement that went along
  if (c.send_timeout != forever || can_go_on(c) || c.blocked) engine_.touch_from_above(c);
}

// ---- Out.

void PacketWriter::transmit(Connection& c) {
  for (size_t packets = 0; packets < packets_per_turn_max && !c.blocked && c.pair != 0; ++packets) {
    if (c.unsent != nullptr) {
      if (!post(c, *c.unsent)) return;
      c.unsent.reset();
      continue;
    }
    const bool with_records = c.credits.any() && wants_to_send(c);
    if (!with_records && (c.state == State::lingering || !c.credits.due())) return;
    const bool sealed = c.is_sealed() && !c.proof_due();
    const size_t size = with_records ? build(c) : 0;
    if (size > packet_header_bytes) {
      c.credits.spend();
    } else if (!c.credits.due()) {
      return;  // what wanted to go out has ended meanwhile
    }
    const Bytes packet = finish(c, std::max(size, packet_header_bytes), sealed);
    if (!post(c, packet)) {
      c.unsent = std::make_unique<std::vector<std::byte>>(packet.begin(), packet.end());
      return;
    }
  }
}

bool PacketWriter::post(Connection& c, Bytes packet) {
  if (!net_.post_send(c.pair, {&packet, 1})) {
    c.blocked = true;
    return false;
  }
  engine_.counters().add(Counter::bytes_out, packet.size());
  return true;
}

// The header, and the seal. What is sealed goes out: in this turn, or as the packet that waits for room.
Bytes PacketWriter::finish(Connection& c, size_t size, bool sealed) {
  const MutableBytes packet(packet_);
  wire::Writer header{packet.first(packet_header_bytes)};
  encode(header, PacketHeader{c.credits.give(), sealed});
  if (!sealed) return packet.first(size);
  const trust::Tag tag =
      c.secured->seal(packet.first(packet_header_bytes), packet.subspan(packet_header_bytes, size - packet_header_bytes));
  std::memcpy(packet.subspan(size).data(), tag.data(), tag.size());
  return packet.first(size + packet_tag_bytes);
}

size_t PacketWriter::build(Connection& c) {
  wire::Writer out{MutableBytes(packet_)};
  out.zeros(packet_header_bytes);
  if (c.proof_due()) {
    c.secured->write_output(out, packet_.size() - out.position());
    CHECK(out.ok());
    return out.position();
  }
  if (c.greeting != nullptr) out.bytes(*c.greeting);
  c.greeting.reset();
  if (c.state != State::lingering) {
    add_answers(c, out);
    add_ends(c, out);
    add_inline_reads(c, out);
    add_messages(c, out);
    add_operations(c, out);
  }
  CHECK(out.ok());
  return out.position();
}

// Answers: each has its place kept by a flag or a slot, so a peer that sends and does not read makes nothing grow.
void PacketWriter::add_answers(Connection& c, wire::Writer& out) {
  if (!has_room(out, 2 * wire::frame_overhead_bytes + wire::message_ack_header_bytes)) return;
  if (c.probe_due) wire::encode_empty(out, Kind::keepalive);
  if (c.probe_answer_due) wire::encode_empty(out, Kind::keepalive_ack);
  c.probe_due = c.probe_answer_due = false;
  if (!acknowledges_alone(c)) return;
  const MessageReceiver::Acknowledgement acknowledgement = c.incoming.acknowledgement();
  wire::encode(out, wire::MessageAck{acknowledgement.next, acknowledgement.status});
}

void PacketWriter::add_ends(Connection& c, wire::Writer& out) {
  while (c.served.reply_due() && has_room(out, wire::rma_end_header_bytes)) {
    const RmaIn::Reply reply = c.served.next_reply();
    reply.write ? wire::encode_write_ack(out, reply.end) : wire::encode_read_end(out, reply.end);
  }
  while (c.served.progress_due() && has_room(out, progress_bytes)) {
    if (const std::optional<Progress> progress = c.served.next_progress()) encode(out, *progress);
  }
  while (hints_due(c) && has_room(out, wire::mailbox_hint_header_bytes)) wire::encode(out, c.hints->pop_front());
}

void PacketWriter::add_inline_reads(Connection& c, wire::Writer& out) {
  const size_t overhead = wire::rma_read_data_header_bytes + wire::rma_end_header_bytes;
  while (c.served.inline_read_due() && has_room(out, overhead + static_cast<size_t>(c.served.inline_read_bytes()))) {
    const RmaIn::InlineRead read = c.served.begin_inline_read(engine_.target());
    if (!read.bytes.empty()) {
      wire::encode(out, read.frame, static_cast<uint32_t>(read.bytes.size()));
      out.bytes(read.bytes);
      c.served.end_inline_read(read, engine_.target());
    }
    add_ends(c, out);
  }
}

void PacketWriter::add_messages(Connection& c, wire::Writer& out) {
  while (c.messages.sendable() && has_room(out, wire::message_header_bytes + c.messages.next_size())) {
    const MessageSender::Outgoing outgoing =
        c.messages.take([&](const MessageOwner& owner, Status status) { engine_.message_ended(c, owner, status); });
    const Bytes bytes = outgoing.bytes.bytes();
    wire::encode(out, wire::Message{outgoing.sequence, c.incoming.carried_acknowledgement(), outgoing.bytes.check},
                 static_cast<uint32_t>(bytes.size()));
    out.bytes(bytes);
    c.messages.sent(outgoing.flight);
  }
}

void PacketWriter::add_operations(Connection& c, wire::Writer& out) {
  while (c.rma.request_due() && has_room(out, std::max(announced_bytes, wire::rma_read_header_bytes))) {
    const uint32_t slot = c.rma.next_request();
    const RmaInitiator::Operation& operation = c.rma.at(slot);
    if (operation.total_bytes > inline_bytes_max) {
      announce(c, out, slot);
    } else {
      wire::encode(out, wire::RmaRead{c.rma.id(slot), operation.total_bytes, operation.remote});
    }
  }
  while (c.rma.write_due()) {
    const uint32_t slot = c.rma.next_write();
    const uint64_t total = c.rma.at(slot).total_bytes;
    const size_t size = total > inline_bytes_max ? announced_bytes : wire::rma_write_header_bytes + static_cast<size_t>(total);
    if (!has_room(out, size)) return c.rma.write_goes_on(slot);
    if (total > inline_bytes_max) {
      announce(c, out, slot);
    } else {
      add_write(c, out, slot);
    }
    c.rma.all_sent(slot);
  }
}

void PacketWriter::add_write(Connection& c, wire::Writer& out, uint32_t slot) {
  RmaInitiator::Operation& operation = c.rma.at(slot);
  wire::encode(out, wire::RmaWrite{c.rma.id(slot), operation.total_bytes, 0, operation.remote, false},
               static_cast<uint32_t>(operation.total_bytes));
  out.bytes(operation.source);
  operation.done_bytes = operation.total_bytes;
  // The peer has a copy of it before it can answer, so the source is needed no more.
  if (operation.local_completion) engine_.sink().on_local_completion(c.id, operation.token);
}

void PacketWriter::announce(Connection& c, wire::Writer& out, uint32_t slot) {
  const RmaInitiator::Operation& operation = c.rma.at(slot);
  const Bytes memory = operation.write ? operation.source : Bytes(operation.destination);
  const std::optional<Registration> registration = memory_.of(operation.key, memory);
  CHECK(registration);  // rma() has looked, and it stays until the operation ends
  encode(out,
         Announced{c.rma.id(slot), operation.total_bytes, operation.remote, reinterpret_cast<uintptr_t>(memory.data()),
                   registration->remote_key},
         operation.write);
  ++c.exposed;
}

}  // namespace ccixfer::rdma
