// Frames that open, keep and end a connection: handshake, hello, hello_reply, connect_accept, connect_reject, connect_ack,
// keepalive, keepalive_ack, bye. The five without fields are encode_empty's.
// Source: transports/stream/README.md 'How a connection begins'; CCI §III.A (connection establishment).
#pragma once
#include <string_view>

#include "core/base/status.h"
#include "core/ports/transport.h"
#include "core/wire/frame.h"

namespace ccixfer::wire {

inline constexpr uint64_t magic = 0x315246584943432e;  // ".CCIXFR1" as bytes
inline constexpr uint16_t version = 2;
inline constexpr size_t hello_options_bytes_max = 512;
inline constexpr uint16_t option_mandatory = 0x8000;  // bit of an option's type: who does not know it must refuse the hello

inline constexpr size_t hello_header_bytes_min = frame_overhead_bytes + 8 + 2 + 1 + 1 + 3 * 4 + 2 * 8 + 2 + 2;
static_assert(hello_header_bytes_min == 56);
inline constexpr size_t hello_reply_header_bytes_min = frame_overhead_bytes + 8 + 2 + 1 + 1 + 3 * 4 + 2 * 8 + 2;
static_assert(hello_reply_header_bytes_min == 54);
inline constexpr size_t end_notice_header_bytes_min = frame_overhead_bytes + 1 + 1 + 2;
static_assert(end_notice_header_bytes_min == 16);

inline constexpr uint16_t handshake_version = 1;
inline constexpr size_t handshake_records_bytes_max = 1536;  // of one frame; a flight may need several
inline constexpr size_t handshake_header_bytes_min = frame_overhead_bytes + 8 + 2 + 2;
static_assert(handshake_header_bytes_min == 24);

// What one end offers; the connection has the minimum of both.
struct Offer {
  uint32_t max_send_bytes = 0;
  uint32_t sends_in_flight_max = 0;
  uint32_t rmas_in_flight_max = 0;  // at most 65,536: operation ids have 16 bits for the slot
};

// On which machine an end runs, as far as it can tell. One kernel may show its containers different numbers, but it began once.
struct HostIdentity {
  uint64_t number = 0;     // 0: unknown
  uint64_t booted_ms = 0;  // of the wall clock, as it is now
};
// Surely not the same one.
[[nodiscard]] bool are_apart(const HostIdentity& one, const HostIdentity& other);

// The dialler's first frame. `options` are type u16, length u16, value; see scan_options.
struct Hello {
  uint64_t magic = wire::magic;
  uint16_t version = wire::version;
  ports::Role role = ports::Role::application;
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  Offer offer;
  HostIdentity machine;
  Bytes data;
  Bytes options;
};

// The acceptor's transport answers a hello at once; the application's decision follows.
struct HelloReply {
  uint64_t magic = wire::magic;
  uint16_t version = wire::version;
  Status status = Status::success;  // else: refused for this reason, and the stream ends
  Offer offer;
  HostIdentity machine;
  std::string_view reason;
};

// On a connection whose ends prove who they are, the first frames of both: bytes of a TLS handshake, in order. Never empty.
struct HandshakeBytes {
  uint64_t magic = wire::magic;
  uint16_t version = handshake_version;
  Bytes records;
};

// What connect_reject and bye say: the connection ends, and why.
struct EndNotice {
  Status status = Status::disconnected;
  std::string_view reason;
};

enum class OptionScan : uint8_t { fine, malformed, unknown_mandatory };
// Walks the options: unknown optional ones are skipped. This version knows none.
[[nodiscard]] OptionScan scan_options(Bytes options);

void encode(Writer& out, const Hello& frame);
void encode(Writer& out, const HelloReply& frame);
// As many frames as it takes.
void encode_handshake(Writer& out, Bytes records);
void encode_reject(Writer& out, const EndNotice& frame);
void encode_bye(Writer& out, const EndNotice& frame);
void encode_empty(Writer& out, Kind kind);

// A hello or a handshake of another magic or version decodes (later fields may then mean anything): the caller looks at them
// first.
[[nodiscard]] std::optional<Hello> decode_hello(Bytes header);
[[nodiscard]] std::optional<HelloReply> decode_hello_reply(Bytes header);
[[nodiscard]] std::optional<HandshakeBytes> decode_handshake(Bytes header);
[[nodiscard]] std::optional<EndNotice> decode_end_notice(Bytes header);

}  // namespace ccixfer::wire
