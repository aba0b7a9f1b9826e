// Which groups this account may give to what it makes, when it is not root. That depends on the account and on the file system, so
// it is tried, once for each group, with a file in the staging directory.
// Thread-safe. Bound: groups_max; a group beyond that is tried each time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

class GivenGroups {
 public:
  static constexpr size_t groups_max = 4096;
  // `scratch`: a name in `staging` that is free. True also where it cannot be tried.
  [[nodiscard]] bool may_give(ports::FileSystem& files, int staging, std::string_view scratch, uint32_t gid);

 private:
  std::mutex mutex_;
  std::map<uint32_t, bool> known_;
};

}  // namespace ccixfer::recv
