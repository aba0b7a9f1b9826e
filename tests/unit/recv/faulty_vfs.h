// SQLite's own file system beneath a database, in which a test makes single calls fail. One object at a time; it outlives the
// databases that were opened through it.
#pragma once
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string_view>

namespace ccixfer::recv::test {

class FaultyVfs {
 public:
  static constexpr const char* name = "faulty";
  // Asked before each call that touches a file: SQLITE_OK, or what the call then says instead of being made.
  std::function<int(std::string_view call)> hook;
  int last_errno = 0;  // of the file on which a call failed; 0: as SQLite's own has it

  FaultyVfs() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    vfs_.zName = name;
    vfs_.pNext = nullptr;
    vfs_.pAppData = this;
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = [](sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
      return static_cast<FaultyVfs*>(vfs->pAppData)->open(path, file, flags, out);
    };
    vfs_.xDelete = [](sqlite3_vfs* vfs, const char* path, int sync) {
      auto* self = static_cast<FaultyVfs*>(vfs->pAppData);
      const int fault = self->fault("delete");
      return fault != SQLITE_OK ? fault : self->real_->xDelete(self->real_, path, sync);
    };
    REQUIRE(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK);
  }
  ~FaultyVfs() { sqlite3_vfs_unregister(&vfs_); }
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

 private:
  struct File {
    sqlite3_file base;
    FaultyVfs* owner;
    [[nodiscard]] sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static File* of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
  static sqlite3_file* real(sqlite3_file* file) { return of(file)->real(); }
  [[nodiscard]] int fault(std::string_view call) const { return hook ? hook(call) : SQLITE_OK; }
  static int fault(sqlite3_file* file, std::string_view call) { return of(file)->owner->fault(call); }

  int open(const char* path, sqlite3_file* file, int flags, int* out) {
    of(file)->base.pMethods = nullptr;
    if (const int failed = fault("open"); failed != SQLITE_OK) return failed;
    of(file)->owner = this;
    real(file)->pMethods = nullptr;
    const int code = real_->xOpen(real_, path, real(file), flags, out);
    if (code == SQLITE_OK) of(file)->base.pMethods = &methods;
    return code;
  }

  // Version 1: no shared memory, which a database in exclusive mode does not want.
  static constexpr sqlite3_io_methods methods = {
      1,
      [](sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); },
      [](sqlite3_file* file, void* into, int bytes, sqlite3_int64 at) {
        const int failed = fault(file, "read");
        return failed != SQLITE_OK ? failed : real(file)->pMethods->xRead(real(file), into, bytes, at);
      },
      [](sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
        const int failed = fault(file, "write");
        return failed != SQLITE_OK ? failed : real(file)->pMethods->xWrite(real(file), from, bytes, at);
      },
      [](sqlite3_file* file, sqlite3_int64 bytes) {
        const int failed = fault(file, "truncate");
        return failed != SQLITE_OK ? failed : real(file)->pMethods->xTruncate(real(file), bytes);
      },
      [](sqlite3_file* file, int flags) {
        const int failed = fault(file, "sync");
        return failed != SQLITE_OK ? failed : real(file)->pMethods->xSync(real(file), flags);
      },
      [](sqlite3_file* file, sqlite3_int64* bytes) { return real(file)->pMethods->xFileSize(real(file), bytes); },
      [](sqlite3_file* file, int level) { return real(file)->pMethods->xLock(real(file), level); },
      [](sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); },
      [](sqlite3_file* file, int* out) { return real(file)->pMethods->xCheckReservedLock(real(file), out); },
      [](sqlite3_file* file, int what, void* argument) {
        const int code = real(file)->pMethods->xFileControl(real(file), what, argument);
        const int given = of(file)->owner->last_errno;
        if (what == SQLITE_FCNTL_LAST_ERRNO && given != 0) *static_cast<int*>(argument) = given;
        return code;
      },
      [](sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); },
      [](sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); },
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      nullptr,
  };

  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
};

}  // namespace ccixfer::recv::test
