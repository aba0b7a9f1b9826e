// A text with the letters A to Z in lower case, all else as it is: names of hosts, whose case means nothing.
#pragma once
#include <string>
#include <string_view>

namespace ccixfer {

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace ccixfer
