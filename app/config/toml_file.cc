#include "app/config/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <toml.hpp>

#include "app/config/toml_depth.h"
#include "app/config/toml_error.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::program {
namespace {

// Found before the parser sees it: in a quoted key or text toml11 3.7 reads beyond its memory when it says where the bad byte is.
std::optional<std::string> encoding_error(std::string_view file, std::string_view text) {
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (!is_utf8(line))
      return fmt::format("{}:{}: {}: is not UTF-8: save the file as UTF-8", file, number, printable(line.substr(0, 80)));
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

Result<TomlValue> parse_toml(const std::string& file, const std::string& text) {
  if (auto problem = toml_depth_error(file, text)) return fail(ErrorKind::usage, std::move(*problem));
  if (auto problem = encoding_error(file, text)) return fail(ErrorKind::usage, std::move(*problem));
  try {
    std::istringstream stream(text);
    return toml::parse<toml::discard_comments, std::map, std::vector>(stream, file);
  } catch (const toml::exception& problem) {
    return fail(ErrorKind::usage, toml_error(file, problem.location().line(), problem.what(), problem.location().line_str()));
  } catch (const std::exception& problem) {
    return fail(ErrorKind::usage, toml_error(file, problem.what()));
  }
}

}  // namespace ccixfer::program
