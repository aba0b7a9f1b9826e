// Files that changed while they were read, in a session that another one follows: its walk lists them as they are then. So neither
// the destination nor the user hears how they ended, and the session ends when they are all that is left. The destination cannot be
// done before that, since it waits for these files. That of a team hears that they wait, so that it gives others in their place.
// In: files that were refused. Out: whether they wait, and how many they are at the end.
// Bound: waiting_max files; more of them are told at once and not tried again.
// Protocol thread.
#pragma once
#include <cstdint>
#include <unordered_set>

#include "app/send/entry_table.h"

namespace ccixfer::send {

class ChangedFiles {
 public:
  static constexpr uint32_t waiting_max = 1024;  // they hold places in the table of entries

  explicit ChangedFiles(bool tries_again) : tries_again_(tries_again) {}

  // The entry has come into the phase `refused`. True: it waits for the next session.
  [[nodiscard]] bool take(const Entry& entry) {
    const bool waits =
        tries_again_ && entry.outcome.outcome == session::SourceOutcome::changed && !entry.stream && waiting_.size() < waiting_max;
    if (waits) waiting_.insert(entry.index);
    return waits;
  }
  // To be asked when all is listed, nothing is being read and nothing waits to be said. How many files wait for the next session,
  // if they are all that is left; 0: something else is to come.
  [[nodiscard]] uint64_t left(EntryTable& entries) const {
    if (waiting_.empty()) return 0;
    uint64_t waiting = 0;
    bool is_rest_done = true;
    entries.for_each([&](const Entry& entry) {
      const bool waits = entry.phase == EntryPhase::refused && waiting_.contains(entry.index);
      if (waits) ++waiting;
      // A further name of a file ends with its first name. Any other file has to get its result in this session, as the next one
      // may not list it any more.
      is_rest_done = is_rest_done && (waits || entry.is_link);
    });
    return is_rest_done ? waiting : 0;
  }

 private:
  const bool tries_again_;
  std::unordered_set<uint64_t> waiting_;  // indices; some may have their result from the destination by now
};

}  // namespace ccixfer::send
