// A variable of the environment as a number: all of it, or none. Private to this room.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace ccixfer::host {

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace ccixfer::host
