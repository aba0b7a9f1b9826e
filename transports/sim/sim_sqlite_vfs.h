// A SQLite VFS over a ports::FileSystem, so that the ledger lives on the simulated disk and loses what a crash loses. Registered
// with SQLite under a unique name as long as the object lives: sqlite3_open_v2(path, ..., vfs.name()). Paths: absolute ones as they
// are; others below `directory` (a descriptor of `files`; no_directory: from the disk's root). Syncs what SQLite's own VFS for unix
// syncs: the file, and its directory for a new journal or WAL. Locks hold among the connections of this VFS. No shared memory: WAL
// needs locking_mode=EXCLUSIVE. Randomness is seeded, time virtual. Single-threaded. Destroy after every database opened through
// it.
#pragma once
#include <memory>

#include "transports/sim/sim_file_system.h"

namespace ccixfer::sim {

class SimSqliteVfs {
 public:
  SimSqliteVfs(World& world, ports::FileSystem& files, int directory = ports::FileSystem::no_directory);
  ~SimSqliteVfs();
  SimSqliteVfs(const SimSqliteVfs&) = delete;
  SimSqliteVfs& operator=(const SimSqliteVfs&) = delete;
  [[nodiscard]] const char* name() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::sim
