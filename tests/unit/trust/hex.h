// Bytes as hexadecimal text and back, for values that are written down in tests.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ccixfer::trust {

template <typename Range>
[[nodiscard]] std::string hex(const Range& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

[[nodiscard]] inline std::vector<std::byte> bytes_of_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace ccixfer::trust
