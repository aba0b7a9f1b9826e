#include "core/trust/base32.h"

#include <algorithm>

#include "core/trust/secret.h"

namespace ccixfer::trust {
namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr unsigned letter_bits = 5;

}  // namespace

std::string base32(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() * 8 + letter_bits - 1) / letter_bits);  // one place in memory, for who wipes it
  uint32_t window = 0;
  unsigned bits = 0;
  for (const uint8_t byte : bytes) {
    window = (window << 8) | byte;
    for (bits += 8; bits >= letter_bits; bits -= letter_bits) text += letters[(window >> (bits - letter_bits)) & 31U];
  }
  if (bits != 0) text += letters[(window << (letter_bits - bits)) & 31U];
  return text;
}

std::optional<uint8_t> base32_value(char letter) {
  if (letter >= 'a' && letter <= 'z') return static_cast<uint8_t>(letter - 'a');
  if (letter >= 'A' && letter <= 'Z') return static_cast<uint8_t>(letter - 'A');
  if (letter >= '2' && letter <= '7') return static_cast<uint8_t>(letter - '2' + 26);
  return std::nullopt;
}

std::optional<std::vector<uint8_t>> from_base32(std::string_view text) {
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() * letter_bits / 8);
  uint32_t window = 0;
  unsigned bits = 0;
  bool good = true;
  for (const char letter : text) {
    const std::optional<uint8_t> value = base32_value(letter);
    good = good && value;
    window = (window << letter_bits) | value.value_or(0);
    bits += letter_bits;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<uint8_t>(window >> bits));
    }
  }
  // A whole letter too many, or bits that no byte has.
  if (good && bits < letter_bits && (window & ((1U << bits) - 1)) == 0) return bytes;
  wipe(bytes);
  return std::nullopt;
}

}  // namespace ccixfer::trust
