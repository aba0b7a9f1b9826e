// Directories whose own modes keep their owner out. A receiver that is not root and owns one unlocks it for as long as it has
// something to do in it; a dry run leaves it as it is, and cannot tell what is in it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr uint32_t owner_searches = 0100;  // what the owner needs to reach what is in a directory
inline constexpr uint32_t owner_looks = 0500;     // and to list it
inline constexpr uint32_t owner_writes = 0700;    // and to write in it

// `uid` owns the directory, and its mode keeps him from listing it or from what is in it. Root needs no permission.
[[nodiscard]] bool is_locked(const ports::FileStat& stat, uint32_t uid);
// The same of writing in it.
[[nodiscard]] bool is_read_only(const ports::FileStat& stat, uint32_t uid);
// The directory at the path below `root`, or one above it, is locked.
[[nodiscard]] bool leads_into_locked(ports::FileSystem& files, int root, std::string_view path, uint32_t uid);

// The open directory has a mode that lets `uid` write in it for as long as this lives.
class MadeWritable {
 public:
  MadeWritable(ports::FileSystem& files, int directory, uint32_t uid);
  ~MadeWritable();
  MadeWritable(const MadeWritable&) = delete;
  MadeWritable& operator=(const MadeWritable&) = delete;

 private:
  ports::FileSystem& files_;
  const int directory_;
  std::optional<uint32_t> mode_before_;
};

}  // namespace ccixfer::recv
