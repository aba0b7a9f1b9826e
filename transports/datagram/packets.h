// One datagram is one packet: a header, a body, a check over both.
//   magic u16 | kind u8 | version u8 | destination u32 | source u32 | key u64 | number u64 | body | check u64 (XXH3-64 of all
//   before)
// A sealed packet has a check of its header (u32) behind it, and the tag of its seal (16 bytes) instead of the check at the end.
// Data and sealed packets have a short form, which those with chunks use:
//   form u8 | destination u32 | key u64 | number u32 (the lower half) | body | check or tag
// destination and source are the ends' indices of their connections; key is the random number that the receiving end gave its
// connection (in a hello: the sender's own), so that nothing old or foreign reaches a connection. number: data packets only, never
// used twice. Kinds: hello (dialler; padded to hello_bytes_min), retry (the acceptor's cookie; nothing is remembered), refuse (with
// a reason; nothing is remembered), data (frames), gone (nobody knows that connection; key is the one that the packet bore),
// handshake (a piece of what TLS says), sealed (frames, encrypted; the header is authenticated with them), group (a message to a
// group: destination 0, key and source are the sending connection's own, number counts its messages).
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
inline constexpr uint8_t packet_version = 7;
inline constexpr size_t packet_header_bytes = 2 + 1 + 1 + 4 + 4 + 8 + 8;
inline constexpr size_t packet_check_bytes = 8;
inline constexpr size_t packet_overhead_bytes = packet_header_bytes + packet_check_bytes;
static_assert(packet_overhead_bytes == 36);
inline constexpr uint8_t packet_short_data = 0xd4;  // where the long form has its magic's first byte
inline constexpr uint8_t packet_short_sealed = 0xd7;
inline constexpr size_t packet_short_header_bytes = 1 + 4 + 8 + 4;
inline constexpr size_t packet_header_check_bytes = 4;
inline constexpr size_t packet_tag_bytes = 16;
// Before the frames, and behind them.
[[nodiscard]] constexpr size_t packet_head_bytes(bool is_sealed, bool is_short = false) {
  return is_short ? packet_short_header_bytes : packet_header_bytes + (is_sealed ? packet_header_check_bytes : 0);
}
[[nodiscard]] constexpr size_t packet_tail_bytes(bool is_sealed) { return is_sealed ? packet_tag_bytes : packet_check_bytes; }

enum class PacketKind : uint8_t { hello = 1, retry = 2, refuse = 3, data = 4, gone = 5, handshake = 6, sealed = 7, group = 8 };

struct PacketHeader {
  PacketKind kind = PacketKind::data;
  uint8_t version = packet_version;
  uint32_t destination = 0;
  uint32_t source = 0;
  uint64_t key = 0;
  uint64_t number = 0;
  // Data and sealed only. The wire has the lower half of the number, and no source: the connection knows both, and what nobody
  // knows gets no answer.
  bool is_short = false;
};
// The number whose lower half this is, where `next` is above all that came: the nearest one. Source: RFC 9000, A.3.
[[nodiscard]] uint64_t whole_number(uint32_t lower_half, uint64_t next);

struct Packet {
  PacketHeader header;
  Bytes body;  // sealed: the encrypted frames and the tag
};

void begin_packet(wire::Writer& out, const PacketHeader& header);  // up to its frames
void end_packet(wire::Writer& out);                                // of a writer that holds this packet alone
// nullopt: too short, another magic, an unknown kind, or a check does not hold (of a sealed packet that of its header, and of a
// short one none: whether the rest opens shows later). A packet of another version passes.
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
  // The ends prove who they are before anything else is said: `data` is what TLS says first, and what the dialler wants follows in
  // a greeting. The other fields but the cookie and datagram_bytes mean nothing then.
  bool secured = false;
  std::optional<Cookie> cookie;
  Bytes data;
  Bytes options;  // as of the stream's hello: wire::scan_options
};
void encode(wire::Writer& out, const Hello& hello);                      // without the padding
inline constexpr size_t hello_body_bytes = 4 + 4 + 12 + 4 + 16 + 2 + 2;  // without data and options
[[nodiscard]] std::optional<Hello> decode_hello(Bytes body);

// A piece of the bytes that TLS says in one direction.
struct HandshakePiece {
  uint64_t key = 0;             // of the sender's end
  uint32_t datagram_bytes = 0;  // the most that the sender takes
  uint32_t arrived_bytes = 0;   // so much of what the other end said has come, without a gap
  uint32_t offset_bytes = 0;    // of `bytes` in what the sender says
  Bytes bytes;
};
inline constexpr size_t handshake_piece_bytes = 8 + 4 + 4 + 4 + 2;  // without its bytes
void encode(wire::Writer& out, const HandshakePiece& piece);
[[nodiscard]] std::optional<HandshakePiece> decode_handshake_piece(Bytes body);

void encode(wire::Writer& out, const Cookie& cookie);
[[nodiscard]] std::optional<Cookie> decode_cookie(Bytes body);

// refuse, and the frames reject and bye.
void encode(wire::Writer& out, const wire::EndNotice& notice);
[[nodiscard]] wire::EndNotice decode_end_notice(wire::Reader& in);

}  // namespace ccixfer::datagram
