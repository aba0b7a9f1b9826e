// What stands aside of the tree that is written, from what was asked for: older trees to link to and places of backups.
#pragma once
#include <string>
#include <vector>

#include "app/main/sync_options.h"
#include "app/recv/aside.h"
#include "app/session/open.h"
#include "core/base/result.h"
#include "core/sandbox/plan.h"

namespace ccixfer::program {

void add_aside(session::Open& open, const SyncOptions& sync);  // of a push
// Of a push that came, into `base` below the root. not_authorised: a place leaves the root.
[[nodiscard]] Result<recv::Aside> aside_of(const session::Open& open, const std::string& base);

// Of a pull. What is confined can make nothing outside the directory that it writes, so a directory for backups that lies elsewhere
// is made first, and goes again if nothing was kept in it.
struct AsideOfPull {
  recv::Aside aside;
  std::vector<std::string> made = {};  // for backups, each in the one before it
};
// Into `directory`, which is there unless `dry_run` is set. file_io: the directory for backups cannot be made. usage: it is
// reserved.
[[nodiscard]] Result<AsideOfPull> aside_of(const SyncOptions& sync, const std::string& directory, bool dry_run);
void add_aside(sandbox::Plan& plan, const AsideOfPull& aside);
void remove_unused(const AsideOfPull& aside);

}  // namespace ccixfer::program
