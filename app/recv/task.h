// What jobs know of a file in work. It is constant from the verdict to the end of the entry, and the
// jobs that touch the file share it.
#pragma once
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "app/recv/attributes.h"
#include "app/recv/ledger.h"
#include "core/base/hash.h"
#include "core/base/result.h"

namespace ccixfer::recv {

inline constexpr uint64_t size_unknown = ~uint64_t{0};         // standard input: its length comes with FileEnd
inline constexpr uint64_t file_bytes_max = uint64_t{1} << 46;  // 64 TiB: bounds the table of pieces

struct FileTask {
  uint64_t index = 0;
  std::string path;         // final path below the root
  Hash128 key;              // path_key(path)
  uint64_t size_bytes = 0;  // or size_unknown
  uint64_t version = 0;
  Attributes attributes;
  uint16_t items = 0;              // session::Items
  bool in_place = false;           // it is written into the file that stands there (--inplace), not into staging ...
  uint64_t device = 0, inode = 0;  // ... which is this one
  std::string linked_to = {};      // with item_named: the name that -i shows
  // Of a file that has several names: which one (linked_names.h), and where its first name stands below the root.
  std::string first_name = {}, path_of_first = {};
  bool sparse = false;  // runs of zeros become holes
  bool has_digest = false;
  Hash128 digest;
  [[nodiscard]] Ledger::File ledger_file() const { return {key, version}; }
};
using FileTaskRef = std::shared_ptr<const FileTask>;

// Failures that end the session and not the file alone: there is no space, nothing can be written at all, or (ESTALE) a directory
// is no longer what its path leads to.
[[nodiscard]] inline bool is_no_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}
[[nodiscard]] inline bool is_fatal(int error_number) {
  return is_no_space(error_number) || error_number == EROFS || error_number == ESTALE;
}
[[nodiscard]] Error fatal_error(int error_number, const std::string& path);
[[nodiscard]] std::string describe_errno(int error_number);

}  // namespace ccixfer::recv
