#include "transports/datagram/frames.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ccixfer::datagram {
namespace {

using wire::Reader;
using wire::Writer;

void kind(Writer& out, FrameKind value) { out.u8(static_cast<uint8_t>(value)); }

HelloReplyFrame decode_hello_reply(Reader& in) {
  HelloReplyFrame frame;
  frame.attempt = in.u32();
  frame.key = in.u64();
  frame.offer.max_send_bytes = in.u32();
  frame.offer.sends_in_flight_max = in.u32();
  frame.offer.rmas_in_flight_max = in.u32();
  frame.datagram_bytes = in.u32();
  return frame;
}

MessageFrame decode_message(Reader& in) {
  MessageFrame frame;
  frame.sequence = in.u64();
  frame.flight = in.u32();
  const uint8_t empty = in.u8();
  in.require(empty <= 1);
  frame.empty = empty == 1;
  frame.bytes = in.bytes16();
  in.require(!frame.empty || frame.bytes.empty());
  return frame;
}

MessagePartFrame decode_message_part(Reader& in) {
  MessagePartFrame frame;
  frame.sequence = in.u64();
  frame.flight = in.u32();
  frame.total_bytes = in.u16();
  frame.index = in.u8();
  frame.bytes = in.bytes16();
  const uint32_t offset = frame.index * part_bytes;
  in.require(frame.total_bytes > part_bytes && frame.total_bytes <= datagram_bytes_max && offset < frame.total_bytes &&
             frame.bytes.size() == std::min(frame.total_bytes - offset, part_bytes));
  return frame;
}

bool can_be_chunk_bytes(uint16_t bytes) { return bytes == 0 || (bytes >= part_bytes && bytes <= datagram_bytes_max); }

MessageAckFrame decode_message_ack(Reader& in) {
  MessageAckFrame frame;
  frame.next = in.u64();
  frame.flight = in.u32();
  const uint8_t status = in.u8();
  frame.status = static_cast<Status>(status);
  in.require(frame.status == Status::success || frame.status == Status::receiver_not_ready || frame.status == Status::disconnected);
  frame.words = in.u8();
  in.require(frame.words <= MessageAckFrame::words_max);
  if (!in.ok()) return frame;
  for (uint8_t i = 0; i < frame.words; ++i) frame.bits[i] = in.u64();
  return frame;
}

// One word: the total in 48 bits, and above it the length of a chunk.
uint64_t lengths(uint64_t total_bytes, uint16_t chunk_bytes) { return uint64_t{chunk_bytes} << 48 | total_bytes; }
std::pair<uint64_t, uint16_t> decode_lengths(Reader& in) {
  const uint64_t word = in.u64();
  return {word & ((uint64_t{1} << 48) - 1), static_cast<uint16_t>(word >> 48)};
}

RmaWriteFrame decode_rma_write(Reader& in) {
  RmaWriteFrame frame;
  frame.operation = in.u64();
  std::tie(frame.total_bytes, frame.chunk_bytes) = decode_lengths(in);
  frame.offset_bytes = in.u64();
  frame.remote = wire::decode_remote_ref(in);
  frame.bytes = in.bytes16();
  in.require(can_be_chunk_bytes(frame.chunk_bytes));
  in.require(frame.total_bytes > 0 && frame.offset_bytes <= frame.total_bytes &&
             frame.bytes.size() <= frame.total_bytes - frame.offset_bytes && (!frame.bytes.empty() || frame.offset_bytes == 0));
  return frame;
}

template <typename ChunkFrame>
ChunkFrame decode_chunk(Reader& in, bool is_short) {
  ChunkFrame frame;
  frame.operation = is_short ? in.u32() : in.u64();
  frame.offset_bytes = is_short ? in.u32() : in.u64();
  frame.bytes = in.bytes16();
  in.require(!frame.bytes.empty() && is_short == is_short_chunk(frame.operation, frame.offset_bytes));
  return frame;
}
template <typename ChunkFrame>
void encode_chunk(Writer& out, const ChunkFrame& frame, FrameKind short_kind, FrameKind long_kind) {
  if (is_short_chunk(frame.operation, frame.offset_bytes)) {
    kind(out, short_kind);
    out.u32(static_cast<uint32_t>(frame.operation));
    out.u32(static_cast<uint32_t>(frame.offset_bytes));
  } else {
    kind(out, long_kind);
    out.u64(frame.operation);
    out.u64(frame.offset_bytes);
  }
  out.bytes16(frame.bytes);
}

RmaReadFrame decode_rma_read(Reader& in) {
  RmaReadFrame frame;
  frame.operation = in.u64();
  std::tie(frame.total_bytes, frame.chunk_bytes) = decode_lengths(in);
  frame.remote = wire::decode_remote_ref(in);
  in.require(frame.total_bytes > 0 && can_be_chunk_bytes(frame.chunk_bytes));
  return frame;
}

RmaEndFrame decode_rma_end(Reader& in) {
  RmaEndFrame frame;
  frame.operation = in.u64();
  const uint8_t status = in.u8();
  in.require(is_known_status(status));
  frame.ending.status = static_cast<Status>(status);
  const uint8_t write = in.u8();
  in.require(write <= 1);
  frame.write = write == 1;
  frame.ending.detail = in.u64();
  in.require(frame.write || !frame.ending.good());
  return frame;
}

}  // namespace

void encode_ack(Writer& out, const reliability::Ack& ack, size_t bytes_max) {
  kind(out, FrameKind::ack);
  reliability::encode(out, ack, bytes_max - 1);
}
void encode(Writer& out, const PingFrame& /*frame*/) { kind(out, FrameKind::ping); }
void encode(Writer& out, const AcceptFrame& /*frame*/) { kind(out, FrameKind::accept); }

void encode(Writer& out, const HelloReplyFrame& frame) {
  kind(out, FrameKind::hello_reply);
  out.u32(frame.attempt);
  out.u64(frame.key);
  out.u32(frame.offer.max_send_bytes);
  out.u32(frame.offer.sends_in_flight_max);
  out.u32(frame.offer.rmas_in_flight_max);
  out.u32(frame.datagram_bytes);
}

void encode(Writer& out, const EndNoticeFrame& frame) {
  kind(out, frame.reject ? FrameKind::reject : FrameKind::bye);
  encode(out, frame.notice);
}

void encode(Writer& out, const MessageFrame& frame) {
  kind(out, FrameKind::message);
  out.u64(frame.sequence);
  out.u32(frame.flight);
  out.u8(frame.empty ? 1 : 0);
  out.bytes16(frame.bytes);
}

void encode(Writer& out, const MessagePartFrame& frame) {
  kind(out, FrameKind::message_part);
  out.u64(frame.sequence);
  out.u32(frame.flight);
  out.u16(static_cast<uint16_t>(frame.total_bytes));
  out.u8(frame.index);
  out.bytes16(frame.bytes);
}

void encode(Writer& out, const PaddingFrame& frame) {
  kind(out, FrameKind::padding);
  out.bytes16(frame.bytes);
}

void encode_padding(Writer& out, size_t frame_bytes) {
  kind(out, FrameKind::padding);
  out.u16(static_cast<uint16_t>(frame_bytes - padding_frame_bytes));
  out.zeros(frame_bytes - padding_frame_bytes);
}

void encode(Writer& out, const MessageAckFrame& frame) {
  kind(out, FrameKind::message_ack);
  out.u64(frame.next);
  out.u32(frame.flight);
  out.u8(static_cast<uint8_t>(frame.status));
  out.u8(frame.words);
  for (uint8_t i = 0; i < frame.words; ++i) out.u64(frame.bits[i]);
}

void encode(Writer& out, const RmaWriteFrame& frame) {
  kind(out, FrameKind::rma_write);
  out.u64(frame.operation);
  out.u64(lengths(frame.total_bytes, frame.chunk_bytes));
  out.u64(frame.offset_bytes);
  encode(out, frame.remote);
  out.bytes16(frame.bytes);
}

void encode(Writer& out, const RmaWriteMoreFrame& frame) {
  encode_chunk(out, frame, FrameKind::rma_write_more_short, FrameKind::rma_write_more);
}

void encode(Writer& out, const RmaReadFrame& frame) {
  kind(out, FrameKind::rma_read);
  out.u64(frame.operation);
  out.u64(lengths(frame.total_bytes, frame.chunk_bytes));
  encode(out, frame.remote);
}

void encode(Writer& out, const RmaReadDataFrame& frame) {
  encode_chunk(out, frame, FrameKind::rma_read_data_short, FrameKind::rma_read_data);
}

void encode(Writer& out, const RmaEndFrame& frame) {
  kind(out, FrameKind::rma_end);
  out.u64(frame.operation);
  out.u8(static_cast<uint8_t>(frame.ending.status));
  out.u8(frame.write ? 1 : 0);
  out.u64(frame.ending.detail);
}

void encode(Writer& out, const MailboxHintFrame& frame) {
  kind(out, FrameKind::mailbox_hint);
  out.u64(frame.number);
  out.u64(frame.mailbox);
  out.u64(frame.epoch);
}

void encode(Writer& out, const GreetingFrame& frame) {
  kind(out, FrameKind::greeting);
  out.bytes16(frame.hello);
}

void encode(Writer& out, const PathChallengeFrame& frame) {
  kind(out, FrameKind::path_challenge);
  out.u64(frame.token);
}

void encode(Writer& out, const PathAnswerFrame& frame) {
  kind(out, FrameKind::path_answer);
  out.u64(frame.token);
}

// The frame is made where it goes: an Ack is long, and to copy a frame is to copy as much.
std::optional<Frame> decode_frame(Reader& in) {
  std::optional<Frame> frame(std::in_place, std::in_place_type<PingFrame>);
  switch (static_cast<FrameKind>(in.u8())) {
    case FrameKind::ack: {
      const std::optional<reliability::Ack> ack = reliability::decode_ack(in);
      ack ? static_cast<void>(frame->emplace<reliability::Ack>(*ack)) : frame.reset();
      return frame;
    }
    case FrameKind::ping:
      break;
    case FrameKind::hello_reply:
      frame->emplace<HelloReplyFrame>(decode_hello_reply(in));
      break;
    case FrameKind::accept:
      frame->emplace<AcceptFrame>();
      break;
    case FrameKind::reject:
      frame->emplace<EndNoticeFrame>(EndNoticeFrame{true, decode_end_notice(in)});
      break;
    case FrameKind::bye:
      frame->emplace<EndNoticeFrame>(EndNoticeFrame{false, decode_end_notice(in)});
      break;
    case FrameKind::message:
      frame->emplace<MessageFrame>(decode_message(in));
      break;
    case FrameKind::message_ack:
      frame->emplace<MessageAckFrame>(decode_message_ack(in));
      break;
    case FrameKind::rma_write:
      frame->emplace<RmaWriteFrame>(decode_rma_write(in));
      break;
    case FrameKind::rma_write_more:
      frame->emplace<RmaWriteMoreFrame>(decode_chunk<RmaWriteMoreFrame>(in, false));
      break;
    case FrameKind::rma_write_more_short:
      frame->emplace<RmaWriteMoreFrame>(decode_chunk<RmaWriteMoreFrame>(in, true));
      break;
    case FrameKind::rma_read:
      frame->emplace<RmaReadFrame>(decode_rma_read(in));
      break;
    case FrameKind::rma_read_data:
      frame->emplace<RmaReadDataFrame>(decode_chunk<RmaReadDataFrame>(in, false));
      break;
    case FrameKind::rma_read_data_short:
      frame->emplace<RmaReadDataFrame>(decode_chunk<RmaReadDataFrame>(in, true));
      break;
    case FrameKind::rma_end:
      frame->emplace<RmaEndFrame>(decode_rma_end(in));
      break;
    case FrameKind::mailbox_hint: {
      const uint64_t number = in.u64();
      const uint64_t mailbox = in.u64();
      frame->emplace<MailboxHintFrame>(MailboxHintFrame{number, mailbox, in.u64()});
      break;
    }
    case FrameKind::greeting:
      frame->emplace<GreetingFrame>(GreetingFrame{in.bytes16()});
      break;
    case FrameKind::padding:
      frame->emplace<PaddingFrame>(PaddingFrame{in.bytes16()});
      break;
    case FrameKind::message_part:
      frame->emplace<MessagePartFrame>(decode_message_part(in));
      break;
    case FrameKind::path_challenge:
      frame->emplace<PathChallengeFrame>(PathChallengeFrame{in.u64()});
      break;
    case FrameKind::path_answer:
      frame->emplace<PathAnswerFrame>(PathAnswerFrame{in.u64()});
      break;
    default:
      in.fail();
      break;
  }
  if (!in.ok()) frame.reset();
  return frame;
}

}  // namespace ccixfer::datagram
