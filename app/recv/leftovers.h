// What earlier runs left in the staging directory: taken away when a root is opened, before any session uses it.
#pragma once
#include "app/recv/root.h"

namespace ccixfer::recv {

inline constexpr int64_t partial_age_max_s = 30 * int64_t{24 * 3600};

// Staged files that no row of the ledger names, and those of packs.
void remove_unnamed(Root::Impl& root);
// Partial files whose last change (ctime, which only the file system sets) is longer ago than partial_age_max_s, with their rows,
// and rows without a file. `now`: by the file system's clock.
void remove_expired(Root::Impl& root, ports::FileTime now);

}  // namespace ccixfer::recv
