// On a file system that ignores case, such as FAT, two names of the source may be one name here: the second file would take the
// place of the first, and both would be told as delivered. Upper and lower case of ASCII letters are taken for the same; what else
// such a file system takes for the same is not known to us.
// Not thread-safe, but not tied to a thread. Memory: 40 bytes for each path, of at most paths_max; those beyond are not compared.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ccixfer::recv {

[[nodiscard]] std::string without_case(std::string_view path);
// The same for all paths that any such file system may take for one, and for some others.
[[nodiscard]] std::string without_case_or_accents(std::string_view path);

// The paths of one session.
class CaselessNames {
 public:
  static constexpr size_t paths_max = 2u << 20;
  // False: another one was there before. Directories may be one.
  [[nodiscard]] bool take(std::string_view path, bool is_directory);

 private:
  std::unordered_map<uint64_t, bool> taken_;  // by hash: is a directory
};

}  // namespace ccixfer::recv
