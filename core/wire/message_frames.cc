#include "core/wire/message_frames.h"

#include "core/base/hash.h"

namespace ccixfer::wire {

uint32_t payload_check_of(Bytes payload) { return static_cast<uint32_t>(xxh3_64(payload)); }

void encode(Writer& out, const Message& frame, uint32_t payload_bytes) {
  const HeaderWriter header(out, Kind::message, payload_bytes);
  out.u64(frame.sequence);
  out.u64(frame.acknowledged);
  out.u32(frame.payload_check);
}

std::optional<Message> decode_message(Bytes header) {
  Reader in = fields_of(header);
  Message frame;
  frame.sequence = in.u64();
  frame.acknowledged = in.u64();
  frame.payload_check = in.u32();
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode(Writer& out, const MessageAck& frame) {
  const HeaderWriter header(out, Kind::message_ack);
  out.u64(frame.next);
  out.u8(static_cast<uint8_t>(frame.status));
  out.zeros(3);
}

std::optional<MessageAck> decode_message_ack(Bytes header) {
  Reader in = fields_of(header);
  MessageAck frame;
  frame.next = in.u64();
  frame.status = static_cast<Status>(in.u8());
  in.require(frame.status == Status::success || frame.status == Status::receiver_not_ready || frame.status == Status::disconnected);
  for (int i = 0; i < 3; ++i) in.require(in.u8() == 0);
  if (!in.done()) return std::nullopt;
  return frame;
}

}  // namespace ccixfer::wire
