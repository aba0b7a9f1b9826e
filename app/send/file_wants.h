// What the destination wants of the files that were announced.
#pragma once
#include <cstdint>

#include "app/send/entry_table.h"
#include "app/session/messages.h"
#include "core/base/result.h"

namespace ccixfer::send {

class FileWants {
 public:
  virtual ~FileWants() = default;
  // All of an announced file. Errors end the session.
  [[nodiscard]] virtual Result<void> want_whole(Entry& entry) = 0;
  // The pieces of an announced file that its LargeFile names; no LargeFile: none of them.
  virtual void want_pieces(Entry& entry) = 0;
  // The same, but each piece once `compare` has named it. No LargeFile: all of them. `leads`: others of a team send pieces of it
  // too, and this end tells of its holes, which nobody need send.
  virtual void want_compared(Entry& entry, bool leads) = 0;
  [[nodiscard]] virtual Result<void> compare(Entry& entry, const session::Compare& compare) = 0;
  // Pieces that no `compare` will name: somebody else has sent them. False: some of them were named, or are not wanted.
  [[nodiscard]] virtual bool is_elsewhere(Entry& entry, uint64_t first_piece, uint64_t count) = 0;
  // Pieces of a file that is wanted already, because they arrived damaged or were lost. False: too
  // many ranges.
  [[nodiscard]] virtual bool want_again(Entry& entry, uint64_t first_piece, uint64_t count) = 0;
  virtual void entry_ends(Entry& entry) = 0;  // before it leaves the table
};

}  // namespace ccixfer::send
