// What stands staged below a root, for people: read from a copy of the ledger, so that a receiver that runs is neither stopped nor
// waited for, and nothing of its is written. Of the root nothing but reading is needed. Errors: file_io: it cannot be read, or the
// ledger changed again and again while it was copied.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

struct StagedEntry {
  std::string path;         // final path below the root
  uint64_t bytes = 0;       // durable
  uint64_t size_bytes = 0;  // 0: nobody knows it yet
  std::string peer;         // "": nobody noted it
  int64_t since_s = 0;      // since 1970; 0: nobody noted it
  int64_t active_s = 0;     // the last change
};

// In the order of their paths. `root` is its path, `scratch` a directory for the copy. Gives how many there were.
[[nodiscard]] Result<uint64_t> list_staged(ports::FileSystem& files, const std::string& root, const std::string& scratch,
                                           const std::function<void(const StagedEntry&)>& each);

}  // namespace ccixfer::recv
