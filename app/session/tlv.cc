#include "app/session/tlv.h"

#include <fmt/core.h>

#include "core/base/check.h"

namespace ccixfer::session {
namespace {

constexpr uint16_t number_of(uint16_t type) { return static_cast<uint16_t>(type & ~tlv_mandatory); }

}  // namespace

wire::Writer& TlvWriter::begin(uint16_t type, size_t value_bytes) {
  CHECK(number_of(type) > last_number_ && count_ < tlvs_max && value_bytes <= UINT32_MAX);
  last_number_ = number_of(type);
  ++count_;
  out_.u16(type);
  out_.u32(static_cast<uint32_t>(value_bytes));
  return out_;
}

std::optional<Tlv> TlvReader::next() {
  if (in_.remaining() == 0) return std::nullopt;
  Tlv tlv;
  tlv.type = in_.u16();
  tlv.value = in_.bytes32(UINT32_MAX);
  in_.require(number_of(tlv.type) > last_number_ && count_ < tlvs_max);
  if (!in_.ok()) return std::nullopt;
  last_number_ = number_of(tlv.type);
  ++count_;
  return tlv;
}

void TlvReader::skip(const Tlv& tlv) {
  if (unknown_mandatory_ == 0 && (tlv.type & tlv_mandatory) != 0) unknown_mandatory_ = tlv.type;
}

std::string words_of_unknown(std::string_view what, uint16_t type) {
  return fmt::format("the version of the accepting side does not know field {} of the {}: run the same version at both ends",
                     number_of(type), what);
}

}  // namespace ccixfer::session
