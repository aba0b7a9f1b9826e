// The ledger: which pieces of unfinished files are durable in staging, and their hashes. So a transfer
// resumes after any crash. Only files of several pieces have rows, and a finished file has none. A
// ledger that is lost costs time and nothing else.
//
// In: the final path, the version of the source file, and its pieces. Out: the same after it was opened
// again. A row is there only if the transaction that added it returned ok (locking_mode=EXCLUSIVE, WAL
// or else a rollback journal, synchronous=FULL).
// A torn, foreign or newer database is moved aside (`ledger.db.damaged-N`) and an empty one begins. One
// that fails to open, read or write is opened again once in that call, before the failure counts.
// Errors: no_space (database or disk full), file_io (I/O, or another process has it open). Thread-safe:
// one lock.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

class Ledger {
 public:
  struct File {
    Hash128 key;  // path_key of the final path
    uint64_t version = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  struct Piece {
    uint64_t number = 0;
    Hash128 hash;
  };
  struct Addition {
    File file;
    std::string path;  // for people, as what follows the pieces
    std::vector<Piece> pieces;
    uint64_t size_bytes = 0;  // of the whole file; 0: nobody knows it yet
    std::string peer = {};    // from whom it comes
    int64_t now_s = 0;        // by the file system's clock
  };

  // `staging` is the descriptor of the directory that `path` (its path, for SQLite) names. `vfs`: nullptr for the default.
  static Result<std::unique_ptr<Ledger>> open(ports::FileSystem& files, int staging, const std::string& path, const char* vfs);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // From memory, unless the database has to be opened again: cheap.
  [[nodiscard]] Result<std::vector<uint64_t>> versions(const Hash128& key);
  [[nodiscard]] Result<std::vector<File>> all();
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool moved_aside() const;  // at open
  void
  abandon();  // its directory is no longer where it was: at the end no file is looked for by its path, as another's may be there
  [[nodiscard]] Result<std::vector<Piece>> pieces(const File& file);  // ascending
  [[nodiscard]] Result<void> add(
      const std::vector<Addition>& additions);                        // one transaction; a piece known already gets the new hash
  [[nodiscard]] Result<void> remove(const std::vector<File>& files);  // one transaction; unknown ones are ignored

 private:
  struct Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::recv
