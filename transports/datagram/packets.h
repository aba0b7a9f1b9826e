// One datagram is one packet: a header, a body, a check over both.
//   magic u16 | kind u8 | version u8 | destination u32 | source u32 | key u64 | number u64 | body | check u64 (XXH3-64 of all
//   before)
// destination and source are the ends' indices of their connections; key is the random number that the receiving end gave its
// connection (in a hello: the sender's own), so that nothing old or foreign reaches a connection. number: data packets only, never
// used twice. Kinds: hello (dialler; padded to hello_bytes_min), retry (the acceptor's cookie; nothing is remembered), refuse (with
// a reason; nothing is remembered), data (frames), gone (nobody knows that connection; key is the one that the packet bore).
// Little-endian. Decoders take a peer's bytes: nullopt for what is malformed, never abort, allocate nothing.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ports/transport.h"
#include "core/wire/connection_frames.h"
#include "core/wire/cursor.h"

namespace ccixfer::datagram {

inline constexpr uint16_t packet_magic = 0xcc1d;
inline constexpr uint8_t packet_version = 2;
inline constexpr size_t packet_header_bytes = 2 + 1 + 1 + 4 + 4 + 8 + 8;
inline constexpr size_t packet_check_bytes = 8;
inline constexpr size_t packet_overhead_bytes = packet_header_bytes + packet_check_bytes;
static_assert(packet_overhead_bytes == 36);

enum class PacketKind : uint8_t { hello = 1, retry = 2, refuse = 3, data = 4, gone = 5 };

struct PacketHeader {
  PacketKind kind = PacketKind::data;
  uint8_t version = packet_version;
  uint32_t destination = 0;
  uint32_t source = 0;
  uint64_t key = 0;
  uint64_t number = 0;
};

struct Packet {
  PacketHeader header;
  Bytes body;
};

void begin_packet(wire::Writer& out, const PacketHeader& header);
void end_packet(wire::Writer& out);  // of a writer that holds this packet alone
// nullopt: too short, another magic, an unknown kind, or the check does not hold. A packet of another version passes.
[[nodiscard]] std::optional<Packet> open_packet(Bytes datagram);

struct Cookie {
  uint64_t issued_at_ns = 0;
  uint64_t proof = 0;
};

struct Hello {
  uint32_t attempt = 0;
  ports::Role role = ports::Role::application;
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  wire::Offer offer;
  uint32_t datagram_bytes = 0;  // the most that the dialler takes
  std::optional<Cookie> cookie;
  Bytes data;
  Bytes options;  // as of the stream's hello: wire::scan_options
};
void encode(wire::Writer& out, const Hello& hello);  // without the padding
[[nodiscard]] std::optional<Hello> decode_hello(Bytes body);

void encode(wire::Writer& out, const Cookie& cookie);
[[nodiscard]] std::optional<Cookie> decode_cookie(Bytes body);

// refuse, and the frames reject and bye.
void encode(wire::Writer& out, const wire::EndNotice& notice);
[[nodiscard]] wire::EndNotice decode_end_notice(wire::Reader& in);

}  // namespace ccixfer::datagram
