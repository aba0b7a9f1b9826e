// The system calls behind ports::FileSystem, each call one of them: no buffering, no retries but after EINTR, partial reads
// and writes returned as they are.
// Guarantees: a name below a directory descriptor reaches nothing outside it and passes no symbolic link (openat2 with
// RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS; there is no fallback: without openat2 every such open is
// -ENOSYS). The *_at calls take a single component there: a name with a slash, or `..`, is -EXDEV, as from openat2.
// A name with a NUL is -EINVAL, one longer than PATH_MAX -ENAMETOOLONG. Opens never block on a FIFO or a terminal.
// show() shows no hole of a file in memory (tmpfs): looking at one through a mapping would fill it.
// Thread-safe: no state but the times that it counts into, and what it knows of holes.
#pragma once
#include "core/host/dense_runs.h"
#include "core/host/disk_times.h"
#include "core/host/private_memory.h"
#include "core/ports/file_system.h"

namespace ccixfer::host {

class PosixFileSystem final : public ports::FileSystem {
 public:
  // `times`: counted into for as long as it lives; nullptr: nobody wants to know.
  // `shows`: whether show() shows anything: not where the memory that is shown over might not come back.
  explicit PosixFileSystem(DiskTimes* times = nullptr, bool shows = !counts_private_memory()) : times_(times), shows_(shows) {}
  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override;
  int close(int fd) override;
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override;
  int64_t read_stream(int fd, MutableBytes into) override;
  int show(int fd, MutableBytes at, uint64_t offset_bytes) override;
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override;
  int clone_range(int from, uint64_t from_bytes, int to, uint64_t to_bytes, uint64_t bytes) override;
  int fstat(int fd, ports::FileStat& out) override;
  int fstat_fresh(int fd, ports::FileStat& out) override;
  bool outwait(const ports::FileTime& change) override;
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override;
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override;
  int mkdir_at(int directory, std::string_view name, uint32_t permissions) override;
  int symlink_at(std::string_view target, int directory, std::string_view name) override;
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override;
  int link_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override;
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
  size_t descriptors_max() override;
  int identify(int directory, std::string_view name, ports::FileIdentity& out) override;
  int get_acl(int fd, bool inherited, std::string& out) override;
  int set_acl(int fd, bool inherited, std::string_view acl) override;
  int list_attributes(int fd, std::vector<std::string>& names) override;
  int get_attribute(int fd, std::string_view name, std::string& value) override;
  int set_attribute(int fd, std::string_view name, std::string_view value) override;
  int remove_attribute(int fd, std::string_view name) override;
  int make_special_at(int directory, std::string_view name, ports::SpecialKind kind, uint64_t device,
                      uint32_t permissions) override;
  int set_mode_at(int directory, std::string_view name, uint32_t permissions) override;
  int next_data(int fd, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) override;
  int make_hole(int fd, uint64_t offset_bytes, uint64_t bytes) override;
  int lock(int fd, Lock lock) override;
  int name_of_owner(bool is_group, uint32_t id, std::string& name) override;
  int owner_of_name(bool is_group, std::string_view name, uint32_t& id) override;
  bool has_group(uint32_t gid) override;

 private:
  [[nodiscard]] int open_now(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions);
  [[nodiscard]] int open_in_steps(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions);
  // A system call that moves or syncs data.
  template <typename SystemCall>
  auto moved(DiskCall kind, SystemCall&& system_call) const;

  DiskTimes* const times_;
  const bool shows_;
  DenseRuns dense_;
};

}  // namespace ccixfer::host
