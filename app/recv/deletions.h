// --delete: what the source does not have goes, after all that it has is here.
// In: the entries as they were decided, and the directories that the source says it listed in full. Out:
// steps that delete a bounded number of things each, and what they deleted.
// Nothing goes in a directory that was not listed in full, nothing that the rules exclude, nothing that
// is reserved, no mount point, and no more than `max`. Replaced files keep their own rule: make_room.
// A dry run tells the same and touches nothing.
// Jobs only, one at a time. Memory: PathSet and PathLog, and the names of the directories that are being
// deleted. Errors: what cannot be deleted is counted and told; a directory that is not where it was and a
// file of rules that is wrong end the session.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/scope.h"
#include "app/recv/backups.h"
#include "app/recv/directories.h"
#include "app/recv/opened_root.h"
#include "app/recv/path_store.h"
#include "app/session/entry.h"
#include "core/base/result.h"

namespace ccixfer::recv {

inline constexpr uint32_t deletions_a_step = 512;  // looks at a name or deletions
inline constexpr uint64_t deletions_unlimited = ~uint64_t{0};

struct DeleteWish {
  uint64_t max = deletions_unlimited;
  filter::Rules rules = {};  // what they exclude stays
};

struct Deleted {
  std::string path;  // below the session's path
  bool is_directory = false;
};
struct DeleteStep {
  std::vector<Deleted> deleted;
  std::vector<std::string> failures, warnings;
  uint64_t failed = 0;
  uint64_t skipped = 0;  // beyond max
  bool over = false;
  std::optional<Error> fatal;
};

class Deletions {
 public:
  // `base`: the session's path. `already`: how many earlier sessions of the transfer have deleted.
  Deletions(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, const Owner& owner, Backups* backups,
            DeleteWish wish, std::string base, std::string kept_place, uint64_t already);
  ~Deletions();

  // Each entry, under its final path.
  void note(const session::Entry& entry, const std::string& path);
  // The directory at `path`, which is below the root, makes room for something else: all in it goes. 0, or -ENOTEMPTY: something in
  // it stays; or another -errno.
  [[nodiscard]] int make_room(const std::string& path);
  // What make_room deleted comes with the first one. `only_that`: nothing else goes.
  [[nodiscard]] DeleteStep step(bool only_that);

 private:
  struct Frame {
    std::string path;                         // below the root
    HeldFileRef directory;                    // none: let go, to be opened again
    bool listed = false;                      // by the source: what it has stays
    bool keeps = false;                       // something in it
    bool from_start = true, has_more = true;  // of reading it
    bool was_changed = false;
    bool was_unlocked = false;  // not listed, and its mode kept us out
    ports::FileStat stat;       // before anything was done to it
    std::string names;          // that are to be looked at, each with a NUL behind it
    size_t at = 0;
  };
  [[nodiscard]] bool dry() const { return policy_.has(session::option_dry_run); }
  void add_present(const std::string& path);
  [[nodiscard]] bool is_present(const std::string& path);
  [[nodiscard]] std::string_view relative(std::string_view path) const;
  [[nodiscard]] bool is_protected(const Frame& frame, const std::string& path, bool is_directory) const;
  [[nodiscard]] int place_scope(std::string_view path, DeleteStep& out);
  [[nodiscard]] std::optional<Error> enter_scope(std::string_view path, int fd);
  void leave_scope();
  [[nodiscard]] bool next_listed(JobDirectories& directories, DeleteStep& out);
  void run(DeleteStep& out, uint32_t& steps, bool may_stop);
  // The source is not there now. It may never come back, and its next run may have brought what this session does not know.
  [[nodiscard]] bool is_alone() const { return owner_.link_dead.load() || owner_.lost.load(); }
  [[nodiscard]] bool read_names(Frame& frame, DeleteStep& out);
  [[nodiscard]] bool next_name(Frame& frame, std::string& name, DeleteStep& out);
  [[nodiscard]] int descriptor_of(Frame& frame);
  void look_at(const std::string& name, DeleteStep& out);
  void finish(DeleteStep& out);
  // False: it stays.
  bool remove(Frame& in, const std::string& path, bool is_directory, DeleteStep& out);
  void not_seen(const std::string& path, int error, DeleteStep& out) const;
  static void failed(const std::string& path, int error, DeleteStep& out);

  OpenedRoot& root_;
  ports::FileSystem& files_;
  KnownDirectories& known_;
  const Policy policy_;
  const Owner& owner_;
  Backups* const backups_;
  const uint64_t max_;
  const std::string base_;
  const std::string kept_place_;  // of backups: it and what is in it stay; "": none
  uint64_t deleted_;
  PathSet present_;
  PathSet not_whole_;  // directories
  PathLog listed_;
  filter::Scope scope_;
  const bool reads_rules_;
  DeleteStep of_rooms_;        // what make_room has done
  bool room_is_left_ = false;  // of make_room: something stays
  int no_space_ = 0;           // -errno of a backup that the disk had no room for
  std::vector<Frame> stack_;
};

}  // namespace ccixfer::recv
