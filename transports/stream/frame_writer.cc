// What goes out: answers first, then messages, then chunks, the connection's operations in turn. Payloads go from where they are.
#include "transports/stream/frame_writer.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

using wire::Kind;

namespace {
bool hints_due(const Connection& c) { return c.hints != nullptr && !c.hints->empty(); }
bool handshake_goes_on(const Connection& c) { return c.secured != nullptr && c.secured->has_output(); }
static_assert(wire::message_header_bytes + max_send_offered_bytes <= wire::sealed_text_bytes_max);
static_assert(2 * wire::header_bytes_max + 2 * batch_control_bytes_max <= wire::sealed_text_bytes_max);
}  // namespace

FrameWriter::FrameWriter(Engine& engine, StreamNet& net) : engine_(engine), net_(net), zeros_(staging_bytes) {}

bool FrameWriter::wants_to_send(const Connection& c) {
  if ((c.batch != nullptr && !c.batch->empty()) || c.handshake_out != nullptr || handshake_goes_on(c)) return true;
  if (c.state == State::closing && !c.bye_queued && c.messages.empty() && c.rma.empty()) return true;
  if (c.state == State::lingering) return false;
  return c.probe_due || c.probe_answer_due || c.incoming.acknowledgement_due() || bulk_to_send(c) || c.messages.sendable();
}

// An application answers what it received: the acknowledgement waits one turn for that, and both are one call and one wakeup.
bool FrameWriter::hold_acknowledgement(Connection& c) {
  if (c.ack_held || c.state != State::open || !c.incoming.acknowledgement_may_wait()) return c.ack_held = false;
  const bool has_more = (c.batch != nullptr && !c.batch->empty()) || c.handshake_out != nullptr || c.probe_due ||
                        c.probe_answer_due || bulk_to_send(c) || c.messages.sendable();
  return c.ack_held = !has_more;
}

bool FrameWriter::bulk_to_send(const Connection& c) {
  return c.served.reply_due() || hints_due(c) || c.rma.request_due() || c.rma.write_due() || c.served.read_due();
}

// A message with nothing of this connection on its way before it need not wait for a turn, unless the last such one was the first
// of many: those share a call. (What is in flight decides, as Nagle has it, RFC 896.) Nothing is reported from here: what fails
// shows in the turn.
void FrameWriter::send_at_once(Connection& c) {
  const bool is_first = c.messages.in_queue() == 1;
  const bool was_alone = c.burst <= 1;
  c.burst = is_first ? 1 : c.burst + 1;
  if (!is_first || !was_alone || engine_.in_turn() || c.state != State::open || c.is_unreliable() || c.left || c.blocked ||
      c.broken || (c.batch != nullptr && !c.batch->empty()) || c.handshake_out != nullptr || bulk_to_send(c)) {
    return engine_.touch_from_above(c);
  }
  transmit(c);
  c.ack_held = false;
  engine_.take_back(c);  // it was to have a turn for the acknowledgement that went along
  if (c.send_timeout != forever || c.broken || (!c.blocked && wants_to_send(c))) engine_.touch_from_above(c);
}

void FrameWriter::transmit(Connection& c) {
  size_t budget = send_budget_bytes;
  while (budget > 0 && c.state != State::dialling) {
    refill(c);
    if (c.batch == nullptr) return;
    if (c.batch->empty()) {
      keep_batch(std::move(c.batch));
      if (c.bye_queued && c.state == State::closing) {
        engine_.begin_lingering(c);
      }
      return;
    }
    const size_t count = gather(c, spans_);
    spans_[count - 1].more = continues(c);
    const int64_t n = net_.send(c.stream, {spans_.data(), count});
    if (n == io_again || n == 0) {
      c.going.level(engine_.now());
      c.blocked = true;
      return;
    }
    if (n < 0) {
      if (c.state == State::lingering) return engine_.release(c);
      // What the peer said last may still be unread, its goodbye for one: the end is reported when all was read.
      c.blocked = c.broken = c.readable = true;
      return;
    }
    engine_.counters().add(Counter::bytes_out, static_cast<uint64_t>(n));
    c.going.moved(static_cast<uint64_t>(n), engine_.now());
    budget -= std::min(budget, static_cast<size_t>(n));
    sent(c, static_cast<size_t>(n));
    if (c.is_sealed()) c.secured->prepare();  // while the peer works
    if (c.batch->empty() && c.state == State::open && !wants_to_send(c)) return keep_batch(std::move(c.batch));
  }
}

void FrameWriter::refill(Connection& c) {
  if (c.batch == nullptr) {
    if (!wants_to_send(c)) return;
    if (spare_batches_.empty()) {
      c.batch = std::make_unique<OutBatch>();
    } else {
      c.batch = std::move(spare_batches_.back());
      spare_batches_.pop_back();
    }
  }
  if (c.batch->queued_bytes() >= batch_refill_below_bytes || c.batch->full()) return;
  add_control(c);
  if (c.state == State::lingering) return;
  size_t messages = 0;
  while (!c.batch->full() && messages < batch_messages_bytes_max && c.messages.sendable()) {
    messages += c.messages.next_size() + wire::message_header_bytes;
    if (!add_message(c)) break;
  }
  while (bulk_to_send(c) && !c.batch->full() && c.batch->queued_bytes() < batch_refill_below_bytes && add_chunk(c)) {
  }
}

bool FrameWriter::wants_control(const Connection& c) {
  return c.probe_due || c.probe_answer_due || c.handshake_out != nullptr || handshake_goes_on(c) || c.rma.request_due() ||
         c.served.reply_due() || hints_due(c) || acknowledges_alone(c) || c.state == State::closing;
}

// Else a message goes out now, and carries it.
bool FrameWriter::acknowledges_alone(const Connection& c) {
  return c.incoming.acknowledgement_due() && (c.incoming.refusal_due() || !c.messages.sendable());
}

// Answers: each has its place kept by a flag or a slot, so a peer that sends and does not read makes nothing grow.
void FrameWriter::add_control(Connection& c) {
  if (c.batch->full() || !wants_control(c)) return;
  std::vector<std::byte>& control = c.batch->control();
  if (c.batch->control_items() == 0) control.clear();
  if (control.size() > batch_control_kept_bytes_max) return;  // until what is before it has gone out
  if (handshake_goes_on(c)) add_handshake(c);
  const bool sealed = c.is_sealed();
  const size_t start = control.size();
  if (sealed) control.resize(start + wire::sealed_prefix_bytes);
  const size_t text = control.size();
  if (c.handshake_out != nullptr) control.insert(control.end(), c.handshake_out->begin(), c.handshake_out->end());
  c.handshake_out.reset();
  wire::Writer out(control);
  if (c.state != State::lingering) {
    add_answers(c, out);
    while (c.served.reply_due() && control.size() - start < batch_control_bytes_max) {
      const RmaResponder::Reply reply = c.served.next_reply();
      reply.write ? wire::encode_write_ack(out, reply.end) : wire::encode_read_end(out, reply.end);
    }
    while (hints_due(c) && !c.served.reply_due() && control.size() - start < batch_control_bytes_max) {
      wire::encode(out, c.hints->pop_front());
    }
    while (c.rma.request_due() && control.size() - start < batch_control_bytes_max) {
      const uint32_t slot = c.rma.next_request();
      const RmaInitiator::Operation& operation = c.rma.at(slot);
      wire::encode(out, wire::RmaRead{c.rma.id(slot), operation.total_bytes, operation.remote});
    }
    if (c.state == State::closing && !c.bye_queued && c.messages.empty() && c.rma.empty()) {
      wire::encode_bye(out, {Status::disconnected, "the peer disconnected"});
      c.bye_queued = true;
    }
  }
  if (control.size() == text) return control.resize(start);
  if (sealed) {
    control.resize(control.size() + wire::sealed_tag_bytes);
    c.secured->seal(MutableBytes(control).subspan(start));
  }
  OutItem& item = c.batch->add();
  item.type = OutItem::Type::control;
  item.sealed = sealed;
  item.slot = 0;
  item.offset_bytes = start;
  item.payload_bytes = control.size() - start;
  c.batch->commit(item);
}

// What TLS says is not sealed, and nothing sealed goes out before it.
void FrameWriter::add_handshake(Connection& c) {
  std::vector<std::byte>& control = c.batch->control();
  std::vector<std::byte>& output = c.secured->output();
  OutItem& item = c.batch->add();
  item.type = OutItem::Type::control;
  item.slot = 0;
  item.offset_bytes = control.size();
  item.payload_bytes = output.size();
  control.insert(control.end(), output.begin(), output.end());
  output = {};
  c.batch->commit(item);
}

std::vector<std::byte> FrameWriter::as_sent(Connection& c, Bytes frames) {
  if (!c.is_sealed()) return {frames.begin(), frames.end()};
  std::vector<std::byte> record(frames.size() + wire::sealed_overhead_bytes);
  std::copy(frames.begin(), frames.end(), record.begin() + wire::sealed_prefix_bytes);
  c.secured->seal(record);
  return record;
}

// Those of which there is one at most. They come with every message that is answered: the vector grows once, not for each field.
void FrameWriter::add_answers(Connection& c, wire::Writer& out) {
  std::array<std::byte, 2 * wire::frame_overhead_bytes + wire::message_ack_header_bytes> memory;
  wire::Writer answers{MutableBytes(memory)};
  if (c.probe_due) wire::encode_empty(answers, Kind::keepalive);
  if (c.probe_answer_due) wire::encode_empty(answers, Kind::keepalive_ack);
  c.probe_due = c.probe_answer_due = false;
  if (acknowledges_alone(c)) {
    const MessageReceiver::Acknowledgement acknowledgement = c.incoming.acknowledgement();
    wire::encode(answers, wire::MessageAck{acknowledgement.next, acknowledgement.status});
  }
  out.bytes(answers.since(0));
}

bool FrameWriter::add_message(Connection& c) {
  MessageSender::Outgoing outgoing =
      c.messages.take([&](const MessageOwner& owner, Status status) { engine_.message_ended(c, owner, status); });
  OutItem& item = c.batch->add();
  item.type = OutItem::Type::message;
  item.flight = outgoing.flight;
  const wire::Message frame{outgoing.sequence, c.incoming.carried_acknowledgement(), outgoing.bytes.check};
  if (c.is_sealed() && !outgoing.bytes.is_short()) {
    item.message = sealed_message(c, frame, outgoing.bytes.bytes());
    item.payload_bytes = item.message.size;
    item.sealed = true;
    c.batch->commit(item);
    return true;
  }
  wire::Writer out(room_for_header(c, item));
  wire::encode(out, frame, outgoing.bytes.size);
  if (outgoing.bytes.is_short()) {
    out.bytes(outgoing.bytes.bytes());
  } else {
    item.payload_bytes = outgoing.bytes.size;
    item.message = std::move(outgoing.bytes);
  }
  finish_header(c, item, out);
  c.batch->commit(item);
  return true;
}

// The message itself may have to go out again, so it is a copy that is encrypted.
reliability::MessageBytes FrameWriter::sealed_message(Connection& c, const wire::Message& frame, Bytes payload) {
  reliability::MessageBytes record;
  const size_t size = wire::sealed_overhead_bytes + wire::message_header_bytes + payload.size();
  auto memory = std::make_shared_for_overwrite<std::byte[]>(size);
  const MutableBytes bytes(memory.get(), size);
  wire::Writer out(bytes.subspan(wire::sealed_prefix_bytes, size - wire::sealed_overhead_bytes));
  wire::encode(out, frame, static_cast<uint32_t>(payload.size()));
  out.bytes(payload);
  CHECK(out.ok());
  c.secured->seal(bytes);
  record.elsewhere = std::move(memory);
  record.size = static_cast<uint32_t>(size);
  return record;
}

// Where a header is written: of a secured connection, a record with nothing else in it.
MutableBytes FrameWriter::room_for_header(const Connection& c, OutItem& item) {
  const MutableBytes room(item.header);
  return c.is_sealed() ? room.subspan(wire::sealed_prefix_bytes, room.size() - wire::sealed_overhead_bytes) : room;
}

void FrameWriter::finish_header(Connection& c, OutItem& item, const wire::Writer& header) {
  CHECK(header.ok());
  item.header_bytes = header.position();
  item.sealed = c.is_sealed();
  if (!item.sealed) return;
  item.header_bytes += wire::sealed_overhead_bytes;
  c.secured->seal(MutableBytes(item.header).first(item.header_bytes));
}

bool FrameWriter::add_chunk(Connection& c) {
  c.served_next = !c.served_next;
  if (c.served_next) return add_read_chunk(c) || add_write_chunk(c);
  return add_write_chunk(c) || add_read_chunk(c);
}

uint64_t FrameWriter::chunk_bytes(const Connection& c) {
  return std::clamp<uint64_t>(c.going.bytes_in(chunk_time), chunk_bytes_min, wire::chunk_bytes_max);
}

// An operation goes out in chunks, so that messages and replies wait for one chunk at most. The first keeps its place until it is
// out: in turns, none of many would end before nearly all do, and on a slow link nobody above would see progress for as long.
// One whose next chunk has not arrived here yet lets the others pass: what is promised must be there.
bool FrameWriter::add_write_chunk(Connection& c) {
  while (c.rma.write_due()) {
    const uint32_t slot = c.rma.next_write();
    const RmaInitiator::Operation& operation = c.rma.at(slot);
    const ports::FillProgress* fill = operation.fill;
    const uint64_t rest = operation.total_bytes - operation.done_bytes;
    uint64_t size = std::min(rest, chunk_bytes(c));
    if (fill != nullptr && !fill->ready(operation.done_bytes, size, operation.total_bytes)) size = std::min(rest, chunk_bytes_min);
    if (fill == nullptr || operation.refused || fill->ready(operation.done_bytes, size, operation.total_bytes)) {
      add_write_chunk(c, slot, operation.refused ? 0 : static_cast<uint32_t>(size));
      return true;
    }
    if (!fill->failed) {
      c.rma.write_waits(slot);
    } else if (operation.done_bytes > 0) {
      add_write_chunk(c, slot, 0);
      return true;
    } else {  // the target never heard of it
      c.rma.cancel(slot, [&](uint64_t token, ports::OperationResult ending) { engine_.operation_ended(c, token, ending); });
      engine_.touch(c);  // a fence may be behind it
    }
  }
  return false;
}

void FrameWriter::add_write_chunk(Connection& c, uint32_t slot, uint32_t size) {
  RmaInitiator::Operation& operation = c.rma.at(slot);
  OutItem& item = c.batch->add();
  item.type = OutItem::Type::write;
  item.slot = slot;
  item.offset_bytes = operation.done_bytes;
  item.payload_bytes = size;
  wire::Writer out(room_for_header(c, item));
  wire::encode(out, wire::RmaWrite{c.rma.id(slot), operation.total_bytes, operation.done_bytes, operation.remote, size == 0}, size);
  finish_header(c, item, out);
  operation.done_bytes += size;
  c.batch->commit(item);
}

bool FrameWriter::add_read_chunk(Connection& c) {
  while (const std::optional<uint32_t> slot = c.served.next_to_read(chunk_bytes(c), engine_.target())) {
    const RmaResponder::Chunk chunk = c.served.next_chunk(*slot, chunk_bytes(c), engine_.target());
    if (chunk.bytes == 0) continue;
    OutItem& item = c.batch->add();
    item.type = OutItem::Type::read_reply;
    item.slot = *slot;
    item.offset_bytes = chunk.frame.offset_bytes;
    item.payload_bytes = chunk.bytes;
    wire::Writer out(room_for_header(c, item));
    wire::encode(out, chunk.frame, chunk.bytes);
    finish_header(c, item, out);
    c.batch->commit(item);
    return true;
  }
  return false;
}

// Whether the batch ends with a chunk whose successor is sure to be sent after it, and is here. A chunk is no multiple of a packet,
// and its last one would leave nearly empty, to be received, acknowledged and woken up for like a full one.
bool FrameWriter::continues(Connection& c) const {
  const OutItem& last = (*c.batch)[c.batch->count() - 1];
  if (last.type == OutItem::Type::read_reply) {
    return c.served.continues(last.slot, last.offset_bytes + last.payload_bytes, engine_.target());
  }
  if (last.type != OutItem::Type::write) return false;
  const RmaInitiator::Operation& operation = c.rma.at(last.slot);
  const uint64_t rest = operation.total_bytes - operation.done_bytes;
  return last.payload_bytes > 0 && rest > 0 && !operation.refused &&
         (operation.fill == nullptr ||
          operation.fill->ready(operation.done_bytes, std::min(rest, chunk_bytes_min), operation.total_bytes));
}

// Where the bytes of the batch are now: memory of others is asked for again at every call.
size_t FrameWriter::gather(Connection& c, std::span<ConstIoSpan> into) {
  size_t count = 0;
  const auto add = [&](Bytes bytes, bool lent = false, bool is_file = false) {
    if (!bytes.empty()) into[count++] = {bytes.data(), bytes.size(), lent, nullptr, false, is_file};
  };
  // Bytes of what is being filled from `at` on: those before its splice pipe's from the memory, the rest from there.
  const auto in_memory = [](Bytes bytes, const ports::FillProgress* fill, uint64_t at) {
    const uint64_t from = fill == nullptr || fill->splice_pipe == nullptr ? UINT64_MAX : fill->splice_pipe_begin();
    return from > at ? static_cast<size_t>(std::min<uint64_t>(bytes.size(), from - at)) : 0;
  };
  const auto add_lent = [&](Bytes bytes, size_t here, const ports::FillProgress* fill, bool lent, bool is_file = false) {
    add(bytes.first(here), lent, is_file);
    if (here < bytes.size()) into[count++] = {nullptr, bytes.size() - here, true, fill->splice_pipe};
  };
  for (size_t i = 0; i < c.batch->count(); ++i) {
    const OutItem& item = (*c.batch)[i];
    if (item.done_bytes < item.header_bytes) add(Bytes(item.header).subspan(item.done_bytes, item.header_bytes - item.done_bytes));
    const size_t at = item.done_bytes > item.header_bytes ? item.done_bytes - item.header_bytes : 0;
    const size_t size = item.payload_bytes - at;
    switch (item.type) {
      case OutItem::Type::control:
        add(Bytes(c.batch->control()).subspan(static_cast<size_t>(item.offset_bytes) + at, size));
        break;
      case OutItem::Type::message:
        if (size > 0) add(item.message.bytes().subspan(at, size));
        break;
      case OutItem::Type::write: {
        const RmaInitiator::Operation& operation = c.rma.at(item.slot);
        const uint64_t from = item.offset_bytes + at;
        const Bytes bytes = operation.source.subspan(static_cast<size_t>(from), size);
        add_lent(bytes, in_memory(bytes, operation.fill, from), operation.fill, !operation.local_completion,
                 operation.source_is_file);
        break;
      }
      case OutItem::Type::read_reply: {
        const Bytes memory = c.served.read_span(item.slot, item.offset_bytes + at, size, engine_.target());
        // Revoked: the length is promised, so zeros go out, and the end will say that the data are bad.
        const Bytes bytes = memory.empty() ? Bytes(zeros_).first(std::min(size, zeros_.size())) : memory;
        const ports::FillProgress* fill = memory.empty() ? nullptr : c.served.fill_of(item.slot, engine_.target());
        const size_t here = in_memory(bytes, fill, item.offset_bytes + at);
        add_lent(bytes, here, fill, c.lends && here > 0 && !memory.empty() && c.served.lend(item.slot, engine_.target()));
        if (bytes.size() < size) return count;
        break;
      }
    }
  }
  return count;
}

void FrameWriter::sent(Connection& c, size_t bytes) {
  while (bytes > 0) {
    OutItem& item = c.batch->front();
    const size_t step = std::min(bytes, item.left_bytes());
    c.batch->advance(item, step);
    c.given_bytes += step;
    if (c.lends) note_lent(c, item);
    bytes -= step;
    if (item.left_bytes() > 0) return;
    item_sent(c, item);
    c.batch->pop_front();
  }
}

void FrameWriter::note_lent(Connection& c, const OutItem& item) {
  if (item.type == OutItem::Type::read_reply) return c.served.given(item.slot, c.given_bytes);
  if (item.type != OutItem::Type::write) return;
  RmaInitiator::Operation& operation = c.rma.at(item.slot);
  if (!operation.local_completion && !operation.source_is_file) c.lent_until = operation.lent_until = c.given_bytes;
}

void FrameWriter::item_sent(Connection& c, const OutItem& item) {
  switch (item.type) {
    case OutItem::Type::control:
      return;
    case OutItem::Type::message:
      return c.messages.sent(item.flight);
    case OutItem::Type::write: {
      const RmaInitiator::Operation& operation = c.rma.at(item.slot);
      const bool aborted = item.payload_bytes == 0;
      if (!aborted && operation.done_bytes < operation.total_bytes) return c.rma.write_goes_on(item.slot);
      c.rma.all_sent(item.slot);
      if (operation.local_completion) engine_.sink().on_local_completion(c.id, operation.token);
      return;
    }
    case OutItem::Type::read_reply:
      return c.served.chunk_sent(item.slot, static_cast<uint32_t>(item.payload_bytes), engine_.target());
  }
}

void FrameWriter::keep_batch(std::unique_ptr<OutBatch> batch) {
  batch->clear();
  if (spare_batches_.size() < batches_kept_max) spare_batches_.push_back(std::move(batch));
}

}  // namespace ccixfer::stream
