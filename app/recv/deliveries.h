// Files that a transfer placed and whose stat cannot say so later: without times a new file's mtime is 'now'. Beside the source's
// version stands what was placed, so that the same transfer after a restart of either side, or a rerun of a sender that was killed,
// finds them and does not send them again. The rows of a transfer go when it ends well: the next run of the command sends anew, as
// cp does; else after kept_s. Losing them costs time, never truth.
// A row counts only for that version of the source, and as long as the file that was placed is there untouched: size, mtime, inode.
// A database of its own beside the ledger, whose lock guards it: it is opened after it and closed before it.
// Errors: none. A database that fails is given up with a warning, and nothing is remembered any more; a damaged one is begun anew.
// Bounded: what comes beyond files_max rows is not remembered. Thread-safe.
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
