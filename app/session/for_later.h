// A file that changed while it was read, and that the next session of the transfer sends: what the leader of a team says of it. It
// has no result in this session, and the receiver gives others in its place. On the wire: a FileEnd `changed` with the length 0,
// which has none otherwise.
#pragma once
#include "app/session/messages.h"

namespace ccixfer::session {

[[nodiscard]] inline FileEnd end_for_later(uint64_t index) {
  FileEnd end;
  end.index = index;
  end.outcome = SourceOutcome::changed;
  end.size_bytes = 0;
  return end;
}
[[nodiscard]] inline bool is_for_later(const FileEnd& end) { return end.outcome == SourceOutcome::changed && end.size_bytes == 0; }

}  // namespace ccixfer::session
