// printable(): names of files are a peer's bytes, and a terminal obeys bytes.
#include <cstddef>
#include <cstdint>

#include "core/base/units.h"

namespace ccixfer {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: not UTF-8 at this place
};

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// One code point, strictly: no overlong form, no surrogate, nothing over U+10FFFF, nothing cut off.
CodePoint decode(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1};
  size_t bytes = 0;
  uint32_t value = 0;
  uint32_t least = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    bytes = 2, value = lead & 0x1fU, least = 0x80;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    bytes = 3, value = lead & 0x0fU, least = 0x800;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    bytes = 4, value = lead & 0x07U, least = 0x10000;
  } else {
    return {};
  }
  if (text.size() - at < bytes) return {};
  for (size_t i = 1; i < bytes; ++i) {
    const uint8_t next = byte_at(text, at + i);
    if ((next & 0xc0U) != 0x80) return {};
    value = (value << 6) | (next & 0x3fU);
  }
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, bytes};
}

// C0, DEL, C1; line and paragraph separators; the embeddings, overrides and isolates that let a name show as another.
bool harmful(uint32_t value) {
  return value < 0x20 || (value >= 0x7f && value <= 0x9f) || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
}

void append_escaped(std::string& out, uint8_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  out += '%';
  out += digits[byte >> 4];
  out += digits[byte & 0x0fU];
}

bool needs_escape(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const CodePoint point = decode(name, at);
    if (point.bytes == 0 || harmful(point.value)) return true;
    at += point.bytes;
  }
  return false;
}

}  // namespace

std::string printable(std::string_view name, bool* escaped) {
  const bool escape = needs_escape(name);
  if (escaped != nullptr) *escaped = escape;
  if (!escape) return std::string(name);
  std::string out;
  out.reserve(name.size() + 16);
  for (size_t at = 0; at < name.size();) {
    const CodePoint point = decode(name, at);
    const size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes == 0 || harmful(point.value) || point.value == '%') {
      for (size_t i = 0; i < bytes; ++i) append_escaped(out, byte_at(name, at + i));
    } else {
      out += name.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

}  // namespace ccixfer
