// Pieces of files as they arrive: each is checked against what is known of its file, and written to
// its place in the staged file by a job that holds the buffer. The places of several pieces are
// written side by side.
// Protocol thread; `write` runs in a job.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "app/recv/file_handler.h"
#include "app/recv/inbox.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "app/session/segment.h"
#include "core/base/counters.h"

namespace ccixfer::recv {

inline constexpr uint64_t pieces_ahead_max = 1u << 16;  // of a file of unknown length

class PieceWriter {
 public:
  using Write = std::function<PieceWritten(const std::shared_ptr<StagedFile>& staged, MutableBytes segment,
                                           const session::SegmentHeader& header)>;
  PieceWriter(SessionJobs& jobs, Write write, Inbox& inbox, FileHandler& files, SessionHandler& session, Counters& counters)
      : jobs_(jobs), write_(std::move(write)), inbox_(inbox), files_(files), session_(session), counters_(counters) {}
  PieceWriter(const PieceWriter&) = delete;
  PieceWriter& operator=(const PieceWriter&) = delete;

  // A segment of which only the trailer has been opened. The entries before `entries_decided` have
  // their verdict.
  void receive(ReceivedSegment arrival, const session::SegmentHeader& header, uint64_t entries_decided);

 private:
  [[nodiscard]] bool is_wanted(const session::SegmentHeader& header, uint64_t entries_decided);
  void write(FileInWork& file, ReceivedSegment arrival, const session::SegmentHeader& header);
  void written(uint64_t index, uint64_t piece, uint64_t data_bytes, uint32_t losses, const PieceWritten& outcome);
  void not_written(FileInWork& file, uint64_t piece, const PieceWritten& outcome);

  SessionJobs& jobs_;
  const Write write_;
  Inbox& inbox_;
  FileHandler& files_;
  SessionHandler& session_;
  Counters& counters_;
};

}  // namespace ccixfer::recv
