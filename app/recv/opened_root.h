// A root that is open: its descriptors, its databases, and everything else that the sessions below it
// share. Pool threads use it, so each part that changes after the opening is atomic or locks itself.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "app/recv/claims.h"
#include "app/recv/deliveries.h"
#include "app/recv/directories.h"
#include "app/recv/disk_sync.h"
#include "app/recv/given_groups.h"
#include "app/recv/kept_times.h"
#include "app/recv/ledger.h"
#include "app/recv/names.h"

namespace ccixfer::recv {

// It is one struct because its parts live as long as the descriptors that they use, and are exchanged as one when the root is
// renewed. Each part is a class of its own.
struct OpenedRoot {
  OpenedRoot(ports::FileSystem& file_system, int root_fd, std::string root_path)
      : files(file_system), fd(root_fd), path(std::move(root_path)), held_directories(file_system.descriptors_max()) {}
  ~OpenedRoot();
  OpenedRoot(const OpenedRoot&) = delete;
  OpenedRoot& operator=(const OpenedRoot&) = delete;

  ports::FileSystem& files;
  const int fd;                                    // -1: a look at a root that is not there
  int staging = -1;                                // descriptor of .ccixfer
  ports::FileIdentity identity, staging_identity;  // of the root, and of .ccixfer
  std::atomic<bool> stale{false};                  // found to have been moved, removed or replaced: see check
  const std::string path;
  HeldBudget held_directories;  // locks itself
  uint64_t device = 0;
  uint32_t umask = 022;                    // measured at open: what open(2) takes off below this root
  uint32_t uid = 0, gid = 0;               // that a new file gets
  bool one_writer_a_file = false;          // as ports::SpaceInfo has it
  bool syncfs_tells = false;               // as ports::SpaceInfo has it
  bool ignores_case = false;               // two names that differ in case only are one
  std::unique_ptr<DiskSync> disk;          // locks itself
  KeptTimes kept_times;                    // locks itself
  GivenGroups given_groups;                // locks itself
  std::unique_ptr<Ledger> ledger;          // locks itself
  std::unique_ptr<Deliveries> deliveries;  // locks itself; none for a look, as the ledger
  Claims claims;                           // locks itself
  std::mutex history;                      // of whoever writes it, see history.h
  std::atomic<uint64_t> temporaries{0};    // numbers of staged files of packs
  std::atomic<uint32_t> sessions{0};
  std::atomic<bool> may_have_unrecorded{false};  // a session has ended that staged files: see remove_unrecorded
  // Directories that were made, and how many of their names are known to be durable. A file in a new
  // directory needs that.
  std::atomic<uint64_t> directories_made{0};
  std::atomic<uint64_t> directories_synced{0};

  // 0: the root's path and its .ccixfer still lead to what this object holds. Otherwise -ESTALE: the
  // object is useless, the sessions on it end as interrupted, and the next one gets what is there then
  // (Root::renew).
  [[nodiscard]] int check();
  // The error of a call in staging; -ESTALE: it failed because the staging directory is gone.
  [[nodiscard]] int judged(int error) { return error == -ENOENT && check() < 0 ? -ESTALE : error; }

  [[nodiscard]] std::string temporary_name();
};

}  // namespace ccixfer::recv
