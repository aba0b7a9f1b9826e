#include "app/report/toml_file.h"

#include <sstream>
#include <toml.hpp>

#include "app/report/toml_depth.h"
#include "app/report/toml_error.h"

namespace ccixfer::report {

Result<TomlValue> parse_toml(const std::string& file, const std::string& text) {
  if (auto problem = toml_depth_error(file, text)) return fail(ErrorKind::usage, std::move(*problem));
  try {
    std::istringstream stream(text);
    return toml::parse<toml::discard_comments, std::map, std::vector>(stream, file);
  } catch (const toml::exception& problem) {
    return fail(ErrorKind::usage, toml_error(file, problem.location().line(), problem.what(), problem.location().line_str()));
  } catch (const std::exception& problem) {
    return fail(ErrorKind::usage, toml_error(file, problem.what()));
  }
}

}  // namespace ccixfer::report
