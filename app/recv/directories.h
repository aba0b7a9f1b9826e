// The directories of the tree that is written, and which one each path leads to.
// Every directory is opened beneath the root's descriptor and through no symbolic link. What happens
// in it goes by the held descriptor, so a parent that becomes a link in between leads nowhere.
//
// An administrator may move, remove or replace a directory at any time. So a session remembers which
// directory each path led to when it was first used. A job checks that a path still leads there when
// it first uses the path, works in the directory by its descriptor, and checks again before its result
// counts (JobDirectories). The session checks all of them before its summary. A path that leads
// elsewhere is -ESTALE: what was done may stand anywhere, so the session ends as interrupted, and the
// next one begins with what is there then.
//
// The descriptors that were used last stay open (HeldBudget). So the next job need not open them, and
// no other directory can get the number of a held one, so that a check is one stat in its parent. Of a
// directory that is closed, the generation is remembered.
#pragma once
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/recv/held.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr size_t directories_known_max = 32'768;

// Whether anything is in a directory: 0, -ENOTEMPTY, or another -errno.
[[nodiscard]] int is_empty_directory(ports::FileSystem& files, int parent, std::string_view name);

// The directories of one session. Calls return 0 or -errno; -ESTALE: the path no longer leads to the
// directory that this session used. Thread-safe. Bounds: known_max paths and those that are not left
// yet. In a larger tree, directories that were left are checked when they are forgotten, and not again
// at the end. So are those that stand in one that was shut.
class KnownDirectories {
 public:
  using Paths = std::set<std::string, std::less<>>;
  // What one job has checked.
  struct Seen {
    Paths paths;
    // Those of `paths` for which the held directories above them were checked too. So a deep tree is not climbed anew for each
    // path.
    Paths chains;
  };

  // No path of a source may lead to `staging`, whatever its name.
  KnownDirectories(ports::FileSystem& files, int root, const ports::FileIdentity& staging, HeldBudget& budget,
                   size_t known_max = directories_known_max)
      : files_(files), root_(root), staging_(staging), known_max_(known_max), budget_(budget) {}
  ~KnownDirectories();
  KnownDirectories(const KnownDirectories&) = delete;
  KnownDirectories& operator=(const KnownDirectories&) = delete;

  // `seen`: the paths that this job has checked; the path joins them.
  [[nodiscard]] int open(std::string_view path, Seen& seen, HeldDirectoryRef& out);
  // If the path was not known, it shall lead to the directory `name` below `parent` from now on.
  [[nodiscard]] int remember(int parent, std::string_view name, const std::string& path);
  void forget(std::string_view path);                                     // it and all below: we replaced it ourselves
  [[nodiscard]] int look(const Paths& paths, std::string& path_that_is);  // which one, when one is stale
  [[nodiscard]] int left(const std::string& path);                        // all that goes into it has ended
  // Its mode will not let us look into it any more: what is below it is checked now, and forgotten.
  [[nodiscard]] int shut(const std::string& path);
  [[nodiscard]] int look_at_all(std::string& path_that_is);

 private:
  // What a path is expected to lead to.
  struct Expected {
    ports::FileIdentity identity;
    bool has_generation = false;  // false: the directory is held instead, or was held for as long as that mattered
    bool lasting = true;          // as of ports::SpaceInfo
    HeldDirectoryRef held;
    [[nodiscard]] bool is(const ports::FileIdentity& found, bool with_generation) const;
  };
  struct Known {
    Expected expected;
    bool left = false;
    std::list<const std::string*>::iterator age{};  // while it is held
  };
  using Map = std::map<std::string, Known, std::less<>>;
  using Gone = std::vector<std::pair<std::string, Expected>>;  // forgotten
  // The directory that was opened last to look into it: those that stand beside one another cost one open.
  struct OpenedParent {
    HeldFileRef held;
    std::string path;
  };
  // Checks several, in the order of their paths. What lies above a path has mostly been checked with the one before it.
  struct Pass {
    std::string last;             // the path before
    std::vector<size_t> checked;  // where those directories of `last` end that were checked, itself included
    OpenedParent opened;
  };

  [[nodiscard]] bool find(std::string_view path, Expected& out);
  [[nodiscard]] int open_anew(int parent, std::string_view name, const std::string& path, HeldDirectoryRef& out);
  [[nodiscard]] int meet(const std::string& path, const ports::FileIdentity& identity, bool has_generation, int somewhere_on_it,
                         const HeldDirectoryRef& held);
  void hold(Map::iterator at, const HeldDirectoryRef& held);
  void let_go(Map::iterator at);
  void let_go_of_all();
  void remember_generation(Expected& expected, int fd);
  Map::iterator erase(Map::iterator at);
  [[nodiscard]] int look_at(std::string_view path, const Expected& expected, Seen& seen);
  [[nodiscard]] int look_at_next(std::string_view path, const Expected& expected, Pass& pass);
  [[nodiscard]] int look_at_one(std::string_view path, const Expected& expected, bool parent_is_checked, OpenedParent& opened);
  [[nodiscard]] int look_at_gone(const Gone& gone);
  [[nodiscard]] int as_known(std::string_view path, int error);

  ports::FileSystem& files_;
  const int root_;
  const ports::FileIdentity staging_;
  const size_t known_max_;
  HeldBudget& budget_;
  std::mutex mutex_;
  Map known_;
  std::list<const std::string*> held_;  // those used last are in front
  std::map<uint64_t, bool> lasting_;    // by device
};

// The directories that one job uses.
class JobDirectories {
 public:
  explicit JobDirectories(KnownDirectories& known) : known_(known) {}
  [[nodiscard]] int open(std::string_view path, HeldDirectoryRef& out) { return known_.open(path, used_, out); }
  [[nodiscard]] int remember(int parent, std::string_view name, const std::string& path) {
    const int error = known_.remember(parent, name, path);
    if (error >= 0) used_.paths.insert(path);
    return error;
  }
  void forget(std::string_view path) { known_.forget(path); }
  [[nodiscard]] int left(const std::string& path) { return known_.left(path); }
  [[nodiscard]] int shut(const std::string& path) { return known_.shut(path); }
  [[nodiscard]] int look_again(std::string& path_that_is) { return known_.look(used_.paths, path_that_is); }
  [[nodiscard]] int look_again(std::string_view path) {
    std::string ignored;
    return known_.look({std::string(path)}, ignored);
  }

 private:
  KnownDirectories& known_;
  KnownDirectories::Seen used_;
};

}  // namespace ccixfer::recv
