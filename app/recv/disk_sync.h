// Syncs of the file systems below a root (syncfs), for all sessions of the daemon together.
//
// The kernel tells of data that it could not write back once a descriptor, whoever syncs, and counts that data as clean: the next
// sync says ok. So a failed sync is remembered here, and everything that was written before it and was not known to be durable is
// void, whichever session wrote it: `mark` before the first byte is written, `is_void` after a sync.
// Names and attributes are not lost with data, they wait in the journal: a later sync that succeeds is enough for them.
// Thread-safe. One sync at a time; calls that come while one runs share the next.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "app/recv/held.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

class DiskSync {
 public:
  using Mark = uint64_t;
  // `root` stays open; `device` is its file system's.
  DiskSync(ports::FileSystem& files, int root, uint64_t device) : files_(files), root_(root), root_device_(device) {}

  [[nodiscard]] Mark mark() const { return failures_.load(); }
  [[nodiscard]] bool is_void(Mark mark) const { return failures_.load() != mark; }
  // Everything that was written before the call, on the root's file system and the others that are known. 0, or -errno.
  [[nodiscard]] int sync();
  // What waits in the journal: a sync, and another one if the first told of data that was lost. 0, or -errno.
  [[nodiscard]] int sync_names();

  // A directory that is written into: if it is on another file system than the root, that one is synced too. Its descriptor is
  // held, so that the file system stays mounted, until forget_others.
  void look_at(const HeldDirectoryRef& directory);
  void forget_others();  // nobody writes any more

 private:
  int sync_each();
  ports::FileSystem& files_;
  const int root_;
  const uint64_t root_device_;
  std::atomic<uint64_t> failures_{0};
  std::atomic<uint64_t> begun_{0};  // syncs
  std::mutex mutex_;                // of whoever syncs, and of what follows
  uint64_t ended_ = 0;              // of them
  uint64_t last_good_ = 0;          // the number of the last one that succeeded
  int last_error_ = 0;
  std::mutex others_mutex_;
  std::map<uint64_t, HeldDirectoryRef> others_;  // by device
};

}  // namespace ccixfer::recv
