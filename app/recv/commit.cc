#include "app/recv/commit.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string_view>

#include "app/recv/at_rest.h"
#include "app/recv/inheritance.h"
#include "app/recv/shared_place.h"
#include "app/session/holes.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

constexpr size_t copy_bytes = 1u << 20;
constexpr size_t parents_held_max = 128;

class Committer {
 public:
  Committer(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, const Owner& owner, Backups* backups)
      : root_(root), files_(root.files), directories_(directories), policy_(policy), owner_(owner), backups_(backups) {}
  void run(std::vector<CommitItem>& batch);

 private:
  [[nodiscard]] bool remembers() const { return !policy_.has(session::option_times) && !policy_.has(session::option_checksum); }
  [[nodiscard]] bool verifies() const { return policy_.has(session::option_verify); }
  void remember(const std::vector<CommitItem>& batch);
  static void set(CommitItem& item, CommitOutcome outcome, int negative_errno);
  void finish(CommitItem& item);
  int finish_pieces(CommitItem& item, int file);
  int finish_in_place(CommitItem& item, int file);
  int give_in_place(CommitItem& item, int file);
  int write_in_place(CommitItem& item, int parent);
  int is_still_there(const CommitItem& item, int parent);
  void inherit(CommitItem& item, int file);
  int open_parent(std::string_view path);
  void place(CommitItem& item);
  void keep_old_files(std::vector<CommitItem>& batch);
  int keep_old(const CommitItem& item, int parent);
  int rename_into(CommitItem& item, int parent);
  int rename_over(int from_directory, std::string_view from, const CommitItem& item, int parent);
  int place_across(CommitItem& item, int parent);
  int link_into(const CommitItem& item, int parent);
  void hold_replaced(CommitItem& item, int parent);
  int copy(int from, int to, uint64_t size_bytes, Xxh3Blocks* hash);
  void verify_pieces(CommitItem& item);
  void verify_packs(std::vector<CommitItem>& batch);
  bool is_good_copy(int directory, const std::string& name, int fd, const CommitItem& item, const Hash128& hash);
  int sync_parents();
  int sync_directories(const std::vector<CommitItem>& batch);
  void sync_before(std::vector<CommitItem>& batch);
  void sync_after(std::vector<CommitItem>& batch);
  void look_again(std::vector<CommitItem>& batch);

  OpenedRoot& root_;
  ports::FileSystem& files_;
  JobDirectories directories_;
  const Policy& policy_;
  const Owner& owner_;
  Backups* const backups_;
  bool by_syncfs_ = false;                                        // has files of packs: then one syncfs serves all directories
  std::map<std::string, HeldDirectoryRef, std::less<>> parents_;  // of renames not yet synced
  int lost_ = 0;                                                  // -errno of those that were synced in between
  std::string last_parent_path_;
  HeldDirectoryRef last_parent_;
  Inheritance inheritance_;  // of the last parent
};

void Committer::set(CommitItem& item, CommitOutcome outcome, int negative_errno) {
  item.outcome = outcome;
  item.error_number = -negative_errno;
}

int Committer::open_parent(std::string_view path) {
  if (last_parent_ && last_parent_path_ == path) return 0;
  last_parent_.reset();
  if (const int error = directories_.open(path, last_parent_); error < 0) return error;
  root_.disk->look_at(last_parent_);
  last_parent_path_ = path;
  inheritance_ = Inheritance();
  return policy_.has(session::option_permissions) ? 0 : inheritance_.read(files_, last_parent_->fd());
}

// What the file would have from its directory if it had been made there.
void Committer::inherit(CommitItem& item, int file) {
  if (inheritance_.is_nothing()) return;
  if (inheritance_.give(files_, file, item.task->attributes.mode & 0777u) < 0) item.copied = true;
}

// Length and attributes of a file that came in pieces.
int Committer::finish_pieces(CommitItem& item, int file) {
  if (const int error = files_.truncate(file, item.size_bytes); error < 0) return error;
  ports::FileStat stat;
  if (const int error = files_.fstat(file, stat); error < 0) return error;
  const int applied = apply_attributes(files_, file, policy_, {stat.mode, stat.uid, stat.gid}, item.task->attributes);
  item.attributes_refused = applied == attributes_refused;
  return std::min(applied, 0);
}

// The attributes of a file whose content was written over. Without option_permissions it keeps the mode that it has.
int Committer::give_in_place(CommitItem& item, int file) {
  ports::FileStat stat;
  if (const int error = files_.fstat(file, stat); error < 0) return error;
  Policy policy = policy_;
  Attributes wanted = item.task->attributes;
  if (!policy.has(session::option_permissions)) {
    policy.options |= session::option_permissions;
    wanted.mode = stat.mode;
    wanted.uid = stat.uid;
    wanted.gid = stat.gid;
  }
  const int applied = apply_attributes(files_, file, policy, {stat.mode, stat.uid, stat.gid}, wanted);
  item.attributes_refused = applied == attributes_refused;
  return std::min(applied, 0);
}

// The content is durable, and read back if that is asked for, before the file gets the time that says that it is the source's.
int Committer::finish_in_place(CommitItem& item, int file) {
  if (const int error = files_.truncate(file, item.size_bytes); error < 0) return error;
  if (const int error = item.file->sync(); error < 0) {
    set(item, CommitOutcome::sync_failed, error);
    return 0;
  }
  if (verifies()) verify_pieces(item);
  return item.outcome == CommitOutcome::ok ? give_in_place(item, file) : 0;
}

// All that a staged file needs before its data is synced; and that sync, of one that came in pieces.
void Committer::finish(CommitItem& item) {
  owner_.step();
  int error = open_parent(split_path(item.task->path).parent);
  HeldFileRef file;
  if (error >= 0 && item.file) {
    error = item.file->open(file);
    const bool in_place = item.file->is_in_place();
    const Claims::Use use = in_place ? root_.claims.use(item.task->key, owner_) : Claims::Use::not_needed();
    if (!use.may()) return set(item, CommitOutcome::failed, -EBUSY);
    if (error >= 0 && !in_place) error = root_.judged(end_share(files_, root_.staging, item.staged, file->fd()));
    if (error == -EAGAIN) return set(item, CommitOutcome::held, -EBUSY);
    if (error >= 0) error = in_place ? finish_in_place(item, file->fd()) : finish_pieces(item, file->fd());
    if (item.outcome != CommitOutcome::ok) return;
  } else if (error >= 0 && item.link_to.empty() && !inheritance_.is_nothing()) {
    const int fd = files_.open(root_.staging, item.staged, {}, 0);
    error = root_.judged(std::min(fd, 0));
    if (fd >= 0) file = std::make_shared<HeldFile>(files_, fd);
  }
  if (error >= 0 && file && !item.task->in_place) inherit(item, file->fd());
  if (error < 0) {
    set(item, CommitOutcome::failed, error);
    return;
  }
  if (!item.link_to.empty()) return;  // it has all from the file that it is linked to
  if (!item.file) {
    // Where syncfs does not tell, what was just given is synced by itself, as the data was.
    error = file && !root_.syncfs_tells ? files_.fsync(file->fd()) : 0;
    if (error < 0) set(item, CommitOutcome::sync_failed, error);
    return;
  }
  error = item.file->sync();
  if (error < 0) set(item, CommitOutcome::sync_failed, error);
  if (error >= 0 && verifies() && !item.file->is_in_place()) verify_pieces(item);
  item.file->let_go();
}

void Committer::verify_pieces(CommitItem& item) {
  if (const int error = find_damaged(root_, owner_, *item.file, item.unsynced, item.damaged); error < 0)
    return set(item, CommitOutcome::failed, root_.judged(error));
  if (!item.damaged.empty()) set(item, CommitOutcome::damaged, -EIO);
}

// Files of packs, all of whose data are on the disk by now.
void Committer::verify_packs(std::vector<CommitItem>& batch) {
  DiskReader reader(files_);
  for (CommitItem& item : batch) {
    if (item.file || item.verified || item.size_bytes == 0 || item.outcome != CommitOutcome::ok) continue;
    owner_.step();
    reader.begin(root_.staging, item.staged, -1);
    const AtRest found = reader.compare(0, item.size_bytes, item.hash);
    if (found == AtRest::unreadable) set(item, CommitOutcome::failed, root_.judged(-reader.error_number()));
    if (found == AtRest::damaged) set(item, CommitOutcome::damaged, -EIO);
  }
}

// `name` in `directory`, open as `fd`, is the copy that was just synced.
bool Committer::is_good_copy(int directory, const std::string& name, int fd, const CommitItem& item, const Hash128& hash) {
  DiskReader reader(files_);
  reader.begin(directory, name, fd);
  return reader.compare(0, item.size_bytes, hash) == AtRest::same;
}

// Holes stay holes, unless all of it is hashed.
int Committer::copy(int from, int to, uint64_t size_bytes, Xxh3Blocks* hash) {
  std::vector<std::byte> buffer(copy_bytes);
  session::HoleFinder holes(files_, from);
  for (uint64_t offset_bytes = 0;;) {
    owner_.step();
    if (hash == nullptr) offset_bytes = holes.next_data(offset_bytes);
    if (offset_bytes >= size_bytes) return files_.truncate(to, size_bytes);
    const int64_t got = files_.pread(from, buffer, offset_bytes);
    if (got <= 0) return static_cast<int>(got);
    const Bytes data = Bytes(buffer).first(static_cast<size_t>(got));
    if (const int error = write_all(files_, to, data, offset_bytes); error < 0) return error;
    if (hash != nullptr) hash->update(data);
    offset_bytes += data.size();
  }
}

// The target directory is on another file system (or project): a synced copy beside the target, then the rename.
int Committer::place_across(CommitItem& item, int parent) {
  const std::string beside = staged_beside_name(item.task->key);
  const int from = files_.open(root_.staging, item.staged, {}, 0);
  if (from < 0) return from;
  const HeldFile from_file(files_, from);
  files_.unlink_at(parent, beside, false);
  // Without option_permissions what open(2) makes of it here is right, whatever the directory gives.
  const bool keeps_mode = policy_.has(session::option_permissions);
  const uint32_t mode = keeps_mode ? 0600 : item.task->attributes.mode & 0777u;
  const ports::OpenMode access = verifies() ? ports::OpenMode::read_write : ports::OpenMode::write;
  const int to = files_.open(parent, beside, {.mode = access, .create = true, .exclusive = true}, mode);
  if (to < 0) return to;
  const HeldFile to_file(files_, to);
  ports::FileStat stat;
  Xxh3Blocks hash;
  int error = files_.fstat(from, stat);
  if (error >= 0) error = copy(from, to, stat.size_bytes, verifies() ? &hash : nullptr);
  if (error >= 0) error = files_.fstat(to, stat);
  Policy policy = policy_;
  Attributes wanted = item.task->attributes;
  if (!keeps_mode) {
    policy.options |= session::option_permissions;
    wanted.mode = stat.mode;
  }
  if (error >= 0) {
    error = apply_attributes(files_, to, policy, {stat.mode, stat.uid, stat.gid}, wanted);
    item.attributes_refused = error == attributes_refused;
  }
  owner_.step();
  if (error >= 0) error = files_.fsync(to);
  // Two disks are at work here. It is not known which of them failed, so nothing is asked for again.
  if (error >= 0 && verifies() && !is_good_copy(parent, beside, to, item, hash.digest())) error = -EIO;
  if (error >= 0) error = rename_over(parent, beside, item, parent);
  if (error >= 0) error = files_.fsync(parent);
  files_.unlink_at(error < 0 ? parent : root_.staging, error < 0 ? beside : item.staged, false);
  return error;
}

// Before the renames: a backup whose name a power cut takes back must not cost the file that it was made of.
void Committer::keep_old_files(std::vector<CommitItem>& batch) {
  for (CommitItem& item : batch) {
    if (item.outcome != CommitOutcome::ok || owner_.lost.load()) continue;
    owner_.step();
    int error = open_parent(split_path(item.task->path).parent);
    if (error >= 0) error = keep_old(item, last_parent_->fd());
    if (error < 0) set(item, CommitOutcome::failed, root_.judged(error));
  }
  const int error = backups_->sync();
  for (CommitItem& item : batch) {
    if (error < 0 && item.outcome == CommitOutcome::ok) set(item, CommitOutcome::failed, error);
  }
}

int Committer::keep_old(const CommitItem& item, int parent) {
  ports::FileStat stat;
  const bool was_file =
      files_.stat_at(parent, split_path(item.task->path).name, stat, false) >= 0 && stat.type == ports::FileType::regular;
  return backups_->keep(parent, item.task->path, was_file ? Backups::Before::replaced : Backups::Before::removed);
}

// A whole file is written over the one that stands there. -ENOENT: none does any more.
int Committer::write_in_place(CommitItem& item, int parent) {
  const int from = files_.open(root_.staging, item.staged, {}, 0);
  if (from < 0) return from;
  const HeldFile from_file(files_, from);
  const FileTask& task = *item.task;
  const int to = open_to_write_over(files_, parent, std::string(split_path(task.path).name), task.device, task.inode);
  if (to < 0) return to;
  const HeldFile to_file(files_, to);
  Xxh3Blocks hash;
  int error = copy(from, to, item.size_bytes, &hash);  // with a hash it leaves no hole out: other bytes may stand there
  if (error >= 0) error = files_.truncate(to, item.size_bytes);
  if (error >= 0 && (error = files_.fsync(to)) < 0) forget_cached(files_, to_file);
  if (error >= 0 && verifies() && !is_good_copy(parent, std::string(split_path(item.task->path).name), to, item, hash.digest()))
    error = -EIO;
  if (error >= 0) error = give_in_place(item, to);
  if (error >= 0) error = files_.fsync(to);
  files_.unlink_at(root_.staging, item.staged, false);
  return error;
}

// 0: the path still leads to the file whose pieces were written. Else the session begins anew with what is there now.
int Committer::is_still_there(const CommitItem& item, int parent) {
  HeldFileRef file;
  ports::FileStat written;
  ports::FileStat there;
  int error = item.file->open(file);
  if (error >= 0) error = files_.fstat(file->fd(), written);
  if (error >= 0) error = files_.stat_at(parent, item.file->name(), there, false);
  if (error == -ENOENT) return -ESTALE;
  if (error < 0) return error;
  return written.device == there.device && written.inode == there.inode ? 0 : -ESTALE;
}

// A rename over a large file frees its blocks before it returns, half a second for 4 GiB in memory, unless somebody holds the file.
// Only on file systems of this host: over NFS and FUSE a file that is held gets another name instead.
void Committer::hold_replaced(CommitItem& item, int parent) {
  ports::FileStat stat;
  const std::string_view name = split_path(item.task->path).name;
  if (!root_.one_writer_a_file || files_.stat_at(parent, name, stat, false) < 0) return;
  if (stat.type != ports::FileType::regular || stat.links != 1 || stat.size_bytes < held_replaced_bytes) return;
  const int fd = files_.open(parent, name, {.anchor = true}, 0);
  if (fd >= 0) item.replaced = std::make_shared<HeldFile>(files_, fd);
}

int Committer::rename_into(CommitItem& item, int parent) {
  if (!item.link_to.empty()) return link_into(item, parent);
  if (item.file && item.file->is_in_place()) return is_still_there(item, parent);
  if (item.task->in_place) {
    const int error = write_in_place(item, parent);
    if (error != -ENOENT && error != -EISDIR && error != -ELOOP) return error;
  }
  if (item.copied) return place_across(item, parent);
  if (item.file) hold_replaced(item, parent);
  const int error = rename_over(root_.staging, item.staged, item, parent);
  return error == -EXDEV ? place_across(item, parent) : error;
}

// In place of what stands there, which may be the empty directory that the verdict saw. Filled since: ENOTEMPTY, and it stays.
int Committer::rename_over(int from_directory, std::string_view from, const CommitItem& item, int parent) {
  const std::string_view name = split_path(item.task->path).name;
  const int error = files_.rename_at(from_directory, from, parent, name);
  if (error != -EISDIR && error != -ENOTEMPTY && error != -EEXIST) return error;
  if (const int removed = files_.unlink_at(parent, name, true); removed < 0) return removed;
  directories_.forget(item.task->path);
  return files_.rename_at(from_directory, from, parent, name);
}

int Committer::link_into(const CommitItem& item, int parent) {
  HeldDirectoryRef directory;
  const SplitPath from = split_path(item.link_to);
  if (const int error = directories_.open(from.parent, directory); error < 0) return error;
  const std::string beside = staged_beside_name(item.task->key);
  files_.unlink_at(parent, beside, false);
  if (const int error = files_.link_at(directory->fd(), from.name, parent, beside); error < 0) return error;
  const int error = rename_over(parent, beside, item, parent);
  files_.unlink_at(parent, beside, false);  // also when it and the name were one file: then rename(2) leaves both
  return error;
}

// The final name appears, whole.
void Committer::place(CommitItem& item) {
  trace_stage("[stage 11] commit");
  owner_.step();
  // Another session takes the path when this is over, and not before: what hangs in the disk would come over its file.
  const Claims::Use use = root_.claims.use(item.task->key, owner_);
  if (!use.may()) {
    set(item, CommitOutcome::failed, -EBUSY);
    return;
  }
  const std::string_view parent_path = split_path(item.task->path).parent;
  int error = open_parent(parent_path);
  if (error >= 0) error = rename_into(item, last_parent_->fd());
  if (error == -ENOENT && directories_.look_again(parent_path) < 0) error = -ESTALE;
  if (error < 0) {
    set(item, CommitOutcome::failed, root_.judged(error));
    return;
  }
  ports::FileStat stat;
  if (remembers() && files_.stat_at(last_parent_->fd(), split_path(item.task->path).name, stat, false) >= 0)
    item.placed = {stat.size_bytes, stat.mtime, stat.inode};
  if (by_syncfs_) return;
  parents_.try_emplace(last_parent_path_, last_parent_);
  if (parents_.size() < parents_held_max) return;
  lost_ = std::min(lost_, sync_parents());
}

int Committer::sync_parents() {
  int error = 0;
  for (const auto& [path, directory] : parents_) {
    owner_.step();
    error = std::min(error, files_.fsync(directory->fd()));
  }
  parents_.clear();
  return error;
}

// The directories that were renamed into, and those above them, which may be new.
int Committer::sync_directories(const std::vector<CommitItem>& batch) {
  std::set<std::string_view> paths;
  for (const CommitItem& item : batch) {
    if (item.outcome != CommitOutcome::ok) continue;
    for (std::string_view path = item.task->path; !path.empty();) paths.insert(path = split_path(path).parent);
  }
  for (const std::string_view path : paths) {
    owner_.step();
    HeldDirectoryRef directory;
    int error = directories_.open(path, directory);
    if (error >= 0) error = files_.fsync(directory->fd());
    if (error < 0) return error;
  }
  return 0;
}

// Before the renames: the data of packs, and the names of the directories that are renamed into.
void Committer::sync_before(std::vector<CommitItem>& batch) {
  const uint64_t made = root_.directories_made.load();
  if (!by_syncfs_ && made == root_.directories_synced.load()) return;
  int error = root_.disk->sync();
  for (CommitItem& item : batch) {
    if (!item.file && item.link_to.empty() && root_.syncfs_tells && root_.disk->is_void(item.mark))
      set(item, CommitOutcome::sync_failed, -EIO);
  }
  if (error < 0) error = root_.disk->sync();  // what was lost is void by its mark; names are still there to be synced
  if (error >= 0) root_.directories_synced.store(made);
  for (CommitItem& item : batch) {
    if (error < 0 && item.outcome == CommitOutcome::ok) set(item, CommitOutcome::failed, error);
  }
}

// After the renames only names wait to be synced: the data of each file is durable already.
void Committer::sync_after(std::vector<CommitItem>& batch) {
  int error = !root_.syncfs_tells ? sync_directories(batch) : by_syncfs_ ? root_.disk->sync() : sync_parents();
  if (error < 0 && by_syncfs_) error = sync_directories(batch);  // each tells of itself
  error = std::min(error, lost_);
  if (error >= 0) return;
  for (CommitItem& item : batch) {
    if (item.outcome == CommitOutcome::ok) set(item, CommitOutcome::failed, error);
  }
}

void Committer::look_again(std::vector<CommitItem>& batch) {
  const bool root_is_there = root_.check() == 0;
  std::string path;
  if (root_is_there && directories_.look_again(path) == 0) return;
  std::map<std::string, int, std::less<>> looked;
  for (CommitItem& item : batch) {
    if (item.outcome != CommitOutcome::ok) continue;
    const std::string_view parent = split_path(item.task->path).parent;
    auto found = looked.find(parent);
    if (found == looked.end()) found = looked.emplace(parent, root_is_there ? directories_.look_again(parent) : -ESTALE).first;
    if (found->second < 0) set(item, CommitOutcome::failed, found->second);
  }
}

// Before the results: a transfer that begins anew finds them.
void Committer::remember(const std::vector<CommitItem>& batch) {
  std::vector<Deliveries::File> placed;
  int64_t now_s = 0;
  for (const CommitItem& item : batch) {
    if (item.outcome != CommitOutcome::ok || !item.placed || item.task->size_bytes == size_unknown) continue;
    placed.push_back({item.task->key, item.task->version, *item.placed});
    now_s = std::max(now_s, item.placed->mtime.seconds);  // without times a file's is 'now'
  }
  root_.deliveries->add(owner_.transfer, now_s, placed);
}

void Committer::run(std::vector<CommitItem>& batch) {
  if (root_.check() < 0) {
    for (CommitItem& item : batch) {
      set(item, CommitOutcome::failed, -ESTALE);
      if (!item.file && !item.staged.empty()) files_.unlink_at(root_.staging, item.staged, false);
    }
    return;
  }
  for (CommitItem& item : batch) {
    if (!item.file && item.link_to.empty()) by_syncfs_ = root_.syncfs_tells;
    finish(item);
  }
  if (backups_ != nullptr) keep_old_files(batch);
  sync_before(batch);
  if (verifies()) verify_packs(batch);
  for (CommitItem& item : batch) {
    if (item.outcome == CommitOutcome::ok) place(item);
    if (item.outcome != CommitOutcome::ok && !item.file && !item.staged.empty())
      files_.unlink_at(root_.staging, item.staged, false);
  }
  sync_after(batch);
  look_again(batch);
  if (remembers()) remember(batch);
  std::vector<Ledger::File> finished;
  for (const CommitItem& item : batch) {
    if (item.file && item.outcome == CommitOutcome::ok) finished.push_back(item.task->ledger_file());
  }
  // Rows that stay are found useless at the next run: the file is judged by what it is.
  if (const auto removed = root_.ledger->remove(finished); !removed) log(LogLevel::warning, "{}", removed.error().message);
}

}  // namespace

void commit_batch(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, const Owner& owner,
                  std::vector<CommitItem>& batch, Backups* backups) {
  Committer(root, directories, policy, owner, backups).run(batch);
}

}  // namespace ccixfer::recv
