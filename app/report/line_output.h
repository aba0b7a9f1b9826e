// Lines to a descriptor that may be read slowly: a reader that sleeps does not stop the transfer (and its keepalives). Text is
// written as far as the descriptor takes it without blocking; the rest waits in memory, at most line_bytes_queued_max, beyond which
// a line waits for the reader, but not for one that has been told to end. The descriptor is left in the mode that it has, blocking
// or not: it may be shared with others. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ccixfer::report {

inline constexpr size_t line_bytes_queued_max = 64u << 20;  // some 400,000 events; untouched as long as the reader keeps up

enum class AfterFailure : uint8_t {
  silence,  // nothing is written any more: its reader would miss a part
  next,     // what waited is lost, and later lines may find a disk that has room again: they begin on a line of their own
};

class LineOutput {
 public:
  // `told_to_end`: the process has got a signal that ends it; empty: it never does.
  explicit LineOutput(int fd, std::function<bool()> told_to_end = {}, AfterFailure after_failure = AfterFailure::silence);
  ~LineOutput();
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;
  void put(std::string_view text);   // as it is
  void line(std::string_view text);  // adds the newline
  void flush();                      // what can be written now
  // All of it; waits for the reader. Once the process is told to end, the rest goes when it has taken nothing for five seconds.
  void flush_all();
  [[nodiscard]] bool waiting() const { return !queue_.empty(); }
  // A line of so many bytes may have to wait for the reader.
  [[nodiscard]] bool is_full(size_t bytes = 0) const { return queue_.size() - written_ + bytes > line_bytes_queued_max; }
  [[nodiscard]] int error() const { return error_; }  // errno of the write that failed last; 0: none

 private:
  void append(std::string_view text);
  [[nodiscard]] bool write_some();  // true: something was
  [[nodiscard]] bool wait_and_write();
  [[nodiscard]] bool is_told_to_end() const { return told_to_end_ && told_to_end_(); }
  void give_up(int error);
  const int own_;  // -1: none
  const int fd_;
  const std::function<bool()> told_to_end_;
  const AfterFailure after_failure_;
  bool open_;  // false: nothing is written, or nothing any more
  int error_ = 0;
  bool is_cut_ = false;        // the descriptor got a part of a line, and the rest is lost
  bool is_line_ended_ = true;  // by what the descriptor got last
  std::string queue_;
  size_t written_ = 0;  // of queue_
};

}  // namespace ccixfer::report
