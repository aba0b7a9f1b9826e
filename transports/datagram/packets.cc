#include "transports/datagram/packets.h"

#include "core/base/hash.h"

namespace ccixfer::datagram {

using wire::Reader;
using wire::Writer;

namespace {
// A sealed packet that is damaged in its header must not be taken for one of another connection: the answer to that ends this one.
uint32_t header_check(Bytes header) { return static_cast<uint32_t>(xxh3_64(header)); }

bool holds_check(Bytes datagram) {
  Reader check(datagram.last(packet_check_bytes));
  return check.u64() == xxh3_64(datagram.first(datagram.size() - packet_check_bytes));
}

std::optional<Packet> open_short(Bytes datagram, bool is_sealed) {
  const size_t tail = packet_tail_bytes(is_sealed);
  if (datagram.size() < packet_short_header_bytes + tail) return std::nullopt;
  Packet packet;
  packet.header.kind = is_sealed ? PacketKind::sealed : PacketKind::data;
  packet.header.is_short = true;
  Reader in(datagram.subspan(1));
  packet.header.destination = in.u32();
  packet.header.key = in.u64();
  packet.header.number = in.u32();
  packet.body = in.rest();
  if (is_sealed) return packet;
  packet.body = packet.body.first(packet.body.size() - tail);
  return holds_check(datagram) ? std::optional(packet) : std::nullopt;
}
}  // namespace

uint64_t whole_number(uint32_t lower_half, uint64_t next) {
  constexpr uint64_t range = uint64_t{1} << 32;
  const uint64_t number = (next & ~(range - 1)) | lower_half;
  if (next > number && next - number > range / 2 && number < ~uint64_t{0} - range) return number + range;
  if (number > next && number - next > range / 2 && number >= range) return number - range;
  return number;
}

void begin_packet(Writer& out, const PacketHeader& header) {
  if (header.is_short) {
    out.u8(header.kind == PacketKind::sealed ? packet_short_sealed : packet_short_data);
    out.u32(header.destination);
    out.u64(header.key);
    return out.u32(static_cast<uint32_t>(header.number));
  }
  out.u16(packet_magic);
  out.u8(static_cast<uint8_t>(header.kind));
  out.u8(header.version);
  out.u32(header.destination);
  out.u32(header.source);
  out.u64(header.key);
  out.u64(header.number);
  if (header.kind == PacketKind::sealed) out.u32(header_check(out.since(0)));
}

void end_packet(Writer& out) { out.u64(xxh3_64(out.since(0))); }

std::optional<Packet> open_packet(Bytes datagram) {
  const uint8_t form = datagram.empty() ? 0 : std::to_integer<uint8_t>(datagram.front());
  if (form == packet_short_data || form == packet_short_sealed) return open_short(datagram, form == packet_short_sealed);
  if (datagram.size() < packet_overhead_bytes) return std::nullopt;
  Reader in(datagram.first(packet_header_bytes));
  Packet packet;
  in.require(in.u16() == packet_magic);
  const uint8_t kind = in.u8();
  in.require(kind >= static_cast<uint8_t>(PacketKind::hello) && kind <= static_cast<uint8_t>(PacketKind::group));
  packet.header.kind = static_cast<PacketKind>(kind);
  packet.header.version = in.u8();
  packet.header.destination = in.u32();
  packet.header.source = in.u32();
  packet.header.key = in.u64();
  packet.header.number = in.u64();
  if (!in.done()) return std::nullopt;
  packet.body = datagram.subspan(packet_header_bytes);
  if (packet.header.kind == PacketKind::sealed) {
    Reader body(packet.body);
    const bool holds = body.u32() == header_check(datagram.first(packet_header_bytes));
    packet.body = body.rest();
    return holds && packet.body.size() >= packet_tag_bytes ? std::optional(packet) : std::nullopt;
  }
  if (!holds_check(datagram)) return std::nullopt;
  packet.body = packet.body.first(packet.body.size() - packet_check_bytes);
  return packet;
}

void encode(Writer& out, const Cookie& cookie) {
  out.u64(cookie.issued_at_ns);
  out.u64(cookie.proof);
}

std::optional<Cookie> decode_cookie(Bytes body) {
  Reader in(body);
  Cookie cookie;
  cookie.issued_at_ns = in.u64();
  cookie.proof = in.u64();
  if (!in.done()) return std::nullopt;
  return cookie;
}

void encode(Writer& out, const Hello& hello) {
  out.u32(hello.attempt);
  out.u8(static_cast<uint8_t>(hello.role));
  out.u8(static_cast<uint8_t>(hello.attribute));
  out.u8(hello.cookie ? 1 : 0);
  out.u8(hello.secured ? 1 : 0);
  out.u32(hello.offer.max_send_bytes);
  out.u32(hello.offer.sends_in_flight_max);
  out.u32(hello.offer.rmas_in_flight_max);
  out.u32(hello.datagram_bytes);
  encode(out, hello.cookie.value_or(Cookie{}));
  out.bytes16(hello.data);
  out.bytes16(hello.options);
}

std::optional<Hello> decode_hello(Bytes body) {
  Reader in(body);
  Hello hello;
  hello.attempt = in.u32();
  const uint8_t role = in.u8();
  const uint8_t attribute = in.u8();
  const uint8_t has_cookie = in.u8();
  const uint8_t secured = in.u8();
  in.require(role <= static_cast<uint8_t>(ports::Role::admin));
  in.require(attribute <= static_cast<uint8_t>(ports::Attribute::multicast_receive));
  in.require(has_cookie <= 1 && secured <= 1);
  hello.secured = secured == 1;
  hello.role = static_cast<ports::Role>(role);
  hello.attribute = static_cast<ports::Attribute>(attribute);
  hello.offer.max_send_bytes = in.u32();
  hello.offer.sends_in_flight_max = in.u32();
  hello.offer.rmas_in_flight_max = in.u32();
  hello.datagram_bytes = in.u32();
  Cookie cookie;
  cookie.issued_at_ns = in.u64();
  cookie.proof = in.u64();
  if (has_cookie == 1) hello.cookie = cookie;
  hello.data = in.bytes16(ports::connect_data_bytes_max);
  hello.options = in.bytes16(wire::hello_options_bytes_max);
  if (!in.ok()) return std::nullopt;  // what is left is padding
  return hello;
}

void encode(Writer& out, const HandshakePiece& piece) {
  out.u64(piece.key);
  out.u32(piece.datagram_bytes);
  out.u32(piece.arrived_bytes);
  out.u32(piece.offset_bytes);
  out.bytes16(piece.bytes);
}

std::optional<HandshakePiece> decode_handshake_piece(Bytes body) {
  Reader in(body);
  HandshakePiece piece;
  piece.key = in.u64();
  piece.datagram_bytes = in.u32();
  piece.arrived_bytes = in.u32();
  piece.offset_bytes = in.u32();
  piece.bytes = in.bytes16();
  in.require(piece.key != 0);
  if (!in.done()) return std::nullopt;
  return piece;
}

void encode(Writer& out, const wire::EndNotice& notice) {
  out.u8(static_cast<uint8_t>(notice.status));
  out.text16(notice.reason.substr(0, wire::reason_bytes_max));
}

wire::EndNotice decode_end_notice(Reader& in) {
  wire::EndNotice notice;
  const uint8_t status = in.u8();
  in.require(is_known_status(status) && status != static_cast<uint8_t>(Status::success));
  notice.status = static_cast<Status>(status);
  notice.reason = in.text16(wire::reason_bytes_max);
  return notice;
}

}  // namespace ccixfer::datagram
