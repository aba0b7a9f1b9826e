#include "app/session/reserved.h"

#include <algorithm>

namespace ccixfer::session {
namespace {

// As a file system that ignores case compares the ASCII letters. What others it may take for equal (Unicode, short names) leads to
// the staging directory itself, which KnownDirectories refuses whatever it is called.
bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

bool is_reserved_name(std::string_view name) {
  if (!equals_ignoring_case(name.substr(0, staging_name.size()), staging_name)) return false;
  const std::string_view rest = name.substr(staging_name.size());
  if (rest.empty()) return true;
  return rest.size() > part_suffix.size() && rest.front() == '.' &&
         equals_ignoring_case(rest.substr(rest.size() - part_suffix.size()), part_suffix);
}

}  // namespace ccixfer::session
