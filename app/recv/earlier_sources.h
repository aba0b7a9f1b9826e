// What the earlier sources of one command have brought (a pull from several SRC_URI): of two that have one name the first one's
// counts, as with rsync. Otherwise each run of the command would bring both, one after the other.
// In: final paths below the root. Thread-safe. Bound: paths_max, of 8 bytes each; of a path beyond that the last one's counts.
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "core/base/bytes.h"
#include "core/base/hash.h"

namespace ccixfer::recv {

class EarlierSources {
 public:
  static constexpr size_t paths_max = 1u << 20;

  // Whether a source before the one at hand has brought this path, in whatever session.
  [[nodiscard]] bool have(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    return earlier_.contains(xxh3_64(as_bytes(path)));
  }
  void add(std::string_view path) {  // the source at hand has brought it
    const std::lock_guard lock(mutex_);
    if (earlier_.size() + now_.size() < paths_max) now_.insert(xxh3_64(as_bytes(path)));
  }
  void next_source() {
    const std::lock_guard lock(mutex_);
    earlier_.merge(now_);
    now_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<uint64_t> earlier_, now_;
};

}  // namespace ccixfer::recv
