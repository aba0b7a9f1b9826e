// Lines to a descriptor that may be read slowly: a reader that sleeps does not stop the transfer (and its keepalives). Lines are
// written as far as the descriptor takes them without blocking; the rest waits in memory, at most event_bytes_queued_max, beyond
// which a line blocks. The descriptor is left in blocking mode: it may be shared with others. Not thread-safe.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ccixfer::report {

inline constexpr size_t event_bytes_queued_max = 64u << 20;  // some 400,000 events; untouched as long as the reader keeps up

class EventOutput {
 public:
  explicit EventOutput(int fd) : fd_(fd) {}
  void line(std::string_view text);  // adds the newline
  void flush();                      // what can be written now
  void flush_all();                  // all of it; blocks
  [[nodiscard]] bool waiting() const { return !queue_.empty(); }
  [[nodiscard]] int error() const { return error_; }  // errno of the write that failed, after which nothing is written; 0: none

 private:
  void write_some(bool blocking);
  int fd_;
  bool open_ = true;  // false: nobody reads it any more, or it is full
  int error_ = 0;
  std::string queue_;
  size_t written_ = 0;  // of queue_
};

}  // namespace ccixfer::report
