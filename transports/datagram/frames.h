// The frames of a data packet: kind u8, then the kind's own fields; the packet's check covers them all. A frame whose packet is
// lost goes out again in another packet, if it still matters; so each must be harmless when it comes twice, late or out of order:
// messages and chunks are numbered, an acknowledgement tells a whole state.
// Decoders take a peer's bytes: a frame that is malformed fails the Reader. Views point into the packet.
#pragma once
#include <array>
#include <variant>

#include "core/reliability/ack.h"
#include "core/wire/remote_ref.h"
#include "transports/datagram/limits.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {

enum class FrameKind : uint8_t {
  ack = 1,
  ping = 2,
  hello_reply = 3,
  accept = 4,
  reject = 5,
  bye = 6,
  message = 7,
  message_ack = 8,
  rma_write = 9,
  rma_read = 10,
  rma_read_data = 11,
  rma_end = 12,
  mailbox_hint = 13,
  greeting = 14,
  rma_write_more = 15,
  padding = 16,
  message_part = 17,
  path_challenge = 18,
  path_answer = 19,
  rma_write_more_short = 20,
  rma_read_data_short = 21,
};

// What the dialler wants, once both ends have proved who they are: the first frame of a secured connection.
struct GreetingFrame {
  Bytes hello;  // as packets.h encodes it
};

struct PingFrame {};
struct AcceptFrame {};

// Whoever receives at the address to which the packet goes is to send the same number back in a PathAnswerFrame. A packet has at
// most one of these two frames.
struct PathChallengeFrame {
  uint64_t token = 0;
};
struct PathAnswerFrame {
  uint64_t token = 0;
};

// Has no meaning: it fills a packet up to the length of a probe of the path.
struct PaddingFrame {
  Bytes bytes;
};

// The acceptor's transport answers a hello that it takes; its application's decision follows.
struct HelloReplyFrame {
  uint32_t attempt = 0;  // of the hello that it answers
  uint64_t key = 0;      // of the acceptor's end
  wire::Offer offer;
  uint32_t datagram_bytes = 0;
};

struct EndNoticeFrame {
  bool reject = false;  // else bye
  wire::EndNotice notice;
};

// Numbers 0, 1, ... of one direction. `flight` counts the refusals of its receiver: after one, everything not delivered comes
// again.
struct MessageFrame {
  uint64_t sequence = 0;
  uint32_t flight = 0;
  bool empty = false;  // given up: takes the number's place, and is delivered to nobody
  Bytes bytes;
};

// A part of a message that is too long for one packet: part `index` lies at index * part_bytes, and all but the last have that
// length.
struct MessagePartFrame {
  uint64_t sequence = 0;
  uint32_t flight = 0;
  uint32_t total_bytes = 0;
  uint8_t index = 0;
  Bytes bytes;
};

// Every message below `next` was delivered; of those above it the ones whose bit is set (unordered only; bit i is next + 1 + i).
// receiver_not_ready: of that flight everything that is not delivered was thrown away. disconnected: the peer takes no more.
struct MessageAckFrame {
  static constexpr size_t words_max = messages_window_max / 64;
  uint64_t next = 0;
  uint32_t flight = 0;
  Status status = Status::success;
  uint8_t words = 0;
  std::array<uint64_t, words_max> bits{};
};

// operation = generation << 16 | slot, named by the initiator; the slot's generations rise. Describes a write, and brings a chunk
// of it where it has bytes. A chunk lies at a multiple of chunk_bytes (chunks.h); only the last one may be shorter.
struct RmaWriteFrame {
  uint64_t operation = 0;
  uint64_t total_bytes = 0;
  uint64_t offset_bytes = 0;  // 0 without bytes
  ports::RemoteRef remote;    // of the whole operation
  Bytes bytes;
  uint16_t chunk_bytes = 0;  // 0: what fits the longest packet that both ends take; else at least part_bytes and less than that
};
// A chunk of a write that was described.
struct RmaWriteMoreFrame {
  uint64_t operation = 0;
  uint64_t offset_bytes = 0;
  Bytes bytes;
};
struct RmaReadFrame {
  uint64_t operation = 0;
  uint64_t total_bytes = 0;
  ports::RemoteRef remote;
  uint16_t chunk_bytes = 0;  // as of a write
};
struct RmaReadDataFrame {
  uint64_t operation = 0;
  uint64_t offset_bytes = 0;
  Bytes bytes;
};
// The end of a write; of a read only if it failed (a read is over when its bytes are there).
struct RmaEndFrame {
  uint64_t operation = 0;
  ports::OperationResult ending;
  bool write = false;
};

// What was refused as mailbox_empty may come again: a buffer is posted, for this epoch.
struct MailboxHintFrame {
  uint64_t number = 0;  // of the connection's hints in this direction, from 0: one that comes twice is told once
  uint64_t mailbox = 0;
  uint64_t epoch = 0;
};

using Frame = std::variant<reliability::Ack, PingFrame, HelloReplyFrame, AcceptFrame, EndNoticeFrame, MessageFrame, MessageAckFrame,
                           RmaWriteFrame, RmaWriteMoreFrame, RmaReadFrame, RmaReadDataFrame, RmaEndFrame, MailboxHintFrame,
                           GreetingFrame, PaddingFrame, MessagePartFrame, PathChallengeFrame, PathAnswerFrame>;

inline constexpr size_t hello_reply_frame_bytes = 1 + 4 + 8 + 12 + 4;
inline constexpr size_t message_frame_bytes = 1 + 8 + 4 + 1 + 2;  // without its bytes, as all below
inline constexpr size_t message_part_frame_bytes = 1 + 8 + 4 + 2 + 1 + 2;
inline constexpr size_t padding_frame_bytes = 1 + 2;
inline constexpr size_t rma_write_frame_bytes = 1 + 8 + 8 + 8 + wire::remote_ref_bytes + 2;
inline constexpr size_t rma_read_frame_bytes = 1 + 8 + 8 + wire::remote_ref_bytes;
// A chunk of a described write, or of a read. Its frame has a short form for a name and an offset of 32 bits, as nearly all have.
inline constexpr size_t chunk_frame_bytes_short = 1 + 4 + 4 + 2;
inline constexpr size_t chunk_frame_bytes_long = 1 + 8 + 8 + 2;
[[nodiscard]] constexpr bool is_short_chunk(uint64_t operation, uint64_t offset_bytes) {
  return (operation | offset_bytes) <= UINT32_MAX;
}
[[nodiscard]] constexpr size_t chunk_frame_bytes(uint64_t operation, uint64_t offset_bytes) {
  return is_short_chunk(operation, offset_bytes) ? chunk_frame_bytes_short : chunk_frame_bytes_long;
}
inline constexpr size_t rma_end_frame_bytes = 1 + 8 + 1 + 1 + 8;
inline constexpr size_t mailbox_hint_frame_bytes = 1 + 8 + 8 + 8;
inline constexpr size_t path_frame_bytes = 1 + 8;
inline constexpr size_t greeting_frame_bytes_max = 1 + 2 + hello_body_bytes + ports::connect_data_bytes_max;
static_assert(packet_head_bytes(true) + greeting_frame_bytes_max + packet_tail_bytes(true) <= packet_bytes_base);
[[nodiscard]] constexpr size_t message_ack_frame_bytes(uint8_t words) { return 1 + 8 + 4 + 1 + 1 + size_t{8} * words; }
[[nodiscard]] inline size_t end_notice_frame_bytes(std::string_view reason) { return 1 + 1 + 2 + reason.size(); }

// What a connection of such datagrams offers its user.
[[nodiscard]] constexpr uint32_t frames_bytes_max(uint32_t datagram_bytes, bool is_sealed) {
  return datagram_bytes - static_cast<uint32_t>(packet_head_bytes(is_sealed) + packet_tail_bytes(is_sealed));
}
[[nodiscard]] constexpr uint32_t message_bytes_max(uint32_t datagram_bytes, bool is_sealed = false) {
  return frames_bytes_max(datagram_bytes, is_sealed) - static_cast<uint32_t>(message_frame_bytes);
}
static_assert(message_bytes_max(datagram_bytes_min, true) >= ports::max_send_bytes_floor);
// The longest chunk of an operation whose chunks all have the short form: a packet is full of it. An acknowledgement that is due
// then has a packet of its own, which is rare while bulk data flow in one direction.
[[nodiscard]] constexpr uint32_t chunk_bytes_of(uint32_t datagram_bytes, bool is_sealed = false) {
  const auto others = static_cast<uint32_t>(packet_head_bytes(is_sealed, true) + packet_tail_bytes(is_sealed));
  return (datagram_bytes - others - static_cast<uint32_t>(chunk_frame_bytes_short)) / 8 * 8;
}
// Of an operation whose chunks may need the long form.
[[nodiscard]] constexpr uint32_t chunk_bytes_in(uint32_t longest_bytes, uint64_t operation, uint64_t total_bytes) {
  constexpr uint32_t more = chunk_frame_bytes_long - chunk_frame_bytes_short;
  return is_short_chunk(operation, total_bytes) ? longest_bytes : longest_bytes - more;
}
static_assert(frames_bytes_max(packet_bytes_base, true) >= message_part_frame_bytes + part_bytes);
static_assert(chunk_bytes_in(chunk_bytes_of(packet_bytes_base, true), ~uint64_t{0}, 0) >= part_bytes);

void encode_ack(wire::Writer& out, const reliability::Ack& ack, size_t bytes_max);
void encode(wire::Writer& out, const PingFrame& frame);
void encode(wire::Writer& out, const AcceptFrame& frame);
void encode(wire::Writer& out, const HelloReplyFrame& frame);
void encode(wire::Writer& out, const EndNoticeFrame& frame);
void encode(wire::Writer& out, const MessageFrame& frame);
void encode(wire::Writer& out, const MessagePartFrame& frame);
void encode(wire::Writer& out, const PaddingFrame& frame);
void encode_padding(wire::Writer& out, size_t frame_bytes);  // a frame of that length, of zeros
void encode(wire::Writer& out, const MessageAckFrame& frame);
void encode(wire::Writer& out, const RmaWriteFrame& frame);
void encode(wire::Writer& out, const RmaWriteMoreFrame& frame);
void encode(wire::Writer& out, const RmaReadFrame& frame);
void encode(wire::Writer& out, const RmaReadDataFrame& frame);
void encode(wire::Writer& out, const RmaEndFrame& frame);
void encode(wire::Writer& out, const MailboxHintFrame& frame);
void encode(wire::Writer& out, const GreetingFrame& frame);
void encode(wire::Writer& out, const PathChallengeFrame& frame);
void encode(wire::Writer& out, const PathAnswerFrame& frame);

// The next frame of a body that is not read to its end. It also refuses: total 0, a chunk beyond its total, an empty one where it
// describes nothing.
[[nodiscard]] std::optional<Frame> decode_frame(wire::Reader& in);

}  // namespace ccixfer::datagram
