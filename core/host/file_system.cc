#include "core/host/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "core/base/hash.h"
#include "core/host/accounts.h"
#include "core/host/file_stat.h"
#include "core/host/file_system_kind.h"
#include "core/host/kernel_version.h"
#include "core/memory/file_view.h"

namespace ccixfer::host {
namespace {

using ports::FileStat;
using ports::FileTime;
using ports::FileType;
using ports::OpenFlags;
using ports::OpenMode;

static_assert(ports::FileSystem::no_directory == AT_FDCWD);

constexpr int resolve_tries = 64;  // openat2 says EAGAIN when a rename raced with the walk of `..`
constexpr size_t directory_buffer_bytes = 32u << 10;
constexpr int stream_wait_ms = 100;
constexpr size_t attribute_names_bytes = 4096, attribute_bytes = 1024;  // at first; few need more

constexpr Duration lease_pause_min = std::chrono::milliseconds(1), lease_pause_max = std::chrono::milliseconds(100);
// A tick of the kernel, or the hundredths of a second of exFAT; and the seconds of ext4 with small inodes, or the two of FAT.
constexpr Duration time_grain = std::chrono::milliseconds(20), whole_seconds_grain = std::chrono::seconds(2);
constexpr int64_t far_seconds = 10;
constexpr Duration lease_wait_max = std::chrono::seconds(60);

// A name as the kernel wants it: terminated, without a NUL inside, not longer than PATH_MAX.
class CName {
 public:
  explicit CName(std::string_view name) {
    if (name.size() >= text_.size()) {
      error_ = -ENAMETOOLONG;
    } else if (name.find('\0') != std::string_view::npos) {
      error_ = -EINVAL;
    } else {
      std::memcpy(text_.data(), name.data(), name.size());
      text_[name.size()] = '\0';
    }
  }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] const char* c_str() const { return text_.data(); }

 private:
  std::array<char, PATH_MAX> text_;
  int error_ = 0;
};

// The calls other than open resolve their name without RESOLVE_BENEATH: below a descriptor they take one component only.
int component_error(int directory, std::string_view name) {
  if (directory == ports::FileSystem::no_directory) return 0;
  return name.find('/') != std::string_view::npos || name == ".." ? -EXDEV : 0;
}

int name_error(int directory, std::string_view name, const CName& terminated) {
  return terminated.error() != 0 ? terminated.error() : component_error(directory, name);
}

template <typename Call>
auto call(Call&& function) -> decltype(function()) {
  while (true) {
    const auto result = function();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(function())>(-errno);
  }
}

int open_flags(const OpenFlags& flags) {
  if (flags.anchor) return O_PATH | O_CLOEXEC | (flags.directory ? O_DIRECTORY : 0);  // openat2 takes no others with it
  int bits = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (flags.mode == OpenMode::write) bits |= O_WRONLY;
  if (flags.mode == OpenMode::read_write) bits |= O_RDWR;
  if (flags.create) bits |= O_CREAT;
  if (flags.exclusive) bits |= O_EXCL;
  if (flags.truncate) bits |= O_TRUNC;
  if (flags.directory) bits |= O_DIRECTORY;
  if (flags.direct) bits |= O_DIRECT;
  if (flags.no_link) bits |= O_NOFOLLOW;
  return bits;
}

int open_beneath(int directory, const char* name, int flags, uint32_t permissions) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.mode = (flags & O_CREAT) != 0 ? permissions & 07777u : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int result = -EAGAIN;
  for (int i = 0; i < resolve_tries && result == -EAGAIN; ++i) {
    result = call([&] { return static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how)); });
  }
  return result;
}

mode_t type_bits(ports::SpecialKind kind) {
  switch (kind) {
    case ports::SpecialKind::fifo:
      return S_IFIFO;
    case ports::SpecialKind::socket:
      return S_IFSOCK;
    case ports::SpecialKind::character:
      return S_IFCHR;
    case ports::SpecialKind::block:
      return S_IFBLK;
    case ports::SpecialKind::none:
      break;
  }
  return 0;
}

// A handle as an NFS server gives it out: the inode's number and its generation. It needs no right but to see the name.
uint64_t generation_of(int directory, const char* name, bool follow) {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> memory{};
  auto* handle = reinterpret_cast<file_handle*>(memory.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(directory, name, handle, &mount, follow ? AT_SYMLINK_FOLLOW : 0) != 0) return 0;
  return xxh3_64(Bytes(memory).subspan(sizeof(file_handle), handle->handle_bytes));
}

const char* acl_attribute(bool inherited) { return inherited ? "system.posix_acl_default" : "system.posix_acl_access"; }
bool has_no_acl(int error) { return error == -ENODATA || error == -ENOTSUP || error == -ENOSYS; }

// File systems of libfuse 2 without `utime_omit_ok` take both times or none, and say nothing of it. So the other time becomes now.
std::array<timespec, 2> times_of(FileTime mtime) {
  std::array<timespec, 2> times{};
  times[0].tv_nsec = UTIME_NOW;
  times[1].tv_sec = mtime.seconds;
  times[1].tv_nsec = mtime.nanoseconds;
  return times;
}

bool fits_offset(uint64_t value) { return value <= static_cast<uint64_t>(std::numeric_limits<off_t>::max()); }

}  // namespace

// Nothing of ours waits for a FIFO, so all is opened with O_NONBLOCK. Of a file that somebody has a lease on (fcntl(2), F_SETLEASE:
// a file server for its clients) the kernel then only asks the holder to let go, and says EAGAIN. It takes the lease away itself
// after /proc/sys/fs/lease-break-time, 45 s if nobody has set it.
int PosixFileSystem::open(int directory, std::string_view name, OpenFlags flags, uint32_t permissions) {
  int result = open_now(directory, name, flags, permissions);
  if (result != -EAGAIN) return result;
  const CName path(name);
  struct stat raw;
  const int follow = flags.follow ? 0 : AT_SYMLINK_NOFOLLOW;
  if (path.error() != 0 || ::fstatat(directory, path.c_str(), &raw, follow) != 0 || !S_ISREG(raw.st_mode)) return result;
  Duration waited{0};
  for (Duration pause = lease_pause_min; result == -EAGAIN && waited < lease_wait_max;
       pause = std::min(pause * 2, lease_pause_max)) {
    std::this_thread::sleep_for(pause);
    waited += pause;
    if (flags.pauses != nullptr) flags.pauses->fetch_add(1, std::memory_order_relaxed);
    result = open_now(directory, name, flags, permissions);
  }
  return result;
}

int PosixFileSystem::open_now(int directory, std::string_view name, OpenFlags flags, uint32_t permissions) {
  if (directory != no_directory && name.size() >= PATH_MAX) return open_in_steps(directory, name, flags, permissions);
  const CName path(name);
  if (path.error() != 0) return path.error();
  const int bits = open_flags(flags);
  if (directory == no_directory) {
    return call([&] { return ::open(path.c_str(), bits, static_cast<mode_t>(permissions)); });
  }
  if (!flags.follow) return open_beneath(directory, path.c_str(), bits, permissions);
  // Only the last component may be a link: the others are resolved by an open of their own.
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) {
    if (name == "..") return -EXDEV;
    return call([&] { return ::openat(directory, path.c_str(), bits, static_cast<mode_t>(permissions)); });
  }
  OpenFlags parent_flags;
  parent_flags.directory = true;
  const int parent = open(directory, name.substr(0, slash), parent_flags, 0);
  if (parent < 0) return parent;
  const int result = open(parent, name.substr(slash + 1), flags, permissions);
  close(parent);
  return result;
}

// The kernel takes PATH_MAX bytes in one call, and a tree may be deeper.
int PosixFileSystem::open_in_steps(int directory, std::string_view name, OpenFlags flags, uint32_t permissions) {
  const size_t slash = name.rfind('/', PATH_MAX - 1);
  if (slash == std::string_view::npos || slash == 0) return -ENAMETOOLONG;
  OpenFlags step;
  step.directory = step.anchor = true;
  const int next = open(directory, name.substr(0, slash), step, 0);
  if (next < 0) return next;
  const int result = open(next, name.substr(slash + 1), flags, permissions);
  close(next);
  return result;
}

int PosixFileSystem::close(int fd) {
  if (::close(fd) == 0 || errno == EINTR) return 0;  // never again after EINTR: Linux has closed it
  return -errno;
}

template <typename SystemCall>
auto PosixFileSystem::moved(DiskCall kind, SystemCall&& system_call) const {
  return timed(times_, kind, [&] { return call(system_call); });
}

int64_t PosixFileSystem::pread(int fd, MutableBytes into, uint64_t offset_bytes) {
  if (!fits_offset(offset_bytes)) return -EINVAL;
  return moved(DiskCall::read, [&] { return int64_t{::pread(fd, into.data(), into.size(), static_cast<off_t>(offset_bytes))}; });
}

int64_t PosixFileSystem::read_stream(int fd, MutableBytes into) {
  pollfd wait{fd, POLLIN, 0};
  const int ready = ::poll(&wait, 1, stream_wait_ms);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return -EAGAIN;
  if (ready < 0) return -errno;
  return moved(DiskCall::read, [&] { return int64_t{::read(fd, into.data(), into.size())}; });
}

int PosixFileSystem::show(int fd, MutableBytes at, uint64_t offset_bytes) {
  const FileSystemKind kind = shows_ ? kind_of_file_system(fd) : FileSystemKind::other;
  if (kind == FileSystemKind::other) return -ENOTSUP;
  // Pages of a hole would be made in the file, out of the user's memory, as a write makes them; a read makes none.
  if (kind == FileSystemKind::in_memory && dense_.has_hole(fd, offset_bytes, at.size())) return -ENOTSUP;
  // All of it is asked for at once; page by page a disk would be asked for little at a time.
  if (kind == FileSystemKind::local) {
    static_cast<void>(::posix_fadvise(fd, static_cast<off_t>(offset_bytes), static_cast<off_t>(at.size()), POSIX_FADV_WILLNEED));
  }
  return memory::show_file(at, fd, offset_bytes);
}

int64_t PosixFileSystem::pwrite(int fd, Bytes from, uint64_t offset_bytes) {
  if (!fits_offset(offset_bytes)) return -EFBIG;
  return moved(DiskCall::write, [&] { return int64_t{::pwrite(fd, from.data(), from.size(), static_cast<off_t>(offset_bytes))}; });
}

int PosixFileSystem::clone_range(int from, uint64_t from_bytes, int to, uint64_t to_bytes, uint64_t bytes) {
  const file_clone_range range{from, from_bytes, bytes, to_bytes};
  return call([&] { return ::ioctl(to, FICLONERANGE, &range); });
}

int PosixFileSystem::fstat(int fd, FileStat& out) {
  struct stat raw;
  const int result = call([&] { return ::fstat(fd, &raw); });
  if (result >= 0) out = file_stat(raw);
  return result;
}

int PosixFileSystem::fstat_fresh(int fd, FileStat& out) {
  struct statx raw;
  const int result = call([&] { return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &raw); });
  // Refused by the sandbox of a container, or not whole: fstat says what is wrong, or what statx has left out.
  if (result < 0 || (raw.stx_mask & STATX_BASIC_STATS) != STATX_BASIC_STATS) return fstat(fd, out);
  out = file_stat(raw);
  return 0;
}

// A clock that is far from the file's, as that of a file server may be, tells nothing.
bool PosixFileSystem::outwait(const FileTime& change) {
  timespec now{};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
  const Duration grain = change.nanoseconds == 0 ? whole_seconds_grain : time_grain;
  if (change.seconds < now.tv_sec - far_seconds || change.seconds > now.tv_sec + far_seconds) return false;
  const Duration age = std::chrono::seconds(now.tv_sec - change.seconds) + Duration(now.tv_nsec - int64_t{change.nanoseconds});
  if (age >= grain || age <= -grain) return false;
  std::this_thread::sleep_for(grain - age);
  return true;
}

int PosixFileSystem::stat_at(int directory, std::string_view name, FileStat& out, bool follow) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  struct stat raw;
  const int result = call([&] { return ::fstatat(directory, path.c_str(), &raw, follow ? 0 : AT_SYMLINK_NOFOLLOW); });
  if (result >= 0) out = file_stat(raw);
  return result;
}

// A part is what the kernel gives in one call. Going on without a seek is exact on every file system; a position that is sought
// again is a count on some, and wrong once a name before it has gone.
int PosixFileSystem::read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) {
  if (from_start && ::lseek(fd, 0, SEEK_SET) < 0) return -errno;
  alignas(dirent64) std::array<char, directory_buffer_bytes> buffer;
  const auto bytes = call([&] { return int64_t{::getdents64(fd, buffer.data(), buffer.size())}; });
  if (bytes <= 0) return static_cast<int>(bytes);
  for (int64_t at = 0; at < bytes;) {
    const auto* record = reinterpret_cast<const dirent64*>(buffer.data() + at);
    const std::string_view name(record->d_name);
    if (name != "." && name != "..") entry(name);
    at += record->d_reclen;
  }
  return 1;
}

int PosixFileSystem::mkdir_at(int directory, std::string_view name, uint32_t permissions) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  return call([&] { return ::mkdirat(directory, path.c_str(), static_cast<mode_t>(permissions)); });
}

int PosixFileSystem::symlink_at(std::string_view target, int directory, std::string_view name) {
  const CName to(target);
  if (to.error() != 0) return to.error();
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  return call([&] { return ::symlinkat(to.c_str(), directory, path.c_str()); });
}

int64_t PosixFileSystem::readlink_at(int directory, std::string_view name, std::string& out) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  out.resize(PATH_MAX);  // no link is longer
  const auto length = call([&] { return int64_t{::readlinkat(directory, path.c_str(), out.data(), out.size())}; });
  out.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return length;
}

int PosixFileSystem::link_at(int from_directory, std::string_view from, int to_directory, std::string_view to) {
  const CName old_path(from);
  if (const int error = name_error(from_directory, from, old_path); error != 0) return error;
  const CName new_path(to);
  if (const int error = name_error(to_directory, to, new_path); error != 0) return error;
  return call([&] { return ::linkat(from_directory, old_path.c_str(), to_directory, new_path.c_str(), 0); });
}

int PosixFileSystem::rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) {
  const CName old_path(from);
  if (const int error = name_error(from_directory, from, old_path); error != 0) return error;
  const CName new_path(to);
  if (const int error = name_error(to_directory, to, new_path); error != 0) return error;
  return call([&] { return ::renameat(from_directory, old_path.c_str(), to_directory, new_path.c_str()); });
}

int PosixFileSystem::unlink_at(int directory, std::string_view name, bool is_directory) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  return call([&] { return ::unlinkat(directory, path.c_str(), is_directory ? AT_REMOVEDIR : 0); });
}

int PosixFileSystem::truncate(int fd, uint64_t size_bytes) {
  if (!fits_offset(size_bytes)) return -EFBIG;
  return call([&] { return ::ftruncate(fd, static_cast<off_t>(size_bytes)); });
}

int PosixFileSystem::set_mode(int fd, uint32_t permissions) {
  return call([&] { return ::fchmod(fd, static_cast<mode_t>(permissions & 07777u)); });
}

int PosixFileSystem::set_owner(int fd, uint32_t uid, uint32_t gid) {
  return call([&] { return ::fchown(fd, uid, gid); });
}

int PosixFileSystem::set_mtime(int fd, FileTime mtime) {
  const auto times = times_of(mtime);
  return call([&] { return ::futimens(fd, times.data()); });
}

int PosixFileSystem::set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  return call([&] { return ::fchownat(directory, path.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW); });
}

int PosixFileSystem::set_link_mtime_at(int directory, std::string_view name, FileTime mtime) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  const auto times = times_of(mtime);
  return call([&] { return ::utimensat(directory, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW); });
}

int PosixFileSystem::fsync(int fd) {
  return moved(DiskCall::sync, [&] { return ::fsync(fd); });
}

int PosixFileSystem::drop_cached(int fd, uint64_t offset_bytes, uint64_t bytes) {
  if (!fits_offset(offset_bytes) || !fits_offset(bytes)) return -EFBIG;
  return -::posix_fadvise(fd, static_cast<off_t>(offset_bytes), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

int PosixFileSystem::syncfs(int fd) {
  const int result = moved(DiskCall::sync, [&] { return ::syncfs(fd); });
  if (result < 0 || !(running_kernel() < kernel_whose_syncfs_tells_of_the_journal)) return result;
  return fsync(fd);
}

int PosixFileSystem::space(int fd, ports::SpaceInfo& out) {
  struct statvfs raw;
  const int result = call([&] { return ::fstatvfs(fd, &raw); });
  if (result < 0) return result;
  out.free_bytes = uint64_t{raw.f_bavail} * raw.f_frsize;
  // Some file systems keep no count of inodes (all zero): then there is no bound to report.
  out.free_inodes = raw.f_files == 0 ? std::numeric_limits<uint64_t>::max() : uint64_t{raw.f_favail};
  out.read_only = (raw.f_flag & ST_RDONLY) != 0;
  const bool is_known = kind_of_file_system(fd) != FileSystemKind::other;
  out.one_writer_a_file = is_known;
  // Others have write-back of their own (Lustre, GPFS), or stand before one that does not pass it on (overlayfs).
  out.syncfs_tells = is_known && !(running_kernel() < kernel_whose_syncfs_tells_of_data);
  out.lasting_identity = has_lasting_identity(fd);
  return 0;
}

size_t PosixFileSystem::descriptors_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : ports::FileSystem::descriptors_max();
}

int PosixFileSystem::identify(int directory, std::string_view name, ports::FileIdentity& out) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  const bool follow = directory == no_directory;
  struct stat raw;
  const int result = call([&] { return ::fstatat(directory, path.c_str(), &raw, follow ? 0 : AT_SYMLINK_NOFOLLOW); });
  if (result < 0) return result;
  out = {file_type(raw.st_mode), raw.st_dev, raw.st_ino, generation_of(directory, path.c_str(), follow)};
  return 0;
}

int PosixFileSystem::get_acl(int fd, bool inherited, std::string& out) {
  out.clear();
  const auto bytes = call([&] { return int64_t{::fgetxattr(fd, acl_attribute(inherited), nullptr, 0)}; });
  if (bytes <= 0) return has_no_acl(static_cast<int>(bytes)) ? 0 : static_cast<int>(bytes);
  out.resize(static_cast<size_t>(bytes));
  const auto got = call([&] { return int64_t{::fgetxattr(fd, acl_attribute(inherited), out.data(), out.size())}; });
  out.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return got < 0 && !has_no_acl(static_cast<int>(got)) ? static_cast<int>(got) : 0;
}

int PosixFileSystem::set_acl(int fd, bool inherited, std::string_view acl) {
  if (!acl.empty()) return call([&] { return ::fsetxattr(fd, acl_attribute(inherited), acl.data(), acl.size(), 0); });
  const int result = call([&] { return ::fremovexattr(fd, acl_attribute(inherited)); });
  return has_no_acl(result) ? 0 : result;
}

// The kernel gives the names one behind the other, each with a zero behind it.
int PosixFileSystem::list_attributes(int fd, std::vector<std::string>& names) {
  names.clear();
  std::string text(attribute_names_bytes, '\0');
  auto bytes = call([&] { return int64_t{::flistxattr(fd, text.data(), text.size())}; });
  if (bytes == -ERANGE) {
    text.resize(XATTR_LIST_MAX);
    bytes = call([&] { return int64_t{::flistxattr(fd, text.data(), text.size())}; });
  }
  if (bytes == -ENOTSUP || bytes == -ENOSYS) return 0;
  if (bytes < 0) return static_cast<int>(bytes);
  const std::string_view all(text.data(), static_cast<size_t>(bytes));
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size());
    if (end > at) names.emplace_back(all.substr(at, end - at));
    at = end + 1;
  }
  return 0;
}

int PosixFileSystem::get_attribute(int fd, std::string_view name, std::string& value) {
  const CName attribute(name);
  if (attribute.error() != 0) return attribute.error();
  value.resize(attribute_bytes);
  auto bytes = call([&] { return int64_t{::fgetxattr(fd, attribute.c_str(), value.data(), value.size())}; });
  if (bytes == -ERANGE) {
    value.resize(XATTR_SIZE_MAX);
    bytes = call([&] { return int64_t{::fgetxattr(fd, attribute.c_str(), value.data(), value.size())}; });
  }
  value.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return static_cast<int>(std::min<int64_t>(bytes, 0));
}

int PosixFileSystem::set_attribute(int fd, std::string_view name, std::string_view value) {
  const CName attribute(name);
  if (attribute.error() != 0) return attribute.error();
  return call([&] { return ::fsetxattr(fd, attribute.c_str(), value.data(), value.size(), 0); });
}

int PosixFileSystem::remove_attribute(int fd, std::string_view name) {
  const CName attribute(name);
  if (attribute.error() != 0) return attribute.error();
  const int result = call([&] { return ::fremovexattr(fd, attribute.c_str()); });
  return result == -ENODATA ? 0 : result;
}

int PosixFileSystem::make_special_at(int directory, std::string_view name, ports::SpecialKind kind, uint64_t device,
                                     uint32_t permissions) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  const mode_t mode = type_bits(kind) | static_cast<mode_t>(permissions & 07777u);
  return call([&] { return ::mknodat(directory, path.c_str(), mode, static_cast<dev_t>(device)); });
}

int PosixFileSystem::set_mode_at(int directory, std::string_view name, uint32_t permissions) {
  const CName path(name);
  if (const int error = name_error(directory, name, path); error != 0) return error;
  return call([&] { return ::fchmodat(directory, path.c_str(), static_cast<mode_t>(permissions & 07777u), AT_SYMLINK_NOFOLLOW); });
}

int PosixFileSystem::next_data(int fd, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) {
  if (!fits_offset(from_bytes)) return -ENXIO;
  const auto begin = call([&] { return int64_t{::lseek(fd, static_cast<off_t>(from_bytes), SEEK_DATA)}; });
  if (begin == -EINVAL || begin == -ENOTSUP) return FileSystem::next_data(fd, from_bytes, begin_bytes, end_bytes);
  if (begin < 0) return static_cast<int>(begin);
  const auto end = call([&] { return int64_t{::lseek(fd, static_cast<off_t>(begin), SEEK_HOLE)}; });
  if (end < 0) return static_cast<int>(end);
  begin_bytes = static_cast<uint64_t>(begin);
  end_bytes = static_cast<uint64_t>(end);
  return 0;
}

int PosixFileSystem::make_hole(int fd, uint64_t offset_bytes, uint64_t bytes) {
  if (!fits_offset(offset_bytes) || !fits_offset(bytes)) return -EFBIG;
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  return call([&] { return ::fallocate(fd, mode, static_cast<off_t>(offset_bytes), static_cast<off_t>(bytes)); });
}

int PosixFileSystem::lock(int fd, Lock lock) {
  struct flock whole {};  // from 0 on, for 0 bytes: all of it
  whole.l_type = lock == Lock::none ? F_UNLCK : lock == Lock::shared ? F_RDLCK : F_WRLCK;
  const int error = call([&] { return ::fcntl(fd, F_OFD_SETLK, &whole); });
  if (error == -EACCES) return -EAGAIN;  // as some systems say it
  // A file system without locks (Lustre: ENOSYS, NFS without lockd: ENOLCK).
  return error == -ENOSYS || error == -ENOLCK || error == -EINVAL || error == -EOPNOTSUPP ? -ENOTSUP : error;
}

int PosixFileSystem::name_of_owner(bool is_group, uint32_t id, std::string& name) { return name_of_account(is_group, id, name); }

int PosixFileSystem::owner_of_name(bool is_group, std::string_view name, uint32_t& id) {
  const CName terminated(name);
  return terminated.error() != 0 ? terminated.error() : id_of_account(is_group, terminated.c_str(), id);
}

}  // namespace ccixfer::host
