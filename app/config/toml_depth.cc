#include "app/config/toml_depth.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// Behind a string or comment that begins at `at`; `at` itself where none does. What is not closed ends with its line, or with the
// text.
size_t skip(std::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size());
  if (quote != '"' && quote != '\'') return at;
  const bool long_one = text.substr(at, 3) == std::string(3, quote);
  for (size_t i = at + (long_one ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == '\n' && !long_one) {
      return i;
    } else if (text[i] == quote && (!long_one || text.substr(i, 3) == std::string(3, quote))) {
      return i + (long_one ? 3 : 1);
    }
  }
  return text.size();
}

}  // namespace

std::optional<std::string> toml_depth_error(std::string_view file, std::string_view text) {
  size_t brackets = 0, dots = 0;
  for (size_t at = 0; at < text.size();) {
    if (const size_t behind = skip(text, at); behind != at) {
      at = behind;
      continue;
    }
    const char c = text[at++];
    if (c == '.') ++dots;
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
    if (brackets <= toml_depth_max && dots < toml_depth_max) continue;
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    return fmt::format("{}:{}: nested more than {} levels deep: no key of this file needs that", printable(file), line,
                       toml_depth_max);
  }
  return std::nullopt;
}

}  // namespace ccixfer::program
