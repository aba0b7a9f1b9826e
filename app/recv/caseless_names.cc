#include "app/recv/caseless_names.h"

#include "core/base/bytes.h"
#include "core/base/hash.h"

namespace ccixfer::recv {

std::string without_case(std::string_view path) {
  std::string folded(path);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return folded;
}

std::string without_case_or_accents(std::string_view path) {
  std::string folded;
  for (const char c : without_case(path)) {
    if ((static_cast<unsigned char>(c) & 0x80u) == 0) folded.push_back(c);
  }
  return folded;
}

bool CaselessNames::take(std::string_view path, bool is_directory) {
  if (taken_.size() >= paths_max) return true;
  const auto [at, is_new] = taken_.emplace(xxh3_64(as_bytes(without_case(path))), is_directory);
  return is_new || (at->second && is_directory);
}

}  // namespace ccixfer::recv
