// What earlier runs left in the staging directory. It is removed when a root is opened, before any
// session uses it.
#pragma once
#include "app/recv/opened_root.h"

namespace ccixfer::recv {

inline constexpr int64_t partial_age_max_s = 30 * int64_t{24 * 3600};

// Removes staged files that no row of the ledger names, and those of packs.
void remove_unnamed(OpenedRoot& root);
// Removes partial files whose last change is longer ago than partial_age_max_s, with their rows, and
// rows without a file. The last change is the ctime, which only the file system sets. `now` is by the
// file system's clock.
void remove_expired(OpenedRoot& root, ports::FileTime now);

}  // namespace ccixfer::recv
