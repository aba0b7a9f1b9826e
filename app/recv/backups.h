// The backups of a session (--backup): what stands under a final name is kept under another one before it is replaced or removed.
// It gets a second name (a hard link), so that the old file stays whole under its own name until the rename that replaces it. Where
// the file system has no hard links, or the backups stand on another one, it is copied.
// In a backup directory, directories are made as they are needed, with mode, owner and access control lists of those that the files
// come from, as rsync makes them.
// Thread-safe: files are committed beside entries that are decided.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "app/recv/aside.h"
#include "app/recv/attributes.h"
#include "app/recv/claims.h"
#include "app/recv/held.h"
#include "app/recv/kept_backups.h"

namespace ccixfer::recv {

class Backups {
 public:
  // `base`: the session's path. The order of a tree is that below it. `kept`: by the transfer's sessions so far; none: this is the
  // first.
  Backups(OpenedRoot& root, const Policy& policy, Aside::Backup how, std::string base, const Owner& owner,
          std::shared_ptr<session::KeptNames> kept = {})
      : root_(root),
        files_(root.files),
        policy_(policy),
        how_(std::move(how)),
        base_(std::move(base)),
        owner_(owner),
        kept_(kept ? std::move(kept) : std::make_shared<KeptBackups>()) {}

  enum class Before : uint8_t {
    replaced,  // by something of its kind
    removed,   // it makes room for something else, or is deleted: then what is a backup itself is not kept
  };
  // What stands at `path`, whose last part is in `parent`: once in a transfer, as what stands there later is the transfer's own. 0,
  // also when nothing stands there, or a directory; or -errno: it must not be replaced. What is to be removed may be gone then.
  [[nodiscard]] int keep(int parent, std::string_view path, Before before);
  // The source has something at `path`, which is decided from here on: no backup takes that name, but the next one of its kind.
  void note(std::string_view path);
  // What a dry run can tell of that: -ENAMETOOLONG, its name has no room for the suffix; -errno_of_no_backup, a directory with
  // content, or what the source has, stands where the backup would be; else 0.
  [[nodiscard]] int would_keep(int parent, std::string_view path, Before before);
  // What was kept stays kept through a power cut: the names in a backup directory are synced. Those beside the files are synced
  // with the names of the files.
  [[nodiscard]] int sync();
  // Before it is removed it is kept in the directory that it is in.
  [[nodiscard]] bool keeps_beside(std::string_view path) const { return !how_.directory && !is_backup(path); }
  // The directory at `path`, open as `directory`, has these now, and so shall the one in the backup directory that was made after
  // it.
  void left(std::string_view path, int directory, const Current& attributes);

 private:
  [[nodiscard]] bool is_backup(std::string_view path) const;
  [[nodiscard]] bool may_be_of_a_backup(std::string_view path) const;
  [[nodiscard]] bool is_taken(const std::string& path) const;
  void take(const std::string& path);
  [[nodiscard]] int free_name(std::string_view directory, std::string& name);
  [[nodiscard]] std::string as_one(std::string path) const;
  [[nodiscard]] int keep_what_stands(int parent, std::string_view path, Before before);
  [[nodiscard]] bool has_no_place(int directory, const std::string& name) const;
  [[nodiscard]] int sync_all();
  [[nodiscard]] int open_top();
  [[nodiscard]] int open_twin(std::string_view directory);
  [[nodiscard]] int open_to_write_in(int parent, std::string_view name);
  [[nodiscard]] int make_twin(int parent, std::string_view name, const std::string& directory);
  void give(int fd, int original, const Current& attributes, Extended which) const;
  [[nodiscard]] int keep_in(int directory, const std::string& name, int parent, std::string_view original,
                            const ports::FileStat& stat, Before before);
  [[nodiscard]] int copy(int directory, const std::string& name, int parent, std::string_view original,
                         const ports::FileStat& stat);

  OpenedRoot& root_;
  ports::FileSystem& files_;
  const Policy policy_;
  const Aside::Backup how_;
  const std::string base_;
  const Owner& owner_;
  const std::shared_ptr<session::KeptNames> kept_;
  std::mutex mutex_;
  HeldFileRef top_;
  HeldFileRef twin_;  // the directory that was used last ...
  std::string twin_path_;
  std::map<std::string, HeldFileRef> unsynced_;  // directories with new names
  std::set<std::string, std::less<>> made_;      // those that are not left yet
  std::unordered_set<uint64_t> taken_;           // names of this session that a backup could have
};

}  // namespace ccixfer::recv
