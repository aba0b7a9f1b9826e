// A TOML text of the user as a tree of values. The parser is compiled in one file, toml_file.cc; those that walk the tree include
// <toml.hpp> (toml11 3.7) beside this, which only names its types.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace toml {
struct discard_comments;
template <typename Comment, template <typename...> class Table, template <typename...> class Array>
class basic_value;
}  // namespace toml

namespace ccixfer::program {

// Ordered: what is reported first never depends on a hash.
using TomlValue = toml::basic_value<toml::discard_comments, std::map, std::vector>;

// `file` is its name in what is said. ErrorKind::usage: one line with the place, what is wrong and what to do.
[[nodiscard]] Result<TomlValue> parse_toml(const std::string& file, const std::string& text);

}  // namespace ccixfer::program
