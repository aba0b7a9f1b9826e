#include "app/session/message_seal.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

constexpr uint8_t sealed_kind = 255;

}  // namespace

bool is_sealed_message(Bytes bytes) { return !bytes.empty() && std::to_integer<uint8_t>(bytes[0]) == sealed_kind; }

std::vector<std::byte> seal_message(trust::SealKey& key, SealedChannel channel, uint64_t number, Bytes encoded) {
  CHECK(encoded.size() <= session_message_bytes_max);
  std::vector<std::byte> bytes;
  bytes.reserve(sealed_head_bytes + encoded.size() + trust::tag_bytes);
  wire::Writer out(bytes);
  out.u8(sealed_kind);
  out.u8(static_cast<uint8_t>(channel));
  out.u16(static_cast<uint16_t>(encoded.size()));
  out.u64(number);
  out.bytes(encoded);
  const trust::Tag tag = key.seal(number, Bytes(bytes).first(sealed_head_bytes), MutableBytes(bytes).subspan(sealed_head_bytes));
  out.bytes(std::as_bytes(std::span(tag)));
  return bytes;
}

std::optional<SealedHead> sealed_head(Bytes bytes) {
  wire::Reader in(bytes);
  in.require(in.u8() == sealed_kind);
  const uint8_t channel = in.u8();
  in.require(channel <= static_cast<uint8_t>(SealedChannel::lane));
  const size_t length = in.u16();
  SealedHead head;
  head.number = in.u64();
  in.require(length <= session_message_bytes_max && in.remaining() == length + trust::tag_bytes);
  if (!in.ok()) return std::nullopt;
  head.channel = static_cast<SealedChannel>(channel);
  return head;
}

std::optional<std::vector<std::byte>> open_message(trust::SealKey& key, Bytes bytes) {
  const std::optional<SealedHead> head = sealed_head(bytes);
  if (!head) return std::nullopt;
  const Bytes sealed = bytes.subspan(sealed_head_bytes, bytes.size() - sealed_head_bytes - trust::tag_bytes);
  std::vector<std::byte> text(sealed.begin(), sealed.end());
  trust::Tag tag;
  const Bytes tag_at = bytes.last(trust::tag_bytes);
  std::transform(tag_at.begin(), tag_at.end(), tag.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
  if (!key.open(head->number, bytes.first(sealed_head_bytes), text, tag)) return std::nullopt;
  return text;
}

}  // namespace ccixfer::session
