// Base32 of RFC 4648 in lower case without padding, for ids and tickets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ccixfer::trust {

[[nodiscard]] std::string base32(std::span<const uint8_t> bytes);
// The value of a letter in either case; nothing: it is none.
[[nodiscard]] std::optional<uint8_t> base32_value(char letter);
// Takes upper case too. Nothing: a character or a length that base32 does not have, or bits at the end that are not zero. So bytes
// have one text, but for the case of letters. The caller wipes what is secret.
[[nodiscard]] std::optional<std::vector<uint8_t>> from_base32(std::string_view text);

}  // namespace ccixfer::trust
