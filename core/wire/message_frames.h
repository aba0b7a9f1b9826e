// message and message_ack. Messages of one direction are numbered 0, 1, ... ; an acknowledgement is cumulative: every message below
// `next` is with the peer's endpoint. Each message of a reliable connection carries that number too, so that an answer needs no
// frame for it. An acknowledgement's status tells what became of message `next`: success (not seen yet), receiver_not_ready (it was
// refused for want of a receive buffer, and all behind it: send it again), disconnected (the peer is leaving and takes no more).
// Source: transports/stream/README.md 'Messages'; CCI §IV.C.
#pragma once
#include "core/base/status.h"
#include "core/wire/frame.h"

namespace ccixfer::wire {

inline constexpr size_t message_header_bytes = frame_overhead_bytes + 8 + 8 + 4;
static_assert(message_header_bytes == 32);
inline constexpr size_t message_ack_header_bytes = frame_overhead_bytes + 8 + 1 + 3;
static_assert(message_ack_header_bytes == 24);

struct Message {
  uint64_t sequence = 0;
  uint64_t acknowledged = 0;   // of the other direction: all below are with the sender's endpoint; unreliable: 0
  uint32_t payload_check = 0;  // payload_check_of the payload
};

struct MessageAck {
  uint64_t next = 0;
  Status status = Status::success;  // success, receiver_not_ready or disconnected
};

[[nodiscard]] uint32_t payload_check_of(Bytes payload);  // low half of XXH3-64

void encode(Writer& out, const Message& frame, uint32_t payload_bytes);
void encode(Writer& out, const MessageAck& frame);
[[nodiscard]] std::optional<Message> decode_message(Bytes header);
[[nodiscard]] std::optional<MessageAck> decode_message_ack(Bytes header);

}  // namespace ccixfer::wire
