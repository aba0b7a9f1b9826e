// Of which names one transfer has kept a backup (--backup), over all of its sessions: a later session finds what an earlier one put
// there, and that is not what the user wants to keep.
// In: paths below the root. Thread-safe. Bound: names_max, of 8 bytes each; a name beyond that is kept anew each time.
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "app/session/kept_names.h"
#include "core/base/bytes.h"
#include "core/base/hash.h"

namespace ccixfer::recv {

class KeptBackups final : public session::KeptNames {
 public:
  static constexpr size_t names_max = 1u << 16;

  [[nodiscard]] bool has(std::string_view path) const override {
    const std::lock_guard lock(mutex_);
    return names_.contains(xxh3_64(as_bytes(path)));
  }
  void add(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    if (names_.size() < names_max) names_.insert(xxh3_64(as_bytes(path)));
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<uint64_t> names_;
};

}  // namespace ccixfer::recv
