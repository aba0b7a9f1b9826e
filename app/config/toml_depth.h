// How deeply a TOML text is nested, found before the parser sees it: the parser calls itself once a level, so that a file of
// nothing but brackets would end the program.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ccixfer::program {

inline constexpr size_t toml_depth_max = 32;  // arrays and inline tables within one another; parts of a dotted key

// "FILE:LINE: WORDS: what to do" of the first place that is nested more deeply.
[[nodiscard]] std::optional<std::string> toml_depth_error(std::string_view file, std::string_view text);

}  // namespace ccixfer::program
