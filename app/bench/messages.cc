#include "app/bench/messages.h"

#include <algorithm>
#include <string_view>

#include "core/wire/remote_ref.h"

namespace ccixfer::bench {
namespace {

constexpr std::string_view magic = "ccixfer bench";
constexpr uint16_t version = 1;

wire::Reader body_of(Bytes message) { return wire::Reader(message.subspan(1)); }

bool is(Bytes message, Kind kind) { return kind_of(message) == kind; }

}  // namespace

std::vector<std::byte> encode_hello(Purpose purpose) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.text(magic);
  out.u16(version);
  out.u8(static_cast<uint8_t>(purpose));
  return bytes;
}

std::optional<Purpose> decode_hello(Bytes connect_data) {
  wire::Reader in(connect_data);
  in.require(in.text(magic.size()) == magic);
  in.require(in.u16() == version);
  const uint8_t purpose = in.u8();
  in.require(purpose <= static_cast<uint8_t>(Purpose::extra));
  if (!in.done()) return std::nullopt;
  return static_cast<Purpose>(purpose);
}

std::optional<Kind> kind_of(Bytes message) {
  if (message.empty()) return std::nullopt;
  const auto kind = std::to_integer<uint8_t>(message.front());
  if (kind < static_cast<uint8_t>(Kind::open) || kind > static_cast<uint8_t>(Kind::exchange)) return std::nullopt;
  return static_cast<Kind>(kind);
}

std::vector<std::byte> encode(const Open& open) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>(Kind::open));
  out.u64(open.slot_bytes);
  out.u32(open.slots);
  out.u32(open.buffers);
  out.u64(open.reply_bytes);
  wire::encode(out, open.landing);
  wire::encode(out, open.mailbox);
  return bytes;
}

std::optional<Open> decode_open(Bytes message) {
  if (!is(message, Kind::open)) return std::nullopt;
  wire::Reader in = body_of(message);
  Open open;
  open.slot_bytes = in.u64();
  open.slots = in.u32();
  open.buffers = in.u32();
  open.reply_bytes = in.u64();
  open.landing = wire::decode_handle(in);
  open.mailbox = wire::decode_handle(in);
  in.require(open.slot_bytes >= 1 && open.slot_bytes <= size_bytes_max);
  in.require(open.slots >= 1 && open.slots <= depth_max && open.slots * open.slot_bytes <= memory_bytes_max);
  in.require(open.buffers >= 1 && open.buffers <= 4 * depth_max);
  in.require(open.reply_bytes >= 1 && open.reply_bytes <= open.slot_bytes);
  if (!in.done()) return std::nullopt;
  return open;
}

std::vector<std::byte> encode(const Opened& opened) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>(Kind::opened));
  wire::encode(out, opened.region);
  wire::encode(out, opened.mailbox);
  wire::encode(out, opened.echo_mailbox);
  out.u8(static_cast<uint8_t>(opened.wait));
  return bytes;
}

std::optional<Opened> decode_opened(Bytes message) {
  if (!is(message, Kind::opened)) return std::nullopt;
  wire::Reader in = body_of(message);
  Opened opened;
  opened.region = wire::decode_handle(in);
  opened.mailbox = wire::decode_handle(in);
  opened.echo_mailbox = wire::decode_handle(in);
  const uint8_t wait = in.u8();
  in.require(wait <= static_cast<uint8_t>(Wait::spin));
  if (!in.done()) return std::nullopt;
  opened.wait = static_cast<Wait>(wait);
  return opened;
}

std::vector<std::byte> encode_address(const ports::Handle& handle) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>(Kind::address));
  wire::encode(out, handle);
  return bytes;
}

std::optional<ports::Handle> decode_address(Bytes message) {
  if (!is(message, Kind::address)) return std::nullopt;
  wire::Reader in = body_of(message);
  const ports::Handle handle = wire::decode_handle(in);
  if (!in.done()) return std::nullopt;
  return handle;
}

std::vector<std::byte> encode_want(uint64_t bytes_wanted) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>(Kind::want));
  out.u64(bytes_wanted);
  return bytes;
}

std::optional<uint64_t> decode_want(Bytes message) {
  if (!is(message, Kind::want)) return std::nullopt;
  wire::Reader in = body_of(message);
  const uint64_t bytes = in.u64();
  if (!in.done()) return std::nullopt;
  return bytes;
}

std::vector<std::byte> encode_padded(Kind kind, uint32_t size_bytes) {
  std::vector<std::byte> bytes(std::max<uint32_t>(size_bytes, 1));
  bytes.front() = std::byte{static_cast<uint8_t>(kind)};
  return bytes;
}

}  // namespace ccixfer::bench
