// Views of raw memory. Owners are elsewhere; a view never outlives the call it is passed to unless its header says so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ccixfer {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace ccixfer
