// Directories of the tree being written: which one each path leads to, and their own modes and times at the end.
// Every directory is opened beneath the root's descriptor and through no symbolic link; what happens in it then goes by the
// held descriptor, so a parent flipped to a link in between leads nowhere.
//
// An administrator may move, remove or replace a directory at any time. A session therefore remembers which directory each path
// led to when it was first used. A job opens its directories anew, works in them by descriptor, and looks once more before its
// result counts; the session looks at all of them before its summary. A path that leads elsewhere is -ESTALE: then what was
// done may stand anywhere, the session ends as interrupted, and the next one begins with what is there now.
//
// Thread-safe (pool threads). Bounds: directories_known_max paths, plus those that are not left yet; of a larger tree those that
// were left are looked at when they are forgotten, and not again at the end.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/recv/attributes.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr size_t directories_known_max = 32'768;

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

// Of one session. Calls return 0 or -errno; -ESTALE: the path no longer leads to the directory that this session used.
class KnownDirectories {
 public:
  // `staging`: what no path of a source may lead to, whatever its name.
  KnownDirectories(ports::FileSystem& files, int root, const ports::FileIdentity& staging, size_t known_max = directories_known_max)
      : files_(files), root_(root), staging_(staging), known_max_(known_max) {}
  [[nodiscard]] int open(std::string_view path, HeldFileRef& out);
  // `name` below the open directory `parent` is the directory that `path` shall lead to from now on, if it was not known.
  [[nodiscard]] int remember(int parent, std::string_view name, const std::string& path);
  void forget(std::string_view path);  // it and all below: we replaced it ourselves
  [[nodiscard]] int check(std::string_view path);
  [[nodiscard]] int check(const std::set<std::string>& paths, std::string& path_that_is);  // those beside one another cost one open
  [[nodiscard]] int left(const std::string& path);                                         // all that goes into it has ended
  [[nodiscard]] int check_all(std::string& path_that_is);                                  // which one, when one is stale

 private:
  struct Known {
    ports::FileIdentity identity;
    bool lasting = true;  // as of ports::SpaceInfo
    bool left = false;
  };
  using Map = std::map<std::string, Known, std::less<>>;
  [[nodiscard]] int meet(std::string_view path, const ports::FileIdentity& identity, int somewhere_on_it);
  [[nodiscard]] int check_these(const Map& known, std::string& path_that_is);
  [[nodiscard]] int as_known(std::string_view path, int error);

  ports::FileSystem& files_;
  const int root_;
  const ports::FileIdentity staging_;
  const size_t known_max_;
  std::mutex mutex_;
  Map known_;
  std::map<uint64_t, bool> lasting_;  // by device
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
  int error_number = 0;             // the first that went wrong
  bool attributes_refused = false;  // as of apply_attributes
  std::string path;
};
// In the order given: a directory's own come after those below it. Runs in a job.
[[nodiscard]] std::vector<LeaveOutcome> apply_leaves(ports::FileSystem& files, KnownDirectories& directories, const Policy& policy,
                                                     uint64_t root_device, const std::vector<Leave>& leaves);

}  // namespace ccixfer::recv
