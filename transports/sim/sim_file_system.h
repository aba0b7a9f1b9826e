// A disk in memory that loses, at a crash, what was not synced: ports::FileSystem of one node of the world.
//
// Durability: fsync of a file makes its data and metadata durable, but not its name; fsync of a directory makes the changes of
// names in it durable, a rename out of or into it whole (never torn), and nothing else unless options.ordered_names; syncfs
// makes all durable. At a crash every other change is, by the seed, dropped, kept, or (data) torn at sectors and pages.
// Failures: a hook may fail any call; -ENOSPC by capacity; short reads and writes by chance.
// Data that cannot be written back (fsync or syncfs that the hook fails, the background by chance) is lost as on Linux: its pages
// count as clean, reads show them until they leave the memory (at once, with the last close, or not at all), a crash loses them.
// Each descriptor that was open before is told once, by fsync for its file and by syncfs for its file system; a file that leaves
// the memory forgets what nobody was told. A close that the hook fails loses what was not synced, and only that close tells it. Of
// names nothing is lost: they wait for the next sync of their directory or file system.
// What reaches the disk may be damaged there by chance (decay): reads show what is in memory, until it leaves the memory. Direct
// reads and drop_cached are as on Linux. Other file systems may be mounted below the root: rename does not cross them, and each
// syncfs is for one. Crash: the node's crash (World) or freeze() takes the disk away: every call is -EIO until mount(). Names obey
// the same rules as core/host's: no escape below a descriptor, no links passed. Permissions are kept, not enforced. Descriptors are
// never reused; the inode numbers of what is gone are, at once.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/file_system.h"
#include "transports/sim/world.h"

namespace ccixfer::sim {

struct FileSystemOptions {
  uint64_t capacity_bytes = uint64_t{1} << 40;
  uint64_t capacity_inodes = uint64_t{1} << 30;
  double short_io_chance = 0;
  bool lies = false;  // a disk that says synced and did not: a canary for the checks of a test
  // Times it can hold, as with Linux: what is beyond becomes the nearest of these, without nanoseconds; the rest the next lower
  // multiple of the grain.
  int64_t time_min_s = std::numeric_limits<int64_t>::min();
  int64_t time_max_s = std::numeric_limits<int64_t>::max();
  uint32_t time_grain_ns = 1;
  bool syncfs_tells = true;           // of data that was not written back: Linux since 5.8
  double writeback_error_chance = 0;  // at each call, that some files' dirty pages are lost in the background
  double decay_chance = 0;            // of each page that a sync brings to the disk: a bit of it is another one there
  double clone_chance = 0.5;          // that a clone_range is possible
  bool keeps_no_zeros = false;        // a page of nothing but zeros takes no memory here; there is no capacity then
  bool has_locks = true;              // on whole files
  bool has_direct = true;             // reads past the memory (O_DIRECT)
  bool ordered_names = false;  // fsync of a directory also makes every older change of names durable (ext4), not its own only
};

struct TreeEntry {
  ports::FileStat stat;
  std::string content;  // of a file: its bytes; of a symlink: its target
};
using Tree = std::map<std::string, TreeEntry>;  // by path relative to the directory asked for

// It is one class because it is one disk: the product's side implements each call of ports::FileSystem, and the tests' side sets
// failures and looks at the same files.
class SimFileSystem final : public ports::FileSystem {
 public:
  SimFileSystem(World& world, NodeId node, const FileSystemOptions& options = {});
  ~SimFileSystem() override;
  SimFileSystem(const SimFileSystem&) = delete;
  SimFileSystem& operator=(const SimFileSystem&) = delete;

  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override;
  int close(int fd) override;
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override;
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override;
  // By chance; as btrfs and xfs: whole blocks, but for those at the end of `from`. What is shared is not durable.
  int clone_range(int from, uint64_t from_bytes, int to, uint64_t to_bytes, uint64_t bytes) override;
  int fstat(int fd, ports::FileStat& out) override;
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override;
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override;
  int mkdir_at(int directory, std::string_view name, uint32_t permissions) override;
  int symlink_at(std::string_view target, int directory, std::string_view name) override;
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override;
  int rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override;
  int unlink_at(int directory, std::string_view name, bool is_directory) override;
  int truncate(int fd, uint64_t size_bytes) override;
  int set_mode(int fd, uint32_t permissions) override;
  int set_owner(int fd, uint32_t uid, uint32_t gid) override;
  int set_mtime(int fd, ports::FileTime mtime) override;
  int set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) override;
  int set_link_mtime_at(int directory, std::string_view name, ports::FileTime mtime) override;
  int fsync(int fd) override;
  int drop_cached(int fd, uint64_t offset_bytes, uint64_t bytes) override;
  int syncfs(int fd) override;
  int space(int fd, ports::SpaceInfo& out) override;
  int lock(int fd, Lock lock) override;
  int identify(int directory, std::string_view name, ports::FileIdentity& out) override;

  // For tests. `path` is absolute on this disk.
  // Called before every call with its name and the name of the file (as given, or as opened): 0, or -errno to fail it with.
  void set_hook(std::function<int(std::string_view call, std::string_view name)> hook);
  // Called after every call that changed a name or a file's bytes, with the absolute path.
  void set_watch(std::function<void(std::string_view call, const std::string& path)> watch);
  void set_writeback_error_chance(double chance);
  void set_decay_chance(double chance);
  bool decay(const std::string& path, uint64_t offset_bytes);  // a bit there, on the disk alone. False: the disk has no such byte
  void set_capacity(uint64_t bytes, uint64_t inodes);
  void freeze_after(uint64_t calls, std::function<void()> then);  // freezes the disk before that call, then calls `then`
  void freeze();                                                  // every call is -EIO from now on; nothing is lost yet
  void crash();  // loses what was not synced; down until mount(). The node's crash calls it
  void mount();  // after a crash or a freeze
  void sync_all();
  [[nodiscard]] bool down() const;
  [[nodiscard]] uint64_t calls() const;
  [[nodiscard]] size_t open_descriptors() const;
  [[nodiscard]] uint64_t used_bytes() const;     // of its capacity: whole pages
  void make_directory(const std::string& path);  // with its parents; durable
  void mount_at(const std::string& path);        // another file system, empty; the name is not there yet
  // What an administrator does, at any time: no hook hears of it, and it is not durable. False: it cannot be.
  bool move(const std::string& from, const std::string& to);  // into a directory that is there
  bool remove_all(const std::string& path);
  void put(const std::string& path, std::string_view content, uint32_t mode = 0644,
           std::optional<ports::FileTime> mtime = {});  // durable
  [[nodiscard]] std::optional<std::string> get(const std::string& path) const;
  [[nodiscard]] Tree tree(const std::string& path) const;  // without `path` itself; empty: no such directory

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::sim
