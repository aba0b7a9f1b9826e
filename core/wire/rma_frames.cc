#include "core/wire/rma_frames.h"

namespace ccixfer::wire {
namespace {

void encode_end(Writer& out, Kind kind, const RmaEnd& frame) {
  const HeaderWriter header(out, kind);
  out.u32(frame.operation);
  out.u8(static_cast<uint8_t>(frame.ending.status));
  out.u8(frame.early ? 1 : 0);
  out.zeros(2);
  out.u64(frame.ending.detail);
}

bool chunk_fits(uint64_t total, uint64_t offset, uint32_t payload) { return offset <= total && payload <= total - offset; }

}  // namespace

void encode(Writer& out, const RmaWrite& frame, uint32_t payload_bytes) {
  const HeaderWriter header(out, Kind::rma_write, payload_bytes, frame.abort ? flag_abort : uint8_t{0});
  out.u32(frame.operation);
  out.u32(0);
  out.u64(frame.total_bytes);
  out.u64(frame.offset_bytes);
  encode(out, frame.remote);
}

std::optional<RmaWrite> decode_rma_write(Bytes header, const FramePrefix& prefix) {
  Reader in = fields_of(header);
  RmaWrite frame;
  frame.operation = in.u32();
  in.require(in.u32() == 0);
  frame.total_bytes = in.u64();
  frame.offset_bytes = in.u64();
  frame.remote = decode_remote_ref(in);
  frame.abort = (prefix.flags & flag_abort) != 0;
  in.require(frame.total_bytes > 0 && chunk_fits(frame.total_bytes, frame.offset_bytes, prefix.payload_bytes));
  in.require(frame.abort == (prefix.payload_bytes == 0));
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode(Writer& out, const RmaRead& frame) {
  const HeaderWriter header(out, Kind::rma_read);
  out.u32(frame.operation);
  out.u32(0);
  out.u64(frame.total_bytes);
  encode(out, frame.remote);
}

std::optional<RmaRead> decode_rma_read(Bytes header) {
  Reader in = fields_of(header);
  RmaRead frame;
  frame.operation = in.u32();
  in.require(in.u32() == 0);
  frame.total_bytes = in.u64();
  frame.remote = decode_remote_ref(in);
  in.require(frame.total_bytes > 0);
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode(Writer& out, const RmaReadData& frame, uint32_t payload_bytes) {
  const HeaderWriter header(out, Kind::rma_read_data, payload_bytes);
  out.u32(frame.operation);
  out.u32(0);
  out.u64(frame.total_bytes);
  out.u64(frame.offset_bytes);
}

std::optional<RmaReadData> decode_rma_read_data(Bytes header, const FramePrefix& prefix) {
  Reader in = fields_of(header);
  RmaReadData frame;
  frame.operation = in.u32();
  in.require(in.u32() == 0);
  frame.total_bytes = in.u64();
  frame.offset_bytes = in.u64();
  in.require(prefix.payload_bytes > 0 && chunk_fits(frame.total_bytes, frame.offset_bytes, prefix.payload_bytes));
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode_write_ack(Writer& out, const RmaEnd& frame) { encode_end(out, Kind::rma_write_ack, frame); }
void encode_read_end(Writer& out, const RmaEnd& frame) { encode_end(out, Kind::rma_read_end, frame); }

std::optional<RmaEnd> decode_rma_end(Bytes header) {
  Reader in = fields_of(header);
  RmaEnd frame;
  frame.operation = in.u32();
  const uint8_t status = in.u8();
  in.require(is_known_status(status));
  frame.ending.status = static_cast<Status>(status);
  const uint8_t early = in.u8();
  in.require(early <= 1);
  frame.early = early == 1;
  in.require(in.u16() == 0);
  frame.ending.detail = in.u64();
  in.require(!frame.early || !frame.ending.good());
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode(Writer& out, const MailboxHint& frame) {
  const HeaderWriter header(out, Kind::mailbox_hint);
  out.u64(frame.mailbox);
  out.u64(frame.epoch);
}

std::optional<MailboxHint> decode_mailbox_hint(Bytes header) {
  Reader in = fields_of(header);
  MailboxHint frame;
  frame.mailbox = in.u64();
  frame.epoch = in.u64();
  if (!in.done()) return std::nullopt;
  return frame;
}

}  // namespace ccixfer::wire
