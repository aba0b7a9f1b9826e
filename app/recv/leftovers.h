// What earlier runs left in the staging directory. It is removed when a root is opened, before any
// session uses it, and when somebody asks for it (ccixfer status --expire).
#pragma once
#include "app/recv/opened_root.h"

namespace ccixfer::recv {

// Removes staged files that no row of the ledger names, and those of packs.
void remove_unnamed(OpenedRoot& root);
// Removes partial files whose last change is longer ago than `age_s`, with their rows, and rows
// without a file. The last change is the ctime, which only the file system sets. `now` is by the file
// system's clock. What a session writes stays.
void remove_expired(OpenedRoot& root, ports::FileTime now, int64_t age_s);

// The same while sessions run: partial files that no row of the ledger names and that nobody writes. A session that found no room
// could not record what it had, so nothing of it can be resumed.
void remove_unrecorded(OpenedRoot& root);

// What another process puts into the staging directory to ask that what is older be removed: a symbolic link to the age in seconds,
// as digits, which takes no block of a full disk; or a file with them, where there are no links. It is removed when that is done.
// True: there was one.
inline constexpr std::string_view expire_request_name = "expire.request";
bool serve_expire_request(OpenedRoot& root);

}  // namespace ccixfer::recv
