#include "app/config/toml_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace ccixfer::program {
namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text);
}

// What the parser says is wrong. Its first line, `[error] toml::FUNCTION: WORDS`, says it mostly; where that has no words, or only
// that the line is bad, they stand in the picture below, behind the mark under the place.
std::string reason(const std::string& words) {
  std::string headline = words.substr(0, words.find('\n'));
  if (const size_t prefix = headline.find("[error] "); prefix != std::string::npos) headline.erase(0, prefix + 8);
  if (headline.starts_with("toml::")) {
    const size_t end = headline.find(": ");
    headline.erase(0, end == std::string::npos ? end : end + 2);
  }
  if (!headline.empty() && headline != "invalid line format") return headline;
  const size_t mark = words.find("^---");
  if (mark == std::string::npos) return headline.empty() ? "it cannot be read" : headline;
  std::string remark = words.substr(mark + 4, words.find('\n', mark) - mark - 4);
  remark.erase(0, remark.find_first_not_of("- "));
  // Of a bare word the parser says what it tried last.
  if (remark.starts_with("the next token is not")) return "this is no value, and text stands in quotes";
  return remark;
}

}  // namespace

std::string toml_error(std::string_view file, uint64_t line, std::string words, std::string text) {
  words = reason(words);
  text = text.substr(0, text.find('='));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return fmt::format("{}:{}: {}: {}: correct the TOML", printable(file), line, printable(text), one_line(std::move(words)));
}

std::string toml_error(std::string_view file, std::string words) {
  return fmt::format("{}:1: {}: correct the TOML", printable(file), one_line(std::move(words)));
}

}  // namespace ccixfer::program
