// The one line for a TOML file that the parser refuses. The parser's own words draw a picture over several lines.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ccixfer::program {

// "FILE:LINE: KEY: WORDS: correct the TOML". `words` and `text` as toml::exception has them: what() and its location's line_str().
[[nodiscard]] std::string toml_error(std::string_view file, uint64_t line, std::string words, std::string text);
// The same for an exception without a place.
[[nodiscard]] std::string toml_error(std::string_view file, std::string words);

}  // namespace ccixfer::program
