// What those who write, sync and stage files tell of one file; FilesInWork decides what it means
// for the file. After each call that may end a file, a reference to it is not to be used any more.
#pragma once
#include <cstdint>
#include <vector>

#include "app/recv/commit.h"
#include "app/recv/file_in_work.h"

namespace ccixfer::recv {

class FileHandler {
 public:
  virtual ~FileHandler() = default;
  [[nodiscard]] virtual FileInWork* find(uint64_t index) = 0;  // nullptr: it has no verdict yet, or has ended
  // The pieces of the file, which has none until the first one arrives.
  [[nodiscard]] virtual FilePieces& pieces_of(FileInWork& file) = 0;
  virtual void on_written(FileInWork& file, uint64_t bytes) = 0;  // a piece: it waits for a sync
  virtual void on_durable(FileInWork& file, uint64_t bytes) = 0;  // pieces, with their rows in the ledger
  virtual void on_staged(FileInWork& file, CommitItem item) = 0;  // all of it, out of a pack
  virtual void on_failed(FileInWork& file, FileFailure why) = 0;  // may end it
  // A write or a sync failed: what was lost is asked for again, or the file fails. May end it.
  virtual void on_io_failed(FileInWork& file, int error_number, const std::vector<uint64_t>& lost_pieces) = 0;
  // The disk has something else than what was written there: it is asked for again, or the session ends, when it is not the first
  // time. Resend::whole: a file of a pack.
  virtual void on_damaged_at_rest(FileInWork& file, const std::vector<uint64_t>& pieces) = 0;
  virtual void on_job_ended(uint64_t index) = 0;  // may end the file, if it has not ended yet
};

}  // namespace ccixfer::recv
