// Syncs of the file systems below a root (syncfs), for all sessions of the process together.
//
// When the kernel could not write data back, it says so to the first sync of a descriptor, whoever
// makes it, and then counts the data as clean, so that the next sync succeeds. Therefore a failed sync
// is remembered here. Everything that was written before it and was not known to be durable is void,
// whichever session wrote it: take `mark` before the first byte is written, and ask `is_void` after a
// sync. Names and attributes are not lost with data. They wait in the journal, so a later sync that
// succeeds is enough for them.
// Thread-safe. One sync runs at a time; calls that come meanwhile share the next one.
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
  // Syncs everything that was written before the call, on the root's file system and the others that
  // are known. 0, or -errno.
  [[nodiscard]] int sync();
  // Syncs what waits in the journal: once more if the first sync told of data that was lost. 0, or
  // -errno.
  [[nodiscard]] int sync_names();

  // A directory that is written into. If it is on another file system than the root, that one is
  // synced too. Its descriptor is held until forget_others, so that the file system stays mounted.
  void look_at(const HeldDirectoryRef& directory);
  void forget_others();  // no session writes any more

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
