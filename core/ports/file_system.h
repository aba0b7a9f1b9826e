// The thin layer of single file system calls. Everything that touches files goes through it, so that tests can record and
// inject into each call, and so that the simulated world can run the same code on a disk that loses what was not synced.
// core/host implements it with the system calls of the same names; transports/sim in memory.
//
// Every call returns a value >= 0, or -errno. Thread-safe (called from the work pool); descriptors are plain ints.
// Paths given as (directory descriptor, relative name). Nothing here follows a symbolic link unless its name says so.
#pragma once
#include <atomic>
#include <cerrno>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"

namespace ccixfer::ports {

enum class FileType : uint8_t { regular, directory, symlink, other };
// What `other` is. A device has a number, as makedev(3) makes it.
enum class SpecialKind : uint8_t { none = 0, fifo = 1, socket = 2, character = 3, block = 4 };

// A moment in a file's life. Nanoseconds in one number would end in the years 1677 and 2262; files have other ones.
struct FileTime {
  int64_t seconds = 0;       // since 1970, may be negative
  uint32_t nanoseconds = 0;  // 0 to 999,999,999, counted upwards before 1970 too
  [[nodiscard]] static constexpr FileTime of_ns(int64_t ns) {
    const int64_t rest = ns % 1'000'000'000;
    if (rest >= 0) return {ns / 1'000'000'000, static_cast<uint32_t>(rest)};
    return {ns / 1'000'000'000 - 1, static_cast<uint32_t>(rest + 1'000'000'000)};
  }
  friend auto operator<=>(const FileTime&, const FileTime&) = default;
};
inline constexpr uint32_t file_time_nanoseconds = 1'000'000'000;  // in a second

struct FileStat {
  FileType type = FileType::other;
  uint32_t mode = 0;  // permission bits with setuid, setgid, sticky (07777)
  uint32_t uid = 0, gid = 0;
  uint64_t device = 0, inode = 0;
  uint64_t links = 0;
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = ~uint64_t{0};  // on its disk: less than the size where it has holes. ~0: not known
  FileTime mtime, ctime;
  SpecialKind special = SpecialKind::none;
  uint64_t special_device = 0;  // of a character or block device
  friend bool operator==(const FileStat&, const FileStat&) = default;
};

// Which directory it is, whatever its name: one that was made after another was removed may have its inode number, and differs in
// generation (0 where the file system tells none).
struct FileIdentity {
  FileType type = FileType::other;
  uint64_t device = 0, inode = 0, generation = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct SpaceInfo {
  uint64_t free_bytes = 0;
  uint64_t free_inodes = 0;
  bool read_only = false;
  // One write into a file at a time, wherever it goes: whoever comes next waits for it, and burns a processor meanwhile.
  bool one_writer_a_file = false;
  // syncfs tells, once a descriptor that was open before, of data that could not be written back since: Linux 5.8 and later, on
  // file systems that are known to pass it on. Else only fsync of each file tells.
  bool syncfs_tells = false;
  // A file keeps its FileIdentity when nobody has it open. Not so where numbers are given out anew as the kernel forgets (vfat,
  // FUSE, SMB): there only two that are open at the same time may be compared.
  bool lasting_identity = true;
};

inline constexpr size_t direct_block_bytes = 4096;

enum class OpenMode : uint8_t { read, write, read_write };
struct OpenFlags {
  OpenMode mode = OpenMode::read;
  bool create = false;     // O_CREAT
  bool exclusive = false;  // O_EXCL
  bool truncate = false;   // O_TRUNC
  bool directory = false;  // O_DIRECTORY
  bool anchor = false;     // O_PATH: for names below it; nothing is read or listed, and no right to do so is needed
  bool follow = false;     // the last component may be a symlink (sender without -a only)
  bool no_link = false;    // O_NOFOLLOW, with no_directory: the last component may be none
  // O_DIRECT, for reading: what the disk has, past what is in memory. Memory, offset and length in whole direct_block_bytes. A file
  // system that has no such thing: -EINVAL, here or from pread.
  bool direct = false;
  // To wait for who has a lease on the file takes up to a minute: each pause counts there, for whoever waits for a sign of life.
  std::atomic<uint64_t>* pauses = nullptr;
};

class FileSystem {
 public:
  static constexpr int no_directory = -100;  // AT_FDCWD: `name` is a path as the user typed it, links followed
  virtual ~FileSystem() = default;

  // openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS) for directory >= 0: `name` may have several components
  // and can neither leave `directory` nor pass a link. With no_directory: a plain open.
  virtual int open(int directory, std::string_view name, OpenFlags flags, uint32_t permissions) = 0;
  // The descriptor is gone whatever comes back. -EIO, -EDQUOT, -ENOSPC: what was written through it may be lost (NFS and quotas
  // say so only here).
  virtual int close(int fd) = 0;
  virtual int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) = 0;
  // The next bytes of a pipe, a terminal or a file read from front to end; waits for them a moment (about 100 ms) and no longer.
  // 0: the end; -EAGAIN: none came yet. A file system that has no such thing: -ENOSYS.
  virtual int64_t read_stream(int fd, MutableBytes into);
  // The file's own pages in the place of the memory `at` (whole pages of a pool's buffer), from `offset_bytes` on, until
  // memory::hide_file: see core/memory/file_view.h. 0, or -errno and nothing is shown; -ENOTSUP: this file is to be read.
  virtual int show(int fd, MutableBytes at, uint64_t offset_bytes);
  virtual int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) = 0;
  // FICLONERANGE: `to` shares these blocks of `from` from now on, and neither sees what is written into the other. 0, or -errno and
  // `to` is as it was: between these files, or at these offsets, it is not possible, and the bytes are to be read and written.
  virtual int clone_range(int from, uint64_t from_bytes, int to, uint64_t to_bytes, uint64_t bytes);
  virtual int fstat(int fd, FileStat& out) = 0;
  // As its server has it now (statx(2), AT_STATX_FORCE_SYNC): fstat of a file on NFS may be seconds old.
  virtual int fstat_fresh(int fd, FileStat& out) { return fstat(fd, out); }
  // Waits until a change of a file that was changed at `change` would give it another time, as far as the clock tells. Times have a
  // grain: a write right behind a look may leave the time that the look has seen. True: it has waited, so whoever looked looks
  // anew.
  virtual bool outwait(const FileTime& change);
  virtual int stat_at(int directory, std::string_view name, FileStat& out, bool follow) = 0;  // single component below a descriptor
  // Some of a directory's names, without . and ..: the first ones, or those that follow what this descriptor gave last. 0: these
  // were the last; > 0: there may be more. A name that stays throughout comes exactly once, whatever else changes in between.
  virtual int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) = 0;
  int read_directory(int fd, const std::function<void(std::string_view name)>& entry);  // all of them
  virtual int mkdir_at(int directory, std::string_view name, uint32_t permissions) = 0;
  virtual int symlink_at(std::string_view target, int directory, std::string_view name) = 0;
  virtual int64_t readlink_at(int directory, std::string_view name, std::string& out) = 0;
  // Another name for the file itself; a link is not followed. -EEXIST: the name is taken.
  virtual int link_at(int from_directory, std::string_view from, int to_directory, std::string_view to);
  virtual int rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) = 0;
  virtual int unlink_at(int directory, std::string_view name, bool is_directory) = 0;
  virtual int truncate(int fd, uint64_t size_bytes) = 0;
  virtual int set_mode(int fd, uint32_t permissions) = 0;         // fchmod
  virtual int set_owner(int fd, uint32_t uid, uint32_t gid) = 0;  // fchown
  virtual int set_mtime(int fd, FileTime mtime) = 0;              // futimens; atime becomes now
  virtual int set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) = 0;  // no follow
  virtual int set_link_mtime_at(int directory, std::string_view name, FileTime mtime) = 0;              // no follow
  // As Linux does: data that could not be written is dropped and counts as clean. Each descriptor that was open before is told
  // once, and the next call returns 0: who is told fetches the data again and never syncs it again.
  virtual int fsync(int fd) = 0;
  // What is in memory of this part of a file, and synced, is read from the disk the next time (posix_fadvise, DONTNEED). A hint.
  virtual int drop_cached(int fd, uint64_t offset_bytes, uint64_t bytes);
  virtual int syncfs(int fd) = 0;                 // the whole file system of fd, and no other one below it
  virtual int space(int fd, SpaceInfo& out) = 0;  // fstatvfs, fstatfs
  virtual size_t descriptors_max();               // that may be open at once (RLIMIT_NOFILE)
  // fstatat, name_to_handle_at; `name` as of stat_at ("." for the directory itself), no link followed but with no_directory.
  virtual int identify(int directory, std::string_view name, FileIdentity& out);
  // POSIX access control lists, in the form of the kernel's attribute; empty: none, or the file system has no such thing.
  // `inherited`: a directory's, for what is made in it (its default ACL); else the file's own. An empty one is taken away.
  virtual int get_acl(int fd, bool inherited, std::string& out);
  virtual int set_acl(int fd, bool inherited, std::string_view acl);
  // Extended attributes; `name` with its namespace. A file system without them: no names, and -ENOTSUP to set one.
  virtual int list_attributes(int fd, std::vector<std::string>& names);
  virtual int get_attribute(int fd, std::string_view name, std::string& value);
  virtual int set_attribute(int fd, std::string_view name, std::string_view value);
  virtual int remove_attribute(int fd, std::string_view name);
  // A FIFO, socket or device. -EPERM: not by this account, or not on this file system.
  virtual int make_special_at(int directory, std::string_view name, SpecialKind kind, uint64_t device, uint32_t permissions);
  virtual int set_mode_at(int directory, std::string_view name, uint32_t permissions);  // of what is no link; none is followed
  // The next part of a file from there on that is not a hole: [begin, end). -ENXIO: only a hole follows, or nothing. A file system
  // that knows no holes has one part to the end of all files.
  virtual int next_data(int fd, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes);
  // That part reads as zeros afterwards, and takes no room. The length stays. -ENOTSUP: write zeros.
  virtual int make_hole(int fd, uint64_t offset_bytes, uint64_t bytes);
  // A lock on the whole file, held by this descriptor (fcntl, F_OFD_SETLK): many may share one, which needs read_write, and none of
  // them while one has it alone. Of other hosts too, where the file system is one that several mount. It goes with the descriptor.
  // -EAGAIN: another descriptor holds one that does not fit. -ENOTSUP: no locks, or none that other hosts see.
  enum class Lock : uint8_t { none, shared, alone };
  virtual int lock(int fd, Lock lock);
  // The accounts of this host: names of users or groups, and numbers of names. -ENOENT: there is none. Any other error says
  // nothing of whether there is one.
  virtual int name_of_owner(bool is_group, uint32_t id, std::string& name);
  virtual int owner_of_name(bool is_group, std::string_view name, uint32_t& id);
  // Whether this process has the group: who is not root gives files no other one.
  virtual bool has_group(uint32_t gid);
};

inline int FileSystem::read_directory(int fd, const std::function<void(std::string_view name)>& entry) {
  int more = read_directory_part(fd, true, entry);
  while (more > 0) more = read_directory_part(fd, false, entry);
  return more;
}
inline int FileSystem::link_at(int, std::string_view, int, std::string_view) { return -EPERM; }
inline int FileSystem::show(int, MutableBytes, uint64_t) { return -ENOTSUP; }
inline int FileSystem::clone_range(int, uint64_t, int, uint64_t, uint64_t) { return -EOPNOTSUPP; }
inline bool FileSystem::has_group(uint32_t) { return true; }
inline bool FileSystem::outwait(const FileTime&) { return false; }
inline int64_t FileSystem::read_stream(int, MutableBytes) { return -ENOSYS; }
inline int FileSystem::drop_cached(int, uint64_t, uint64_t) { return 0; }
inline size_t FileSystem::descriptors_max() { return 1024; }
inline int FileSystem::identify(int directory, std::string_view name, FileIdentity& out) {
  FileStat stat;
  const int result = stat_at(directory, name, stat, directory == no_directory);
  if (result >= 0) out = {stat.type, stat.device, stat.inode, 0};
  return result;
}
inline int FileSystem::get_acl(int, bool, std::string& out) {
  out.clear();
  return 0;
}
inline int FileSystem::set_acl(int, bool, std::string_view acl) { return acl.empty() ? 0 : -ENOTSUP; }
inline int FileSystem::list_attributes(int, std::vector<std::string>& names) {
  names.clear();
  return 0;
}
inline int FileSystem::get_attribute(int, std::string_view, std::string&) { return -ENODATA; }
inline int FileSystem::set_attribute(int, std::string_view, std::string_view) { return -ENOTSUP; }
inline int FileSystem::remove_attribute(int, std::string_view) { return -ENOTSUP; }
inline int FileSystem::make_special_at(int, std::string_view, SpecialKind, uint64_t, uint32_t) { return -EPERM; }
inline int FileSystem::set_mode_at(int, std::string_view, uint32_t) { return -ENOTSUP; }
inline int FileSystem::next_data(int, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) {
  begin_bytes = from_bytes;
  end_bytes = ~uint64_t{0};
  return 0;
}
inline int FileSystem::make_hole(int, uint64_t, uint64_t) { return -ENOTSUP; }
inline int FileSystem::lock(int, Lock) { return -ENOTSUP; }
inline int FileSystem::name_of_owner(bool, uint32_t, std::string&) { return -ENOENT; }
inline int FileSystem::owner_of_name(bool, std::string_view, uint32_t&) { return -ENOENT; }

}  // namespace ccixfer::ports
