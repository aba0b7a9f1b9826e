// The part that all frames of the stream wire share. A frame is a header and, for three kinds, a payload that follows it:
//   kind u8 | flags u8 | header_bytes u16 | payload_bytes u32 | the kind's own fields | check u32
// header_bytes counts all of the header, from `kind` to `check`; check is the low half of XXH3-64 over the header with check = 0.
// All integers little-endian. Everything of a control frame (names, reasons, connect data) is in its header, so the check covers
// it; payloads are messages (which carry a check of their own) and RMA data (which the application seals). Decoders here and in the
// other files of this room take a peer's bytes: they answer nullopt for what is malformed, never abort, and allocate nothing; views
// in a decoded frame point into the given header. Source: core/wire/README.md 'Format'.
#pragma once
#include <optional>

#include "core/wire/cursor.h"

namespace ccixfer::wire {

enum class Kind : uint8_t {
  hello = 1,
  hello_reply = 2,
  connect_accept = 3,
  connect_reject = 4,
  connect_ack = 5,
  message = 6,
  message_ack = 7,
  rma_write = 8,
  rma_write_ack = 9,
  rma_read = 10,
  rma_read_data = 11,
  rma_read_end = 12,
  keepalive = 13,
  keepalive_ack = 14,
  bye = 15,
  mailbox_hint = 16,
  handshake = 17,
};
inline constexpr uint8_t kind_first = 1;
inline constexpr uint8_t kind_last = 17;
[[nodiscard]] const char* to_string(Kind kind);

inline constexpr size_t prefix_bytes = 8;
inline constexpr size_t check_bytes = 4;
inline constexpr size_t frame_overhead_bytes = prefix_bytes + check_bytes;
inline constexpr size_t header_bytes_max = 2048;  // any header
// Payload of rma_write and rma_read_data. Not round: fragments and segments have a few bytes more than 4 MiB, which would be a
// chunk of their own, with all that a chunk costs.
inline constexpr uint32_t chunk_bytes_max = 2052u << 10;
inline constexpr uint32_t message_bytes_max = 64u << 10;  // payload of message: above any negotiated maximum
inline constexpr size_t reason_bytes_max = 512;           // in reject, bye, hello_reply; encoders cut, decoders refuse more

inline constexpr uint8_t flag_abort = 1;  // rma_write: the initiator ends the operation here, unfinished

struct FramePrefix {
  Kind kind = Kind::keepalive;
  uint8_t flags = 0;
  uint16_t header_bytes = 0;
  uint32_t payload_bytes = 0;
};

// Of the first prefix_bytes of a frame (`bytes` may hold more). nullopt: fewer bytes, an unknown kind or flag, a length that this
// kind cannot have. A prefix that passed bounds header_bytes by header_bytes_max; it is to be trusted only after check_holds.
[[nodiscard]] std::optional<FramePrefix> decode_prefix(Bytes bytes);
[[nodiscard]] bool check_holds(Bytes header);

// Frames one header: prefix and check around what is written to `out` in between.
class HeaderWriter {
 public:
  HeaderWriter(Writer& out, Kind kind, uint32_t payload_bytes = 0, uint8_t flags = 0);
  ~HeaderWriter();
  HeaderWriter(const HeaderWriter&) = delete;
  HeaderWriter& operator=(const HeaderWriter&) = delete;

 private:
  Writer& out_;
  size_t start_;
};

// The kind's own fields of a header whose prefix was decoded.
[[nodiscard]] Reader fields_of(Bytes header);

}  // namespace ccixfer::wire
