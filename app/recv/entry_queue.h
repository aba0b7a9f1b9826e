// The entries segments of a session: they are judged one after the other, in the order of their
// sequence numbers, in one job at a time. Those that come ahead of their turn wait in memory of
// their own, because a buffer that is held could be the one that the missing segment needs.
// In: segments as they arrive, each once or several times. Out: EntriesHandler gets the verdicts in
// the order of the entries.
// Bounds: entries_held_bytes_max. Protocol thread; `judge` runs in a job.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "app/recv/entries.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "app/session/limits.h"
#include "app/session/open.h"
#include "app/session/segment.h"
#include "core/base/bytes.h"
#include "core/base/result.h"

namespace ccixfer::recv {

inline constexpr uint32_t entries_segment_bytes_max = session::entries_segment_bytes + session::segment_trailer_bytes;
inline constexpr uint64_t entries_held_bytes_max = session::entries_unanswered_bytes_max;  // a source never has more unanswered

struct JudgedSegment {
  bool is_damaged = false;
  Result<std::vector<Decision>> decisions{std::vector<Decision>{}};  // one for each entry
  std::string warning{};                                             // "": none
};

class EntriesHandler {
 public:
  virtual ~EntriesHandler() = default;
  virtual void on_decided(uint64_t first_index, std::vector<Decision> decisions) = 0;
};

class EntryQueue {
 public:
  // Judges one segment. If its data are sealed, they are opened in place first.
  using Judge = std::function<JudgedSegment(MutableBytes segment, const session::SegmentHeader& header, uint64_t first_index,
                                            bool may_be_sealed)>;
  EntryQueue(SessionJobs& jobs, Judge judge, EntriesHandler& handler, SessionHandler& session)
      : jobs_(jobs), judge_(std::move(judge)), handler_(handler), session_(session) {}
  EntryQueue(const EntryQueue&) = delete;
  EntryQueue& operator=(const EntryQueue&) = delete;

  // A segment with its trailer, of which only the trailer has been opened. Refuses the session
  // when it is beyond the bounds.
  void receive(Bytes segment, const session::SegmentHeader& header);
  // Before all others: what came with the Open, in place of the first segment.
  void receive_first(const session::FirstEntries& first);
  void turn();                                                       // judges the one that is due
  [[nodiscard]] uint64_t next_index() const { return next_index_; }  // of the first entry without a verdict
  [[nodiscard]] bool is_running() const { return is_running_; }

 private:
  struct Segment {
    std::vector<std::byte> bytes;
    session::SegmentHeader header;
    bool may_be_sealed = true;  // false: it came in a message, which was sealed as a whole
  };
  [[nodiscard]] bool is_here(uint64_t sequence) const;
  [[nodiscard]] bool has_room(uint64_t sequence, size_t bytes) const;
  void judged(const Segment& segment, JudgedSegment result);

  SessionJobs& jobs_;
  const Judge judge_;
  EntriesHandler& handler_;
  SessionHandler& session_;
  std::map<uint64_t, Segment> held_;  // by sequence number, from the one that is due
  uint64_t held_bytes_ = 0;
  uint64_t next_sequence_ = 0;  // of the segment that is due, or in its job
  uint64_t next_index_ = 0;
  bool is_running_ = false;
};

}  // namespace ccixfer::recv
