// What the stages that read files say of them, beside the segments that they fill.
#pragma once
#include <cstdint>

#include "app/send/entry_table.h"
#include "app/session/messages.h"

namespace ccixfer::send {

inline constexpr uint32_t segments_ahead_max = 4;  // read and waiting for a lane, besides two for each lane

class ReadHandler {
 public:
  virtual ~ReadHandler() = default;
  // The file cannot be sent as it was listed; entry.outcome says why. It is in the phase `refused`
  // now.
  virtual void on_refused(const Entry& entry) = 0;
  // Wanted pieces that are holes: nothing is read there, and no segment brings them.
  virtual void on_holes(session::Holes holes, uint64_t bytes) = 0;
  // All of a file that goes in pieces is in segments.
  virtual void on_file_end(const session::FileEnd& end) = 0;
  // The destination has that piece already.
  virtual void on_same(const Entry& entry, uint64_t piece) = 0;
  // So many bytes more of a file of unknown length were read.
  virtual void on_grown(Entry& entry, uint64_t bytes) = 0;
};

// What the readers need to know of the other stages in a turn.
struct ReadPace {
  size_t segments_ready = 0;   // of data, which wait for a lane
  size_t segments_ahead = 0;   // so many may wait, with those that are being read
  bool lane_is_idle = false;   // a lane has credit and nothing in the air
  bool all_is_wanted = false;  // every entry has its verdict
  bool keep_one = false;       // see BufferShare::may_lend
};

// Refuses the file: the destination is told, and the user.
inline void refuse(EntryTable& entries, Entry& entry, const ReadOutcome& outcome, ReadHandler& handler) {
  entry.outcome = outcome;
  entries.move(entry, EntryPhase::refused);
  handler.on_refused(entry);
}

}  // namespace ccixfer::send
