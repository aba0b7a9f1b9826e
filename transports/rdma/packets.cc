#include "transports/rdma/packets.h"

namespace ccixfer::rdma {

void encode(wire::Writer& out, const PacketHeader& header) {
  out.u16(header.credits);
  out.u16(header.sealed ? 1 : 0);
}

std::optional<PacketHeader> decode_packet_header(Bytes packet) {
  wire::Reader in(packet);
  PacketHeader header;
  header.credits = in.u16();
  const uint16_t sealed = in.u16();
  in.require(sealed <= 1);
  header.sealed = sealed == 1;
  in.require(!header.sealed || in.remaining() >= packet_tag_bytes);
  if (!in.ok()) return std::nullopt;
  return header;
}

void encode(wire::Writer& out, const Announced& record, bool write) {
  out.u8(static_cast<uint8_t>(write ? RecordKind::announced_write : RecordKind::announced_read));
  out.zeros(3);
  out.u32(record.operation);
  out.u64(record.total_bytes);
  wire::encode(out, record.remote);
  out.u64(record.address);
  out.u32(record.key);
}

void encode(wire::Writer& out, const Progress& record) {
  out.u8(static_cast<uint8_t>(RecordKind::progress));
  out.zeros(3);
  out.u32(record.operation);
  out.u64(record.done_bytes);
}

std::optional<RecordKind> record_kind(Bytes bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto kind = static_cast<RecordKind>(bytes.front());
  switch (kind) {
    case RecordKind::announced_write:
    case RecordKind::announced_read:
    case RecordKind::progress:
      return kind;
  }
  return std::nullopt;
}

size_t record_bytes(RecordKind kind) { return kind == RecordKind::progress ? progress_bytes : announced_bytes; }

std::optional<Announced> decode_announced(Bytes record) {
  wire::Reader in(record);
  in.skip(1);
  in.require(in.u8() == 0 && in.u16() == 0);
  Announced announced;
  announced.operation = in.u32();
  announced.total_bytes = in.u64();
  announced.remote = wire::decode_remote_ref(in);
  announced.address = in.u64();
  announced.key = in.u32();
  in.require(announced.total_bytes > 0 && announced.total_bytes <= UINT64_MAX - announced.address);
  if (!in.done()) return std::nullopt;
  return announced;
}

std::optional<Progress> decode_progress(Bytes record) {
  wire::Reader in(record);
  in.skip(1);
  in.require(in.u8() == 0 && in.u16() == 0);
  Progress progress;
  progress.operation = in.u32();
  progress.done_bytes = in.u64();
  if (!in.done()) return std::nullopt;
  return progress;
}

}  // namespace ccixfer::rdma
