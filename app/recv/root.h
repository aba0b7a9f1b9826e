// The inside of a Root: what the sessions below one root share. Used by pool threads: each part says how it is guarded.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "app/recv/claims.h"
#include "app/recv/deliveries.h"
#include "app/recv/destination.h"
#include "app/recv/directories.h"
#include "app/recv/disk_sync.h"
#include "app/recv/kept_times.h"
#include "app/recv/ledger.h"
#include "app/recv/names.h"

namespace ccixfer::recv {

struct Root::Impl {
  Impl(ports::FileSystem& file_system, int root_fd, std::string root_path)
      : files(file_system), fd(root_fd), path(std::move(root_path)), held_directories(file_system.descriptors_max()) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

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
  bool one_writer_a_file = false;          // as of ports::SpaceInfo
  bool syncfs_tells = false;               // too
  std::unique_ptr<DiskSync> disk;          // locks itself
  KeptTimes kept_times;                    // locks itself
  std::unique_ptr<Ledger> ledger;          // locks itself
  std::unique_ptr<Deliveries> deliveries;  // locks itself; none for a look, as the ledger
  Claims claims;                           // locks itself
  std::atomic<uint64_t> temporaries{0};    // numbers of staged files of packs
  std::atomic<uint32_t> sessions{0};
  // Directories made, and how many of them are known to be durable by name: a file in a new directory needs that too.
  std::atomic<uint64_t> directories_made{0};
  std::atomic<uint64_t> directories_synced{0};

  // 0: the root's path and its .ccixfer still lead to what this object holds. Else -ESTALE, and it is of no more use: the sessions
  // on it end as interrupted, and the next one gets what is there then (Root::renew).
  [[nodiscard]] int check();
  // A failure of a call in staging: -ESTALE when it failed because that is gone.
  [[nodiscard]] int judged(int error) { return error == -ENOENT && check() < 0 ? -ESTALE : error; }

  [[nodiscard]] std::string temporary_name();
};

}  // namespace ccixfer::recv
