// What a session moved, and who is told of it while it moves.
#pragma once
#include <cstdint>
#include <string_view>

namespace ccixfer::send {

// The same shape at both ends feeds progress, JSON and the last line.
struct Totals {
  // Each file once: files_vanished vanished or changed here, files_failed failed for any other reason.
  uint64_t files = 0, files_unchanged = 0, files_failed = 0, files_vanished = 0;
  // Of the transfer: what earlier sessions of it moved of the files that this one has come to is counted in. `bytes` is durable at
  // the receiver, of files that have not failed, and at most bytes_total.
  uint64_t bytes = 0;
  uint64_t bytes_total = 0;  // known so far (walk); `walk_done` tells whether it is final
  bool walk_done = false;
  bool over = false;        // every entry has ended: the counts are those of the whole tree
  uint64_t bytes_sent = 0;  // payload put, resends counted
  uint64_t segments_resent = 0;
  uint64_t entries_answered = 0;
};

class SourceObserver {
 public:
  virtual ~SourceObserver() = default;
  virtual void on_file(std::string_view path, uint64_t bytes, std::string_view status /* ok unchanged failed */,
                       std::string_view reason) = 0;
  virtual void on_warning(std::string_view line) = 0;  // one line a failed source file
};

}  // namespace ccixfer::send
