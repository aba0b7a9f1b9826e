// What a session that deletes remembers of the source's tree, in bounded memory: which paths there are
// (PathSet), and which directories were listed (PathLog). What is too much goes into a file without a
// name in the staging directory; a dry run, which may write nothing, keeps it in memory.
// Not thread-safe, but not tied to a thread. Errors: where no file can be made or written, all of it
// stays in memory; what cannot be read back is told by the calls.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/recv/held.h"
#include "app/recv/opened_root.h"

namespace ccixfer::recv {

inline constexpr size_t path_set_run = 1u << 20;  // hashes of 8 bytes
inline constexpr size_t path_log_bytes_max = 4u << 20;

// Made when it is first needed, appended to, read anywhere.
class NamelessFile {
 public:
  explicit NamelessFile(OpenedRoot& root) : root_(root) {}
  [[nodiscard]] int64_t append(Bytes bytes);  // where it begins, or < 0: it is not there
  [[nodiscard]] bool read(uint64_t at, MutableBytes into) const;

 private:
  [[nodiscard]] bool open();
  OpenedRoot& root_;
  HeldFileRef file_;
  bool has_failed_ = false;
  uint64_t end_ = 0;
};

// Paths by a hash of 64 bits: two of one hash are taken for one, so one that was not added may be taken for one that was.
class PathSet {
 public:
  explicit PathSet(OpenedRoot& root, size_t run_max = path_set_run) : run_max_(run_max), file_(root) {}
  void add(std::string_view path);
  // After the last add(). True also when it cannot be told.
  [[nodiscard]] bool contains(std::string_view path);

 private:
  // Sorted hashes in the file, with the first one of each block.
  struct Run {
    uint64_t at = 0;
    std::vector<uint64_t> firsts;
    size_t count = 0;
  };
  void spill();
  [[nodiscard]] bool is_in(const Run& run, uint64_t hash) const;

  const size_t run_max_;
  NamelessFile file_;
  std::vector<uint64_t> hashes_;  // of the last run
  bool sorted_ = true;
  std::vector<Run> runs_;
};

// Paths in the order in which they were added.
class PathLog {
 public:
  explicit PathLog(OpenedRoot& root, size_t bytes_max = path_log_bytes_max) : bytes_max_(bytes_max), file_(root) {}
  void add(std::string_view path);
  // After the last add(). False: there are no more, or failed().
  [[nodiscard]] bool next(std::string& path);
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct Part {
    uint64_t at = 0;
    size_t bytes = 0;
  };
  const size_t bytes_max_;
  NamelessFile file_;
  std::string text_;  // each path with a NUL behind it
  std::vector<Part> parts_;
  size_t parts_read_ = 0;
  std::string reading_;
  size_t read_to_ = 0;
  bool text_taken_ = false;
  bool failed_ = false;
};

}  // namespace ccixfer::recv
