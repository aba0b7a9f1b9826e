#include "transports/rdma/packet_reader.h"

#include <cstring>

#include "core/base/check.h"
#include "transports/connection/allowed_frames.h"
#include "transports/rdma/limits.h"

namespace ccixfer::rdma {

using wire::Kind;

namespace {

bool is_over(const Connection& c) { return c.state == State::lingering || c.state == State::gone; }

}  // namespace

void PacketReader::read(Connection& c, Bytes packet) {
  engine_.counters().add(Counter::bytes_in, packet.size());
  c.received_bytes += packet.size();
  engine_.heard(c);
  const std::optional<PacketHeader> packet_header = decode_packet_header(packet);
  if (!packet_header) return engine_.violation(c, "malformed packet");
  const std::optional<Bytes> text = opened(c, *packet_header, packet);
  if (!text) return;
  Bytes records = *text;
  if (!c.credits.granted(packet_header->credits)) return engine_.violation(c, "more credit than anybody gives");
  if (is_over(c)) return;
  if (records.empty()) {
    if (packet_header->credits == 0) engine_.violation(c, "a packet with nothing in it");
    return;
  }
  if (!c.credits.taken()) return engine_.violation(c, "a packet without credit for it");
  while (!records.empty() && !is_over(c)) {
    const size_t taken = record_kind(records) ? take_record(c, records) : take_frame(c, records);
    if (taken == 0) return;
    records = records.subspan(taken);
    // Who proved itself in this packet says the rest sealed: what stands behind the proof may be of somebody on the way.
    if (!packet_header->sealed && c.is_sealed() && !records.empty()) return damaged(c, "what should be sealed is not");
  }
}

std::optional<Bytes> PacketReader::opened(Connection& c, const PacketHeader& header, Bytes packet) {
  const Bytes body = packet.subspan(packet_header_bytes);
  if (!header.sealed) {
    if (!c.is_sealed() || is_over(c)) return body;
    // Until the peer has sealed something, TLS may still refuse our proof, and what it said before it had the keys may have been
    // credit.
    const bool refusal = !body.empty() && std::to_integer<uint8_t>(body.front()) == static_cast<uint8_t>(Kind::handshake);
    if (!c.secured->is_confirmed() && (body.empty() || refusal)) return body;
    return damaged(c, "what should be sealed is not"), std::nullopt;
  }
  if (!c.is_sealed()) return damaged(c, "a sealed packet before there are keys"), std::nullopt;
  const Bytes sealed = body.first(body.size() - packet_tag_bytes);
  trust::Tag tag;
  std::memcpy(tag.data(), body.last(packet_tag_bytes).data(), tag.size());
  text_.assign(sealed.begin(), sealed.end());
  if (c.secured->open(packet.first(packet_header_bytes), text_, tag)) return text_;
  return damaged(c, "a sealed packet was changed on its way"), std::nullopt;
}

void PacketReader::damaged(Connection& c, std::string_view reason) {
  if (is_over(c)) return;
  if (c.state != State::hello_sent) return engine_.violation(c, reason);
  engine_.counters().add(Counter::frames_rejected);
  engine_.lose(c, Status::not_authenticated, reason);
}

size_t PacketReader::take_record(Connection& c, Bytes bytes) {
  const RecordKind kind = *record_kind(bytes);
  const size_t size = record_bytes(kind);
  if (bytes.size() < size) return engine_.violation(c, "malformed record"), 0;
  const bool is_data_allowed = c.state == State::open || c.state == State::closing;
  if (!is_data_allowed || c.is_unreliable()) return engine_.violation(c, "a record that does not belong here"), 0;
  const Bytes record = bytes.first(size);
  if (kind == RecordKind::progress) {
    on_progress(c, record);
  } else {
    on_announced(c, record, kind == RecordKind::announced_write);
  }
  return size;
}

size_t PacketReader::take_frame(Connection& c, Bytes bytes) {
  const std::optional<wire::FramePrefix> prefix = wire::decode_prefix(bytes);
  if (!prefix) return engine_.violation(c, "malformed frame"), 0;
  if (!connection::frame_allowed(c.state, prefix->kind)) return engine_.violation(c, "a frame that does not belong here"), 0;
  const size_t size = size_t{prefix->header_bytes} + prefix->payload_bytes;
  if (bytes.size() < size) return engine_.violation(c, "a frame that is longer than its packet"), 0;
  const Bytes header = bytes.first(prefix->header_bytes);
  if (!wire::check_holds(header)) return engine_.violation(c, "damaged frame header"), 0;
  on_frame(c, prefix->kind, *prefix, header, bytes.subspan(prefix->header_bytes, prefix->payload_bytes));
  return size;
}

void PacketReader::on_frame(Connection& c, Kind kind, const wire::FramePrefix& prefix, Bytes header, Bytes payload) {
  switch (kind) {
    case Kind::hello:
      return handshake_.on_hello(c, header);
    case Kind::hello_reply:
      return handshake_.on_hello_reply(c, header);
    case Kind::connect_accept:
      return handshake_.on_connect_accept(c);
    case Kind::connect_reject:
      return handshake_.on_connect_reject(c, header);
    case Kind::connect_ack:
      return handshake_.on_connect_ack(c);
    case Kind::message:
      return on_message(c, header, payload);
    case Kind::message_ack:
      return on_message_ack(c, header);
    case Kind::rma_write:
      return on_rma_write(c, prefix, header, payload);
    case Kind::rma_write_ack:
      return on_rma_end(c, header, true);
    case Kind::rma_read:
      return on_rma_read(c, header);
    case Kind::rma_read_data:
      return on_rma_read_data(c, prefix, header, payload);
    case Kind::rma_read_end:
      return on_rma_end(c, header, false);
    case Kind::keepalive:
      c.probe_answer_due = true;
      return;
    case Kind::keepalive_ack:
      return;
    case Kind::bye:
      return handshake_.on_bye(c, header);
    case Kind::mailbox_hint:
      return on_mailbox_hint(c, header);
    case Kind::handshake:
      return handshake_.on_handshake(c, header);
  }
}

// ---- Messages.

void PacketReader::on_message(Connection& c, Bytes header, Bytes payload) {
  const std::optional<wire::Message> frame = wire::decode_message(header);
  if (!frame || payload.size() > c.max_send_bytes) return engine_.violation(c, "malformed message");
  acknowledged(c, frame->acknowledged, Status::success);
  if (is_over(c)) return;
  switch (c.incoming.arriving(frame->sequence)) {
    case MessageReceiver::Verdict::violation:
      return engine_.violation(c, "a message out of order or beyond the window");
    case MessageReceiver::Verdict::drop:
      return c.incoming.dropped();
    case MessageReceiver::Verdict::deliver:
      break;
  }
  if (wire::payload_check_of(payload) != frame->payload_check) return engine_.violation(c, "damaged message");
  const MutableBytes memory = engine_.sink().on_message_begin(c.id, static_cast<uint32_t>(payload.size()));
  if (memory.data() == nullptr) return c.incoming.refused();
  CHECK(memory.size() >= payload.size());
  if (!payload.empty()) std::memcpy(memory.data(), payload.data(), payload.size());
  engine_.sink().on_message_end(c.id, true);
  c.incoming.delivered();
}

void PacketReader::on_message_ack(Connection& c, Bytes header) {
  const std::optional<wire::MessageAck> frame = wire::decode_message_ack(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "an acknowledgement that does not belong here");
  acknowledged(c, frame->next, frame->status);
}

void PacketReader::acknowledged(Connection& c, uint64_t next, Status status) {
  const auto ended = [&](const MessageOwner& owner, Status end) {
    ++c.delivered_bytes;  // what matters is that it grows
    engine_.message_ended(c, owner, end);
  };
  const bool fine = c.is_unreliable() ? next == 0 : c.messages.acknowledge(next, status, engine_.now(), ended);
  if (!fine) engine_.violation(c, "an acknowledgement of what was not sent");
}

// ---- Operations of the peer's.

void PacketReader::on_announced(Connection& c, Bytes record, bool write) {
  const std::optional<Announced> announced = decode_announced(record);
  if (!announced) return engine_.violation(c, "malformed announcement");
  if (!c.served.announced(*announced, write, engine_.target())) engine_.violation(c, "a doubled operation");
}

void PacketReader::on_rma_write(Connection& c, const wire::FramePrefix& prefix, Bytes header, Bytes payload) {
  const std::optional<wire::RmaWrite> frame = wire::decode_rma_write(header, prefix);
  if (!frame || frame->abort || c.is_unreliable()) return engine_.violation(c, "malformed write");
  if (!c.served.write(*frame, payload, engine_.target())) engine_.violation(c, "a doubled or divided write");
}

void PacketReader::on_rma_read(Connection& c, Bytes header) {
  const std::optional<wire::RmaRead> frame = wire::decode_rma_read(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "malformed read");
  if (!c.served.read(*frame, engine_.target())) engine_.violation(c, "a doubled read, or one too long for a packet");
}

// ---- Operations of ours.

void PacketReader::advance(Connection& c, RmaInitiator::Operation& operation, uint64_t done_bytes) {
  const uint64_t more = done_bytes - operation.done_bytes;
  operation.done_bytes = done_bytes;
  if (operation.write) {
    c.delivered_bytes += more;
    engine_.counters().add(Counter::bytes_out, more);
  } else {
    c.received_bytes += more;
    engine_.counters().add(Counter::bytes_in, more);
  }
}

void PacketReader::on_progress(Connection& c, Bytes record) {
  const std::optional<Progress> progress = decode_progress(record);
  RmaInitiator::Operation* operation = nullptr;
  if (progress) {
    operation = c.rma.find(progress->operation, true);
    if (operation == nullptr) operation = c.rma.find(progress->operation, false);
  }
  if (operation == nullptr || operation->total_bytes <= inline_bytes_max || progress->done_bytes < operation->done_bytes ||
      progress->done_bytes > operation->total_bytes) {
    return engine_.violation(c, "progress of an operation that does not go on");
  }
  advance(c, *operation, progress->done_bytes);
}

void PacketReader::on_rma_read_data(Connection& c, const wire::FramePrefix& prefix, Bytes header, Bytes payload) {
  const std::optional<wire::RmaReadData> frame = wire::decode_rma_read_data(header, prefix);
  RmaInitiator::Operation* operation = frame ? c.rma.find(frame->operation, false) : nullptr;
  if (operation == nullptr || operation->phase != RmaInitiator::Phase::asked || operation->total_bytes > inline_bytes_max ||
      frame->total_bytes != operation->total_bytes || payload.size() != operation->total_bytes || operation->done_bytes != 0) {
    return engine_.violation(c, "data of a read that was not asked for");
  }
  std::memcpy(operation->destination.data(), payload.data(), payload.size());
  operation->done_bytes = operation->total_bytes;
}

void PacketReader::on_rma_end(Connection& c, Bytes header, bool write) {
  const std::optional<wire::RmaEnd> frame = wire::decode_rma_end(header);
  RmaInitiator::Operation* operation = frame ? c.rma.find(frame->operation, write) : nullptr;
  // Of a large read the bytes were written by the peer's card, before this came.
  const bool large = operation != nullptr && operation->total_bytes > inline_bytes_max;
  if (operation == nullptr || frame->early || (write && operation->phase != RmaInitiator::Phase::awaiting_end) ||
      (!write && !large && frame->ending.good() && operation->done_bytes != operation->total_bytes)) {
    return engine_.violation(c, "an answer to an operation that was not sent");
  }
  if (large && frame->ending.good()) advance(c, *operation, operation->total_bytes);
  if (large) {
    CHECK(c.exposed > 0);
    --c.exposed;
  }
  c.rma.finish(RmaInitiator::slot_of(frame->operation), frame->ending, c.messages, c.send_timeout,
               [&](uint64_t token, ports::OperationResult ending) { engine_.operation_ended(c, token, ending); });
}

void PacketReader::on_mailbox_hint(Connection& c, Bytes header) {
  const std::optional<wire::MailboxHint> frame = wire::decode_mailbox_hint(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "malformed hint");
  if (!c.left && c.state == State::open) engine_.sink().on_mailbox_ready(c.id, frame->mailbox, frame->epoch);
}

}  // namespace ccixfer::rdma
