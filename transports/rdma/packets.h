// What goes over the network in one send: a packet. It has a header and then records, one behind the other:
//   credits u16 | sealed u16 | records | the tag of the seal, 16 bytes, if it is sealed
// `credits`: how many packets more the receiver of this one may send. A packet without records says only that; it needs no credit
// itself, as it must not wait for one, and it says more than 0.
// A record is a frame of core/wire with its payload, or one of those below, which have a kind that no frame has. All integers
// little-endian. The frame that cannot come: rma_read_data beyond inline_bytes_max.
// `sealed`: 0 or 1. 1: the records are encrypted, and the header is authenticated with them. An empty text is sealed too.
// - announced_write: the initiator's bytes stand at `address`, and the target reads them from there by `key`.
// - announced_read: the initiator wants the bytes at `address`, and the target writes them there by `key`.
// - progress: so many bytes of this operation of the receiver's have been moved. It ends nothing.
// Everything else about operations is as in core/wire/rma_frames.h; the answers are rma_write_ack and rma_read_end.
// The decoders take a peer's bytes: nullopt for what is malformed, never an abort, no allocation.
// Source: transports/rdma/README.md.
#pragma once
#include <optional>

#include "core/ports/rma_target.h"
#include "core/wire/cursor.h"
#include "core/wire/frame.h"
#include "core/wire/remote_ref.h"

namespace ccixfer::rdma {

inline constexpr size_t packet_header_bytes = 4;
inline constexpr size_t packet_tag_bytes = 16;

struct PacketHeader {
  uint16_t credits = 0;
  bool sealed = false;
};

enum class RecordKind : uint8_t { announced_write = 0xa0, announced_read = 0xa1, progress = 0xa2 };
static_assert(static_cast<uint8_t>(RecordKind::announced_write) > wire::kind_last);

inline constexpr size_t announced_bytes = 4 + 4 + 8 + wire::remote_ref_bytes + 8 + 4;
inline constexpr size_t progress_bytes = 4 + 4 + 8;

struct Announced {
  uint32_t operation = 0;
  uint64_t total_bytes = 0;
  ports::RemoteRef remote;
  uint64_t address = 0;  // of the initiator's memory
  uint32_t key = 0;      // of the same
};

struct Progress {
  uint32_t operation = 0;
  uint64_t done_bytes = 0;
};

void encode(wire::Writer& out, const PacketHeader& header);
// Of a whole packet. A sealed one has room for its tag.
[[nodiscard]] std::optional<PacketHeader> decode_packet_header(Bytes packet);

void encode(wire::Writer& out, const Announced& record, bool write);
void encode(wire::Writer& out, const Progress& record);

// The kind of the record that these bytes begin with. nullopt: none of them; it may be a frame.
[[nodiscard]] std::optional<RecordKind> record_kind(Bytes bytes);
[[nodiscard]] size_t record_bytes(RecordKind kind);
// Of exactly record_bytes. They also refuse: total 0, an address whose end is beyond the last one.
[[nodiscard]] std::optional<Announced> decode_announced(Bytes record);
[[nodiscard]] std::optional<Progress> decode_progress(Bytes record);

}  // namespace ccixfer::rdma
