// Directories of the tree being written: held descriptors, and their own modes and times at the end.
// Every directory is opened beneath the root's descriptor and through no symbolic link; what happens in it then goes by the
// held descriptor, so a parent flipped to a link in between leads nowhere.
// Thread-safe (pool threads). Bounds: directories_held_max descriptors, plus those in use.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/recv/attributes.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr size_t directories_held_max = 256;

// An open descriptor; closed with its last holder.
class HeldFile {
 public:
  HeldFile(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  ~HeldFile() { files_.close(fd_); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  ports::FileSystem& files_;
  int fd_;
};
using HeldFileRef = std::shared_ptr<HeldFile>;

class DirectoryCache {
 public:
  DirectoryCache(ports::FileSystem& files, int root) : files_(files), root_(root) {}
  [[nodiscard]] int open(std::string_view path, HeldFileRef& out);  // 0, or -errno
  void forget(std::string_view path);                               // it and all below: it was replaced
  void clear();                                                     // out of descriptors

 private:
  struct Entry {
    std::string path;
    HeldFileRef file;
  };
  ports::FileSystem& files_;
  const int root_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_path_;
};

// A directory whose `leave` was reached: due when no entry in [first_index, leave_index) is still in work.
struct Leave {
  std::string path;
  uint64_t first_index = 0;
  uint64_t leave_index = 0;
  Attributes attributes;
  bool made = false;      // by this session: it has its first mode yet
  bool unlocked = false;  // was there, and was given u+rwx for the time
  uint32_t mode_before = 0;
};
struct LeaveOutcome {
  int error_number = 0;  // the first that went wrong
  std::string path;
};
// In the order given: a directory's own come after those below it. Runs in a job.
[[nodiscard]] std::vector<LeaveOutcome> apply_leaves(ports::FileSystem& files, DirectoryCache& directories, const Policy& policy,
                                                     uint64_t root_device, const std::vector<Leave>& leaves);

}  // namespace ccixfer::recv
