// RMA frames. An operation is named by its initiator: `operation` = generation << 16 | slot, with slot below the negotiated
// rmas_in_flight_max; a slot is free again when its end (rma_write_ack, rma_read_end) has been received. Chunks of one operation
// come in order of their offsets and without gaps; chunks of different operations and other frames come in between.
// - rma_write: one chunk. The last one (offset + payload = total), or one with flag_abort, ends the operation; rma_write_ack
// answers it.
//   A target that must refuse answers at once with `early`; an initiator that is not through then sends an empty chunk with
//   flag_abort.
// - rma_read asks; rma_read_data chunks answer; rma_read_end follows always and says whether the data are good (a region may be
//   deregistered in the middle of the last chunk, whose length is promised by then).
// - mailbox_hint: what was refused as mailbox_empty may come again. At any time after the refusal.
// - Both ends carry the target's number (core/ports/operation_result.h): of a put its epoch, of what was too long the buffer's
// length. Source: transports/stream/README.md 'RMA'; CCI §III.C.
#pragma once
#include "core/ports/operation_result.h"
#include "core/wire/frame.h"
#include "core/wire/remote_ref.h"

namespace ccixfer::wire {

inline constexpr size_t rma_write_header_bytes = frame_overhead_bytes + 4 + 4 + 8 + 8 + remote_ref_bytes;
static_assert(rma_write_header_bytes == 116);
inline constexpr size_t rma_read_header_bytes = frame_overhead_bytes + 4 + 4 + 8 + remote_ref_bytes;
static_assert(rma_read_header_bytes == 108);
inline constexpr size_t rma_read_data_header_bytes = frame_overhead_bytes + 4 + 4 + 8 + 8;
static_assert(rma_read_data_header_bytes == 36);
inline constexpr size_t rma_end_header_bytes = frame_overhead_bytes + 4 + 1 + 1 + 2 + 8;
static_assert(rma_end_header_bytes == 28);

inline constexpr size_t mailbox_hint_header_bytes = frame_overhead_bytes + 8 + 8;

inline constexpr uint32_t operation_slots_max = 1u << 16;

struct RmaWrite {
  uint32_t operation = 0;
  uint64_t total_bytes = 0;
  uint64_t offset_bytes = 0;  // of this chunk in the operation
  ports::RemoteRef remote;    // of the whole operation
  bool abort = false;
};

struct RmaRead {
  uint32_t operation = 0;
  uint64_t total_bytes = 0;
  ports::RemoteRef remote;
};

struct RmaReadData {
  uint32_t operation = 0;
  uint64_t total_bytes = 0;
  uint64_t offset_bytes = 0;
};

// rma_write_ack and rma_read_end.
struct RmaEnd {
  uint32_t operation = 0;
  ports::OperationResult ending;
  bool early = false;  // rma_write_ack: refused before the last chunk; a second one follows the end
};

struct MailboxHint {
  uint64_t mailbox = 0;
  uint64_t epoch = 0;  // of the buffer that is there now
};

void encode(Writer& out, const RmaWrite& frame, uint32_t payload_bytes);
void encode(Writer& out, const RmaRead& frame);
void encode(Writer& out, const RmaReadData& frame, uint32_t payload_bytes);
void encode_write_ack(Writer& out, const RmaEnd& frame);
void encode_read_end(Writer& out, const RmaEnd& frame);
void encode(Writer& out, const MailboxHint& frame);

// They also refuse: total 0, a chunk beyond its total, an empty chunk (but the abort), an abort with payload.
[[nodiscard]] std::optional<RmaWrite> decode_rma_write(Bytes header, const FramePrefix& prefix);
[[nodiscard]] std::optional<RmaRead> decode_rma_read(Bytes header);
[[nodiscard]] std::optional<RmaReadData> decode_rma_read_data(Bytes header, const FramePrefix& prefix);
[[nodiscard]] std::optional<RmaEnd> decode_rma_end(Bytes header);
[[nodiscard]] std::optional<MailboxHint> decode_mailbox_hint(Bytes header);

}  // namespace ccixfer::wire
