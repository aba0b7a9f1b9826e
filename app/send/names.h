// The names of one directory in byte order and in bounded memory; the directory is read once. One with
// more names than a list may hold is sorted as sort(1) does it: sorted lists ("runs") go into a spool,
// a file without a name, and are merged from there. Where there is no spool, the smallest names after
// the last one are read again and again: the result is the same, but the directory is read once for
// each list.
// Not thread-safe. Errors: -errno of the directory only; after an error of the spool it is not used.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports/file_system.h"

namespace ccixfer::send {

inline constexpr size_t spool_read_bytes = 32u << 10;  // of a run, at once
inline constexpr size_t spool_runs_max = 256;          // merged at once: 8 MiB of buffers

// Names one behind the other: one allocation for many.
class NameList {
 public:
  void clear();
  void add(std::string_view name);
  void sort();
  std::string keep_smallest(size_t count);  // of `count` > 0; the greatest of them
  [[nodiscard]] bool empty() const { return next_ >= spans_.size(); }
  [[nodiscard]] std::string_view take() { return at(spans_[next_++]); }  // not empty; the view lives until the next change
  [[nodiscard]] size_t count() const { return spans_.size(); }
  [[nodiscard]] size_t used_bytes() const { return text_.size() + spans_.size() * sizeof(Span); }
  [[nodiscard]] size_t memory_bytes() const { return text_.capacity() + spans_.capacity() * sizeof(Span); }

 private:
  struct Span {
    uint32_t at = 0;
    uint32_t bytes = 0;
  };
  [[nodiscard]] std::string_view at(const Span& span) const { return {text_.data() + span.at, span.bytes}; }
  std::string text_;
  std::vector<Span> spans_;
  size_t next_ = 0;
};

// The file that runs are written to, made when it is first needed. One for all directories of a walk.
class NameSpool {
 public:
  explicit NameSpool(std::string directory) : directory_(std::move(directory)) {}  // "": there is none
  [[nodiscard]] int64_t append(ports::FileSystem& files, std::string_view bytes);  // where it begins, or < 0
  [[nodiscard]] bool read(ports::FileSystem& files, uint64_t at, size_t bytes, std::string& into) const;
  void give_up_from(ports::FileSystem& files, uint64_t at);  // what stands there is of no use any more
  void close(ports::FileSystem& files);

 private:
  [[nodiscard]] bool open(ports::FileSystem& files);
  std::string directory_;
  int fd_ = -1;
  uint64_t end_ = 0;
};

class DirectoryNames {
 public:
  using PartRead = std::function<void()>;
  // The next name after those that were taken; "": there is none, or the directory cannot be read (`error` is -errno then). `fd` is
  // asked for when the directory has to be read, and `part_read` is called after each part of it: reading all may take long. The
  // view lives until the next call.
  [[nodiscard]] std::string_view next(
      ports::FileSystem& files, NameSpool& spool, size_t list_bytes_max, const std::function<int()>& fd, int& error,
      const PartRead& part_read = [] {});
  [[nodiscard]] bool grown() const { return grown_; }  // the last next() took memory
  [[nodiscard]] size_t memory_bytes() const;
  // Gives the memory back: what was not taken goes into the spool, or will be read again.
  void let_go(ports::FileSystem& files, NameSpool& spool);
  [[nodiscard]] uint64_t spooled_to() const;  // nothing of it stands in the spool from there on

 private:
  // [at, end) of the spool, of which `buffer` holds what comes next, read up to `taken`.
  struct Run {
    uint64_t at = 0;
    uint64_t end = 0;
    std::string buffer;
    size_t taken = 0;
    [[nodiscard]] bool over() const { return at + taken >= end; }
    void let_go();
  };
  [[nodiscard]] bool is_taken(std::string_view name) const { return !last_.empty() && name <= last_; }
  [[nodiscard]] int read(ports::FileSystem& files, NameSpool& spool, int fd, size_t list_bytes_max, const PartRead& part_read);
  [[nodiscard]] bool merge(ports::FileSystem& files, NameSpool& spool, size_t list_bytes_max);  // false: no names in the spool
  [[nodiscard]] bool merge_list(ports::FileSystem& files, const NameSpool& spool, size_t bytes_max);
  [[nodiscard]] int read_smallest(ports::FileSystem& files, int fd, size_t list_bytes_max, const PartRead& part_read);
  [[nodiscard]] bool spool_list(ports::FileSystem& files, NameSpool& spool);
  [[nodiscard]] static bool head(ports::FileSystem& files, const NameSpool& spool, Run& run, std::string_view& name);

  NameList list_;
  std::vector<Run> runs_;
  std::string last_;  // that was taken; "": none yet
  bool grown_ = false;
  bool more_ = true;  // names may exist that are neither in the list nor in runs
};

}  // namespace ccixfer::send
