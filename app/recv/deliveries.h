// Files that a transfer placed and whose status cannot say so later: without times, the mtime of a new
// file is the time of its writing. Beside the source's version stands what was placed. The same
// transfer after a restart of either side, or the rerun of a sender that was killed, finds these files
// here and does not send them again. The rows of a transfer go when it ends well, so that the next run
// of the command sends the files anew, as cp does; otherwise they go after kept_s.
// A row counts only for that version of the source, and only while the placed file is untouched (size,
// mtime, inode). A row that is lost costs time and nothing else.
// It is a database of its own beside the ledger. The ledger's lock guards it: it is opened after the
// ledger and closed before it.
// Errors: none. A database that fails is given up with a warning, and then nothing is remembered. A
// damaged one is begun anew. Bound: files_max rows; more files are not remembered. Thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

class Deliveries {
 public:
  static constexpr uint64_t files_max = 1u << 20;
  static constexpr int64_t kept_s = 7 * 24 * 3600;
  using Transfer = std::array<uint8_t, 16>;

  struct Placed {
    uint64_t size_bytes = 0;
    ports::FileTime mtime;
    uint64_t inode = 0;
    friend bool operator==(const Placed&, const Placed&) = default;
  };
  struct File {
    Hash128 key;  // path_key of the final path
    uint64_t version = 0;
    Placed placed;
  };
  struct Found {
    Placed placed;
    int64_t transfer = 0;  // its number in the database
  };

  // `staging`, `path` and `vfs` as of Ledger::open.
  static std::unique_ptr<Deliveries> open(ports::FileSystem& files, int staging, const std::string& path, const char* vfs);
  ~Deliveries();
  Deliveries(const Deliveries&) = delete;
  Deliveries& operator=(const Deliveries&) = delete;

  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::optional<Found> find(const Hash128& key, uint64_t version);  // cheap while there is none
  // Durable when it returns. `now_s` by the file system's clock.
  void add(const Transfer& transfer, int64_t now_s, const std::vector<File>& files);
  void forget(const Transfer& transfer, const std::set<int64_t>& others);
  void expire(int64_t now_s);
  void abandon();                                             // as of the Ledger
  static void remove(ports::FileSystem& files, int staging);  // its files; it is closed, or was never open

 private:
  struct Impl;
  explicit Deliveries(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::recv
