// What comes in: straight into the memory that it is for; only headers, and what happened to be behind them, pass through the
// staging buffer that all connections share.
#include "transports/stream/frame_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "core/wire/sealed_record.h"
#include "transports/connection/allowed_frames.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

using wire::Kind;

namespace {

// Of a header or a record that is not all here.
constexpr size_t beginning_bytes_max = std::max(wire::header_bytes_max, wire::sealed_overhead_bytes + wire::sealed_text_bytes_max);

bool is_bulk(Payload payload) { return payload == Payload::write || payload == Payload::read; }

// Before the peer has sealed anything, TLS may still refuse our proof.
bool comes_sealed(const Connection& c, Bytes bytes) {
  const bool refused = c.dialler && c.secured != nullptr && !c.secured->is_confirmed() &&
                       std::to_integer<uint8_t>(bytes.front()) == static_cast<uint8_t>(Kind::handshake);
  return c.is_sealed() && !refused;
}

// How much may be read where a header begins, of which `beginning` is here, so that nothing of a payload behind it comes along:
// no header, and no record with one, that has a payload to be spliced behind it, is shorter.
size_t bytes_before_payload(const Connection& c, Bytes beginning) {
  const size_t overhead_bytes = c.is_sealed() ? wire::sealed_overhead_bytes : 0;
  const size_t least = wire::rma_read_data_header_bytes + overhead_bytes;
  if (!c.is_sealed()) return (beginning.size() < least ? least : wire::header_bytes_max) - beginning.size();
  const std::optional<wire::SealedPrefix> prefix = wire::decode_sealed_prefix(beginning);
  const size_t whole = prefix ? prefix->record_bytes() : least;
  return whole > beginning.size() ? whole - beginning.size() : least;
}

}  // namespace

FrameReader::FrameReader(Engine& engine, StreamNet& net, Handshake& handshake, LentMemory& lent)
    : engine_(engine),
      net_(net),
      handshake_(handshake),
      lent_(lent),
      staging_(beginning_bytes_max + staging_bytes),
      discarded_(discard_bytes) {}

void FrameReader::receive(Connection& c) {
  size_t budget = receive_budget_bytes;
  while (c.readable && budget > 0 && c.state != State::gone && !c.keeps_hello()) {
    const bool discarding = !parsing(c);
    if (!discarding && receive_through(c, budget)) continue;
    if (!c.readable || c.state == State::gone) return;
    // With bytes for a splice pipe to come, nothing beyond the header is read: it would have to be copied.
    const bool exactly = c.rx.through && !c.rma.empty();
    MutableBytes direct;
    size_t kept = 0;
    size_t staging_size = 0;
    if (discarding) {
      direct = discarded_;
    } else if (c.rx.rest_bytes > 0) {
      direct = payload_memory(c);
      if (direct.size() == c.rx.rest_bytes && !exactly)
        staging_size = c.rx.payload == Payload::message ? staging_bytes : staging_behind_bulk_bytes;
    } else {
      kept = c.rx.pending.size();
      if (kept > 0) std::memcpy(staging_.data(), c.rx.pending.data(), kept);
      staging_size = !exactly       ? staging_bytes
                     : !c.rx.within ? staging_between_bytes
                                    : bytes_before_payload(c, Bytes(staging_).first(kept));
    }
    const std::array<IoSpan, 2> into = {{{direct.data(), direct.size()}, {staging_.data() + kept, staging_size}}};
    const std::span<const IoSpan> spans(into);
    const int64_t n = net_.recv(c.stream, direct.empty() ? spans.last(1) : staging_size == 0 ? spans.first(1) : spans);
    if (!received(c, n)) return;
    const auto bytes = static_cast<size_t>(n);
    budget -= std::min(budget, bytes);
    if (discarding) continue;
    const size_t placed = std::min(bytes, direct.size());
    if (placed > 0) payload_arrived(c, placed);
    if (bytes > placed) {
      c.rx.pending.clear();
      consume(c, {staging_.data(), kept + bytes - placed});
    }
    // A short one is mostly all that there is, and its answer need not wait for the next try to tell so.
    if (bytes < direct.size() + staging_size && !c.broken && net_.nothing_to_read(c.stream)) c.readable = false;
  }
}

// False: nothing came, which may be the end of the stream.
bool FrameReader::received(Connection& c, int64_t n) {
  if (n == io_again) {
    c.readable = false;
    if (c.broken) stream_ended(c);
    return false;
  }
  if (n <= 0) {
    stream_ended(c);
    return false;
  }
  engine_.counters().add(Counter::bytes_in, static_cast<uint64_t>(n));
  c.received_bytes += static_cast<uint64_t>(n);
  engine_.heard(c);
  return true;
}

// Of the payload that comes next, if it is to go into a splice pipe. A few bytes into an empty one are not worth it.
ports::FillProgress* FrameReader::fill_through(Connection& c) {
  if (c.rx.payload != Payload::read || c.rx.rest_bytes == 0) return nullptr;
  ports::FillProgress* fill = c.rma.at(c.rx.slot).fill;
  if (fill == nullptr || fill->splice_pipe == nullptr) return nullptr;
  return fill->splice_pipe->held_bytes() > 0 || c.rx.rest_bytes >= splice_pipe_bytes_min ? fill : nullptr;
}

// True: bytes came into a splice pipe. Else the usual way, if the connection is still readable.
bool FrameReader::receive_through(Connection& c, size_t& budget) {
  ports::FillProgress* fill = fill_through(c);
  if (fill == nullptr) return false;
  const int64_t n = net_.recv_to(c.stream, *fill->splice_pipe, static_cast<size_t>(c.rx.rest_bytes));
  if (n == io_full) {
    fill->leave_splice_pipe(c.rma.at(c.rx.slot).destination);
    return false;
  }
  if (!received(c, n)) return false;
  c.rx.through = true;
  fill->passed_bytes += static_cast<uint64_t>(n);
  budget -= std::min(budget, static_cast<size_t>(n));
  payload_arrived(c, static_cast<size_t>(n));
  return true;
}

void FrameReader::consume(Connection& c, MutableBytes bytes) {
  while (!bytes.empty() && parsing(c)) {
    if (c.keeps_hello()) return engine_.violation(c, "a frame before the answer to its hello");
    const size_t taken = c.rx.rest_bytes > 0      ? take_payload(c, bytes)
                         : comes_sealed(c, bytes) ? take_record(c, bytes)
                                                  : take_frame(c, bytes);
    if (taken == 0) break;
    bytes = bytes.subspan(taken);
  }
  if (parsing(c)) c.rx.pending.assign(bytes.begin(), bytes.end());
}

size_t FrameReader::take_payload(Connection& c, Bytes bytes) {
  const MutableBytes memory = payload_memory(c);
  const size_t size = std::min(memory.size(), bytes.size());
  // Bytes that came with a header are here already; those before them join them.
  if (ports::FillProgress* fill = fill_through(c); fill != nullptr && fill->splice_pipe->held_bytes() > 0) {
    fill->leave_splice_pipe(c.rma.at(c.rx.slot).destination);
  }
  if (c.rx.payload != Payload::dropped) std::memcpy(memory.data(), bytes.data(), size);
  payload_arrived(c, size);
  return size;
}

size_t FrameReader::take_frame(Connection& c, Bytes bytes) {
  if (bytes.size() < wire::prefix_bytes) return 0;
  const std::optional<wire::FramePrefix> prefix = wire::decode_prefix(bytes);
  if (!prefix) return engine_.violation(c, "malformed frame"), 0;
  if (!connection::frame_allowed(c.state, prefix->kind)) return engine_.violation(c, "a frame that does not belong here"), 0;
  if (bytes.size() < prefix->header_bytes) return 0;
  const Bytes header = bytes.first(prefix->header_bytes);
  if (!wire::check_holds(header)) return engine_.violation(c, "damaged frame header"), 0;
  on_frame(c, *prefix, header);
  return header.size();
}

// ---- Sealed records: frames as above, once a whole record is here and has opened.

size_t FrameReader::take_record(Connection& c, MutableBytes bytes) {
  if (bytes.size() < wire::sealed_prefix_bytes) return 0;
  const std::optional<wire::SealedPrefix> prefix = wire::decode_sealed_prefix(bytes);
  if (!prefix) return damaged(c, "what should be sealed is not"), 0;
  if (bytes.size() < prefix->record_bytes()) return 0;
  const std::optional<MutableBytes> text = c.secured->open(bytes.first(prefix->record_bytes()));
  if (!text) return damaged(c, "a sealed record was changed on its way"), 0;
  consume_text(c, *text);
  return prefix->record_bytes();
}

void FrameReader::consume_text(Connection& c, Bytes text) {
  while (!text.empty() && parsing(c)) {
    if (c.keeps_hello()) return engine_.violation(c, "a frame before the answer to its hello");
    const bool within_message = c.rx.rest_bytes > 0 && !is_bulk(c.rx.payload);
    const size_t taken = within_message ? take_payload(c, text) : c.rx.rest_bytes > 0 ? 0 : take_frame(c, text);
    if (taken == 0 && parsing(c)) return engine_.violation(c, "a sealed record that does not end with a frame");
    text = text.subspan(taken);
  }
  if (parsing(c) && c.rx.rest_bytes > 0 && !is_bulk(c.rx.payload)) {
    engine_.violation(c, "a sealed record that does not end with a frame");
  }
}

void FrameReader::damaged(Connection& c, std::string_view reason) {
  if (c.state != State::hello_sent) return engine_.violation(c, reason);
  engine_.counters().add(Counter::frames_rejected);
  engine_.lose(c, Status::not_authenticated, reason);
}

void FrameReader::on_frame(Connection& c, const wire::FramePrefix& prefix, Bytes header) {
  switch (prefix.kind) {
    case Kind::handshake:
      return handshake_.on_handshake(c, header);
    case Kind::hello:
      return handshake_.take_hello(c, header);
    case Kind::hello_reply:
      return handshake_.on_hello_reply(c, header);
    case Kind::connect_accept:
      return handshake_.on_connect_accept(c);
    case Kind::connect_reject:
      return handshake_.on_connect_reject(c, header);
    case Kind::connect_ack:
      return handshake_.on_connect_ack(c);
    case Kind::message:
      return on_message(c, prefix.payload_bytes, header);
    case Kind::message_ack:
      return on_message_ack(c, header);
    case Kind::rma_write:
      return on_rma_write(c, prefix, header);
    case Kind::rma_write_ack:
      return on_rma_write_ack(c, header);
    case Kind::rma_read:
      return on_rma_read(c, header);
    case Kind::rma_read_data:
      return on_rma_read_data(c, prefix, header);
    case Kind::rma_read_end:
      return on_rma_read_end(c, header);
    case Kind::keepalive:
      c.probe_answer_due = true;
      return;
    case Kind::keepalive_ack:
      return;
    case Kind::bye:
      return handshake_.on_bye(c, header);
    case Kind::mailbox_hint:
      return on_mailbox_hint(c, header);
  }
}

void FrameReader::on_message(Connection& c, uint32_t payload_bytes, Bytes header) {
  const std::optional<wire::Message> frame = wire::decode_message(header);
  if (!frame || payload_bytes > c.max_send_bytes) return engine_.violation(c, "malformed message");
  acknowledged(c, frame->acknowledged, Status::success);
  if (!parsing(c)) return;
  c.rx.rest_bytes = payload_bytes;
  c.rx.message_check = frame->payload_check;
  switch (c.incoming.arriving(frame->sequence)) {
    case MessageReceiver::Verdict::violation:
      c.rx.rest_bytes = 0;
      return engine_.violation(c, "a message out of order or beyond the window");
    case MessageReceiver::Verdict::drop:
      c.rx.payload = Payload::dropped;
      c.rx.refused = false;
      break;
    case MessageReceiver::Verdict::deliver:
      c.rx.message = engine_.sink().on_message_begin(c.id, payload_bytes);
      c.rx.refused = c.rx.message.data() == nullptr;
      c.rx.payload = c.rx.refused ? Payload::dropped : Payload::message;
      CHECK(c.rx.refused || c.rx.message.size() >= payload_bytes);
      if (!c.rx.refused) c.rx.message = c.rx.message.first(payload_bytes);
      break;
  }
  if (payload_bytes == 0) payload_arrived(c, 0);
}

void FrameReader::on_message_ack(Connection& c, Bytes header) {
  const std::optional<wire::MessageAck> frame = wire::decode_message_ack(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "an acknowledgement that does not belong here");
  acknowledged(c, frame->next, frame->status);
}

void FrameReader::acknowledged(Connection& c, uint64_t next, Status status) {
  const bool fine = c.is_unreliable()
                        ? next == 0
                        : c.messages.acknowledge(next, status, engine_.now(), [&](const MessageOwner& owner, Status ended) {
                            engine_.message_ended(c, owner, ended);
                          });
  if (!fine) engine_.violation(c, "an acknowledgement of what was not sent");
}

void FrameReader::on_rma_write(Connection& c, const wire::FramePrefix& prefix, Bytes header) {
  const std::optional<wire::RmaWrite> frame = wire::decode_rma_write(header, prefix);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "malformed write");
  if (!c.served.chunk(*frame, prefix.payload_bytes, engine_.target()))
    return engine_.violation(c, "a write of an unknown or doubled operation");
  c.rx.payload = Payload::write;
  c.rx.slot = RmaInitiator::slot_of(frame->operation);
  c.rx.rest_bytes = prefix.payload_bytes;
}

void FrameReader::on_rma_write_ack(Connection& c, Bytes header) {
  const std::optional<wire::RmaEnd> frame = wire::decode_rma_end(header);
  RmaInitiator::Operation* operation = frame ? c.rma.find(frame->operation, true) : nullptr;
  const bool early = frame && frame->early;
  if (operation == nullptr || (!early && operation->phase != RmaInitiator::Phase::awaiting_end)) {
    return engine_.violation(c, "an answer to a write that was not sent");
  }
  if (early) {
    operation->refused = true;
    c.rma.resume();  // it need not wait for what is refused
    return;
  }
  // Its end gives the memory back, and only what the peer has acknowledged is surely read from it no more.
  if (operation->lent_until > 0 && operation->lent_until > lent_.acknowledged_bytes(c)) {
    return engine_.violation(c, "an answer to a write that has not arrived");
  }
  c.rma.finish(RmaInitiator::slot_of(frame->operation), frame->ending, c.messages, c.send_timeout,
               [&](uint64_t token, ports::OperationResult ending) { engine_.operation_ended(c, token, ending); });
}

void FrameReader::on_rma_read(Connection& c, Bytes header) {
  const std::optional<wire::RmaRead> frame = wire::decode_rma_read(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "malformed read");
  if (!c.served.request(*frame, engine_.target())) return engine_.violation(c, "a read of a doubled operation");
}

void FrameReader::on_rma_read_data(Connection& c, const wire::FramePrefix& prefix, Bytes header) {
  const std::optional<wire::RmaReadData> frame = wire::decode_rma_read_data(header, prefix);
  const RmaInitiator::Operation* operation = frame ? c.rma.find(frame->operation, false) : nullptr;
  if (operation == nullptr || frame->offset_bytes != operation->done_bytes || frame->total_bytes != operation->total_bytes) {
    return engine_.violation(c, "data of a read that was not asked for");
  }
  c.rx.payload = Payload::read;
  c.rx.slot = RmaInitiator::slot_of(frame->operation);
  c.rx.rest_bytes = prefix.payload_bytes;
}

void FrameReader::on_rma_read_end(Connection& c, Bytes header) {
  const std::optional<wire::RmaEnd> frame = wire::decode_rma_end(header);
  const RmaInitiator::Operation* operation = frame ? c.rma.find(frame->operation, false) : nullptr;
  if (operation == nullptr || (frame->ending.good() && operation->done_bytes != operation->total_bytes)) {
    return engine_.violation(c, "an answer to a read that was not asked for");
  }
  c.rma.finish(RmaInitiator::slot_of(frame->operation), frame->ending, c.messages, c.send_timeout,
               [&](uint64_t token, ports::OperationResult ending) { engine_.operation_ended(c, token, ending); });
}

void FrameReader::on_mailbox_hint(Connection& c, Bytes header) {
  const std::optional<wire::MailboxHint> frame = wire::decode_mailbox_hint(header);
  if (!frame || c.is_unreliable()) return engine_.violation(c, "malformed hint");
  if (!c.left && c.state == State::open) engine_.sink().on_mailbox_ready(c.id, frame->mailbox, frame->epoch);
}

// Where the next bytes of the payload go: at least one byte, at most its rest.
MutableBytes FrameReader::payload_memory(Connection& c) {
  const auto rest = static_cast<size_t>(c.rx.rest_bytes);
  switch (c.rx.payload) {
    case Payload::message:
      return c.rx.message.last(rest);
    case Payload::write: {
      const MutableBytes memory = c.served.write_span(c.rx.slot, rest, engine_.target());
      if (!memory.empty()) return memory;
      break;
    }
    case Payload::read: {
      const RmaInitiator::Operation& operation = c.rma.at(c.rx.slot);
      return operation.destination.subspan(static_cast<size_t>(operation.done_bytes), rest);
    }
    case Payload::none:
    case Payload::dropped:
      break;
  }
  return MutableBytes(discarded_).first(std::min(rest, discarded_.size()));
}

// A fragment's bytes have reached the mailbox's buffer, or whatever memory they are for.
void FrameReader::payload_arrived(Connection& c, size_t bytes) {
  c.rx.rest_bytes -= bytes;
  switch (c.rx.payload) {
    case Payload::write:
      c.served.written(c.rx.slot, bytes, engine_.target());
      break;
    case Payload::read: {
      RmaInitiator::Operation& operation = c.rma.at(c.rx.slot);
      operation.done_bytes += bytes;
      if (operation.fill != nullptr) operation.fill->placed_bytes = operation.done_bytes;
      c.rx.within = operation.done_bytes < operation.total_bytes;
      break;
    }
    case Payload::message: {
      if (c.rx.rest_bytes > 0) return;
      c.rx.payload = Payload::none;
      const bool intact = wire::payload_check_of(c.rx.message) == c.rx.message_check;
      engine_.sink().on_message_end(c.id, intact);
      if (!intact) return engine_.violation(c, "damaged message");
      c.incoming.delivered();
      return;
    }
    case Payload::dropped:
      if (c.rx.rest_bytes > 0) return;
      if (c.rx.refused) {
        c.incoming.refused();
      } else {
        c.incoming.dropped();
      }
      break;
    case Payload::none:
      break;
  }
  if (c.rx.rest_bytes == 0) c.rx.payload = Payload::none;
}

void FrameReader::stream_ended(Connection& c) {
  c.readable = false;
  if (c.state == State::lingering) return engine_.release(c);
  if (c.state == State::awaiting_hello) engine_.counters().add(Counter::hello_rejected);
  engine_.lose(c, Status::disconnected, "the peer closed the connection without a goodbye");
}

}  // namespace ccixfer::stream
