#include "transports/sim/sim_sqlite_vfs.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>

#include "core/base/check.h"

namespace ccixfer::sim {
namespace {

constexpr int path_bytes_max = 1024;

// SQLite's five lock levels among the connections of one VFS.
struct Locks {
  unsigned shared = 0;
  void* reserved = nullptr;  // who holds RESERVED or more
  bool pending = false;
  bool exclusive = false;
  unsigned users = 0;
};

}  // namespace

struct SimSqliteVfs::Impl {
  Impl(World& owner, ports::FileSystem& file_system, int below)
      : world(owner), files(file_system), directory(below), random(owner.random().next()) {}
  World& world;
  ports::FileSystem& files;
  const int directory;
  Random random;
  std::string name;
  sqlite3_vfs vfs{};
  std::map<uint64_t, Locks> locks;  // by inode, as the kernel's: a file of the same name may be another one
};

namespace {

using Vfs = SimSqliteVfs::Impl;

struct File {
  sqlite3_file base;  // first: SQLite sees only this
  Vfs* vfs;
  std::string* path;
  int fd;
  uint64_t inode;
  int lock;
  bool delete_on_close;
  bool sync_directory;  // new journal: its name is synced with its first bytes
};

Vfs& of(sqlite3_vfs* vfs) { return *static_cast<Vfs*>(vfs->pAppData); }
File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
int start_of(const Vfs& vfs, std::string_view path) {
  return path.starts_with('/') ? ports::FileSystem::no_directory : vfs.directory;
}

int sync_directory_of(Vfs& vfs, std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view parent = slash == std::string_view::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int fd = vfs.files.open(start_of(vfs, path), parent, {.directory = true}, 0);
  if (fd < 0) return SQLITE_IOERR_DIR_FSYNC;
  const int result = vfs.files.fsync(fd);
  vfs.files.close(fd);
  return result < 0 ? SQLITE_IOERR_DIR_FSYNC : SQLITE_OK;
}

int unlock(sqlite3_file* base, int level) {
  File& file = of(base);
  if (file.lock <= level || file.path == nullptr) return SQLITE_OK;
  Locks& locks = file.vfs->locks[file.inode];
  if (locks.reserved == base) {
    locks.reserved = nullptr;
    locks.pending = locks.exclusive = false;
  }
  if (level == SQLITE_LOCK_NONE && file.lock >= SQLITE_LOCK_SHARED) --locks.shared;
  file.lock = level;
  return SQLITE_OK;
}

int lock(sqlite3_file* base, int level) {
  File& file = of(base);
  if (file.lock >= level) return SQLITE_OK;
  Locks& locks = file.vfs->locks[file.inode];
  if (locks.reserved != nullptr && locks.reserved != base && (level > SQLITE_LOCK_SHARED || locks.pending)) return SQLITE_BUSY;
  if (file.lock < SQLITE_LOCK_SHARED) {
    ++locks.shared;
    file.lock = SQLITE_LOCK_SHARED;
  }
  if (level == SQLITE_LOCK_SHARED) return SQLITE_OK;
  locks.reserved = base;
  file.lock = SQLITE_LOCK_RESERVED;
  if (level == SQLITE_LOCK_RESERVED) return SQLITE_OK;
  locks.pending = true;  // no new readers
  file.lock = SQLITE_LOCK_PENDING;
  if (locks.shared > 1) return SQLITE_BUSY;
  locks.exclusive = true;
  file.lock = SQLITE_LOCK_EXCLUSIVE;
  return SQLITE_OK;
}

int close_file(sqlite3_file* base) {
  File& file = of(base);
  unlock(base, SQLITE_LOCK_NONE);
  file.vfs->files.close(file.fd);
  if (file.delete_on_close) (void)file.vfs->files.unlink_at(start_of(*file.vfs, *file.path), *file.path, false);
  const auto locks = file.vfs->locks.find(file.inode);
  if (--locks->second.users == 0) file.vfs->locks.erase(locks);
  delete file.path;
  file.path = nullptr;
  return SQLITE_OK;
}

int read_file(sqlite3_file* base, void* into, int bytes, sqlite3_int64 offset) {
  const File& file = of(base);
  const MutableBytes whole(static_cast<std::byte*>(into), static_cast<size_t>(bytes));
  for (size_t done = 0; done < whole.size();) {
    const int64_t got = file.vfs->files.pread(file.fd, whole.subspan(done), static_cast<uint64_t>(offset) + done);
    if (got < 0) return SQLITE_IOERR_READ;
    if (got == 0) {
      std::fill(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end(), std::byte{0});
      return SQLITE_IOERR_SHORT_READ;
    }
    done += static_cast<size_t>(got);
  }
  return SQLITE_OK;
}

int write_file(sqlite3_file* base, const void* from, int bytes, sqlite3_int64 offset) {
  const File& file = of(base);
  const Bytes whole(static_cast<const std::byte*>(from), static_cast<size_t>(bytes));
  for (size_t done = 0; done < whole.size();) {
    const int64_t put = file.vfs->files.pwrite(file.fd, whole.subspan(done), static_cast<uint64_t>(offset) + done);
    if (put == -ENOSPC || put == -EDQUOT) return SQLITE_FULL;
    if (put <= 0) return SQLITE_IOERR_WRITE;
    done += static_cast<size_t>(put);
  }
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* base, sqlite3_int64 bytes) {
  const File& file = of(base);
  return file.vfs->files.truncate(file.fd, static_cast<uint64_t>(bytes)) < 0 ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

int sync_file(sqlite3_file* base, int /*flags*/) {
  File& file = of(base);
  if (file.vfs->files.fsync(file.fd) < 0) return SQLITE_IOERR_FSYNC;
  if (!file.sync_directory) return SQLITE_OK;
  file.sync_directory = false;
  return sync_directory_of(*file.vfs, *file.path);
}

int file_size(sqlite3_file* base, sqlite3_int64* bytes) {
  const File& file = of(base);
  ports::FileStat stat;
  if (file.vfs->files.fstat(file.fd, stat) < 0) return SQLITE_IOERR_FSTAT;
  *bytes = static_cast<sqlite3_int64>(stat.size_bytes);
  return SQLITE_OK;
}

int check_reserved(sqlite3_file* base, int* held) {
  const File& file = of(base);
  *held = file.vfs->locks[file.inode].reserved != nullptr;
  return SQLITE_OK;
}

int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 512; }
int characteristics(sqlite3_file*) { return 0; }  // no promise about what a torn write leaves

const sqlite3_io_methods* methods() {
  static const sqlite3_io_methods table = [] {
    sqlite3_io_methods m{};
    m.iVersion = 1;
    m.xClose = close_file;
    m.xRead = read_file;
    m.xWrite = write_file;
    m.xTruncate = truncate_file;
    m.xSync = sync_file;
    m.xFileSize = file_size;
    m.xLock = lock;
    m.xUnlock = unlock;
    m.xCheckReservedLock = check_reserved;
    m.xFileControl = control;
    m.xSectorSize = sector_size;
    m.xDeviceCharacteristics = characteristics;
    return m;
  }();
  return &table;
}

int open_file(sqlite3_vfs* base, const char* path, sqlite3_file* out, int flags, int* out_flags) {
  Vfs& vfs = of(base);
  std::memset(out, 0, sizeof(File));
  ports::OpenFlags how;
  how.mode = (flags & SQLITE_OPEN_READWRITE) != 0 ? ports::OpenMode::read_write : ports::OpenMode::read;
  how.create = (flags & SQLITE_OPEN_CREATE) != 0;
  how.exclusive = (flags & SQLITE_OPEN_EXCLUSIVE) != 0;
  const std::string name = path != nullptr ? std::string(path) : fmt::format("/sqlite-temp-{:016x}", vfs.random.next());
  constexpr int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
  const int fd = vfs.files.open(start_of(vfs, name), name, how, 0644);
  if (fd < 0) return fd == -ENOSPC ? SQLITE_FULL : SQLITE_CANTOPEN;
  ports::FileStat stat;
  if (vfs.files.fstat(fd, stat) < 0) {
    vfs.files.close(fd);
    return SQLITE_CANTOPEN;
  }
  File& file = *new (out) File{};
  file.base.pMethods = methods();
  file.vfs = &vfs;
  file.path = new std::string(name);
  file.fd = fd;
  file.inode = stat.inode;
  file.lock = SQLITE_LOCK_NONE;
  file.delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  file.sync_directory = how.create && (flags & journals) != 0;
  ++vfs.locks[file.inode].users;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* base, const char* path, int sync_directory) {
  Vfs& vfs = of(base);
  const int result = vfs.files.unlink_at(start_of(vfs, path), path, false);
  if (result == -ENOENT) return SQLITE_IOERR_DELETE_NOENT;
  if (result < 0) return SQLITE_IOERR_DELETE;
  return sync_directory != 0 ? sync_directory_of(vfs, path) : SQLITE_OK;
}

int access_file(sqlite3_vfs* base, const char* path, int flags, int* result) {
  Vfs& vfs = of(base);
  ports::FileStat stat;
  const int found = vfs.files.stat_at(start_of(vfs, path), path, stat, true);
  *result = found == 0 && (flags != SQLITE_ACCESS_EXISTS || stat.size_bytes > 0 || stat.type != ports::FileType::regular);
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* path, int room, char* out) {
  const size_t length = std::strlen(path);
  if (length >= static_cast<size_t>(room)) return SQLITE_CANTOPEN;
  std::memcpy(out, path, length + 1);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs* base, int bytes, char* out) {
  Random& random = of(base).random;
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(random.next());
  return bytes;
}

int sleep_us(sqlite3_vfs*, int microseconds) { return microseconds; }  // a turn takes no virtual time

int current_time(sqlite3_vfs* base, sqlite3_int64* out) {
  constexpr sqlite3_int64 julian_1970_ms = 210866760000000;
  *out = julian_1970_ms + of(base).world.wall_ns() / 1'000'000;
  return SQLITE_OK;
}

int current_time_days(sqlite3_vfs* base, double* out) {
  sqlite3_int64 ms = 0;
  const int result = current_time(base, &ms);
  *out = static_cast<double>(ms) / 86'400'000.0;
  return result;
}

int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

SimSqliteVfs::SimSqliteVfs(World& world, ports::FileSystem& files, int directory)
    : impl_(std::make_unique<Impl>(world, files, directory)) {
  static uint64_t next_number = 0;  // SQLite's list of VFSes is the process's, whatever the world
  impl_->name = fmt::format("ccixfer-sim-{}", ++next_number);
  sqlite3_vfs& vfs = impl_->vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = sizeof(File);
  vfs.mxPathname = path_bytes_max;
  vfs.zName = impl_->name.c_str();
  vfs.pAppData = impl_.get();
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  vfs.xFullPathname = full_path;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep_us;
  vfs.xCurrentTime = current_time_days;
  vfs.xGetLastError = last_error;
  vfs.xCurrentTimeInt64 = current_time;
  CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

SimSqliteVfs::~SimSqliteVfs() { sqlite3_vfs_unregister(&impl_->vfs); }
const char* SimSqliteVfs::name() const { return impl_->name.c_str(); }

}  // namespace ccixfer::sim
