#include "core/wire/connection_frames.h"

#include <algorithm>

namespace ccixfer::wire {
namespace {

std::string_view cut(std::string_view reason) { return reason.substr(0, reason_bytes_max); }

void encode(Writer& out, const Offer& offer) {
  out.u32(offer.max_send_bytes);
  out.u32(offer.sends_in_flight_max);
  out.u32(offer.rmas_in_flight_max);
}

Offer decode_offer(Reader& in) {
  Offer offer;
  offer.max_send_bytes = in.u32();
  offer.sends_in_flight_max = in.u32();
  offer.rmas_in_flight_max = in.u32();
  return offer;
}

void encode(Writer& out, const HostIdentity& machine) {
  out.u64(machine.number);
  out.u64(machine.booted_ms);
}

HostIdentity decode_machine(Reader& in) {
  HostIdentity machine;
  machine.number = in.u64();
  machine.booted_ms = in.u64();
  return machine;
}

// Both ends look at the clock within a connect's time; where it was set in between, or two machines came up together, they count as
// one.
constexpr uint64_t boots_apart_ms = 10'000;

Status decode_status(Reader& in) {
  const uint8_t value = in.u8();
  in.require(is_known_status(value));
  return static_cast<Status>(value);
}

void encode_end_notice(Writer& out, Kind kind, const EndNotice& frame) {
  const HeaderWriter header(out, kind);
  out.u8(static_cast<uint8_t>(frame.status));
  out.u8(0);
  out.text16(cut(frame.reason));
}

}  // namespace

bool are_apart(const HostIdentity& one, const HostIdentity& other) {
  const uint64_t between = one.booted_ms > other.booted_ms ? one.booted_ms - other.booted_ms : other.booted_ms - one.booted_ms;
  return one.number != 0 && other.number != 0 && one.number != other.number && between >= boots_apart_ms;
}

OptionScan scan_options(Bytes options) {
  Reader in(options);
  while (in.ok() && in.remaining() > 0) {
    const uint16_t type = in.u16();
    static_cast<void>(in.bytes16(hello_options_bytes_max));
    if (in.ok() && (type & option_mandatory) != 0) return OptionScan::unknown_mandatory;
  }
  return in.ok() ? OptionScan::fine : OptionScan::malformed;
}

void encode(Writer& out, const Hello& frame) {
  const HeaderWriter header(out, Kind::hello);
  out.u64(frame.magic);
  out.u16(frame.version);
  out.u8(static_cast<uint8_t>(frame.role));
  out.u8(static_cast<uint8_t>(frame.attribute));
  encode(out, frame.offer);
  encode(out, frame.machine);
  out.bytes16(frame.data);
  out.bytes16(frame.options);
}

std::optional<Hello> decode_hello(Bytes header) {
  Reader in = fields_of(header);
  Hello frame;
  frame.magic = in.u64();
  frame.version = in.u16();
  const bool ours = frame.magic == magic && frame.version == version;
  if (in.ok() && !ours) return frame;
  const uint8_t role = in.u8();
  const uint8_t attribute = in.u8();
  in.require(role <= static_cast<uint8_t>(ports::Role::admin));
  in.require(attribute <= static_cast<uint8_t>(ports::Attribute::multicast_receive));
  frame.role = static_cast<ports::Role>(role);
  frame.attribute = static_cast<ports::Attribute>(attribute);
  frame.offer = decode_offer(in);
  frame.machine = decode_machine(in);
  frame.data = in.bytes16(ports::connect_data_bytes_max);
  frame.options = in.bytes16(hello_options_bytes_max);
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode(Writer& out, const HelloReply& frame) {
  const HeaderWriter header(out, Kind::hello_reply);
  out.u64(frame.magic);
  out.u16(frame.version);
  out.u8(static_cast<uint8_t>(frame.status));
  out.u8(0);
  encode(out, frame.offer);
  encode(out, frame.machine);
  out.text16(cut(frame.reason));
}

std::optional<HelloReply> decode_hello_reply(Bytes header) {
  Reader in = fields_of(header);
  HelloReply frame;
  frame.magic = in.u64();
  frame.version = in.u16();
  frame.status = decode_status(in);
  in.require(in.u8() == 0);
  frame.offer = decode_offer(in);
  frame.machine = decode_machine(in);
  frame.reason = in.text16(reason_bytes_max);
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode_handshake(Writer& out, Bytes records) {
  while (!records.empty()) {
    const Bytes part = records.first(std::min(records.size(), handshake_records_bytes_max));
    records = records.subspan(part.size());
    const HeaderWriter header(out, Kind::handshake);
    out.u64(magic);
    out.u16(handshake_version);
    out.bytes16(part);
  }
}

std::optional<HandshakeBytes> decode_handshake(Bytes header) {
  Reader in = fields_of(header);
  HandshakeBytes frame;
  frame.magic = in.u64();
  frame.version = in.u16();
  if (in.ok() && (frame.magic != magic || frame.version != handshake_version)) return frame;
  frame.records = in.bytes16(handshake_records_bytes_max);
  in.require(!frame.records.empty());
  if (!in.done()) return std::nullopt;
  return frame;
}

void encode_reject(Writer& out, const EndNotice& frame) { encode_end_notice(out, Kind::connect_reject, frame); }
void encode_bye(Writer& out, const EndNotice& frame) { encode_end_notice(out, Kind::bye, frame); }
void encode_empty(Writer& out, Kind kind) { const HeaderWriter header(out, kind); }

std::optional<EndNotice> decode_end_notice(Bytes header) {
  Reader in = fields_of(header);
  EndNotice frame;
  frame.status = decode_status(in);
  in.require(in.u8() == 0);
  frame.reason = in.text16(reason_bytes_max);
  if (!in.done()) return std::nullopt;
  return frame;
}

}  // namespace ccixfer::wire
