// What a transfer moved and how its files ended, in one shape for the source, the destination and
// the commands.
// In: a machine counts into it. Out: the progress line, the JSON events, the last line and the exit
// code are made of it.
#pragma once
#include <cstdint>

namespace ccixfer::session {

struct Tally {
  // Each file counts once: files_vanished vanished or changed at the source, files_failed failed
  // for any other reason.
  uint64_t files = 0, files_unchanged = 0, files_failed = 0, files_vanished = 0;
  // Only a destination counts these apart; a source that could not list something counts it as a
  // file that failed or vanished.
  uint64_t attributes_refused = 0;  // files (delivered or unchanged) and directories whose file system refuses their mode or times
  uint64_t setid_refused = 0;       // without their set-ID bits, as of words_of_no_setid
  uint64_t unlisted_failed = 0, unlisted_vanished = 0;  // what the source could not even list
  // `bytes` is durable at the destination, of files that have not failed, and never more than
  // bytes_total. What earlier sessions of the transfer moved of the files that this session has
  // come to is counted in both.
  uint64_t bytes = 0;
  uint64_t bytes_total = 0;  // of the entries that are known so far
  bool total_known = false;  // bytes_total is that of the whole tree
  bool over = false;         // every entry of the tree has ended and is counted
  uint64_t bytes_sent = 0;   // payload that crossed the wire; what crossed it again counts again
  uint64_t segments_resent = 0;
  uint64_t entries_answered = 0;
  uint64_t deleted = 0, delete_failed = 0, delete_skipped = 0;  // --delete; skipped: beyond --max-delete
  bool helped = false;                                          // of a team's process that did not lead: what it sent itself

  // What did not arrive as it was asked for. Where one of the sums is not 0 the transfer ends with
  // an error.
  [[nodiscard]] uint64_t failed() const {
    return files_failed + attributes_refused + setid_refused + unlisted_failed + delete_failed;
  }
  [[nodiscard]] uint64_t vanished() const { return files_vanished + unlisted_vanished; }
  [[nodiscard]] uint64_t ended() const { return files + files_unchanged + failed() + vanished(); }
};

// Several transfers beside or after one another. The sum is never `over`: that is said of one
// transfer.
void add(Tally& sum, const Tally& more);

// One transfer over several sessions. Each session counts what it comes to, and with it what
// earlier sessions did of that (TransferRecord). So the later counts are the right ones as soon as
// they have come as far as the earlier ones, which stand until then. What crossed the wire adds up.
[[nodiscard]] Tally continued(const Tally& earlier, const Tally& later);

}  // namespace ccixfer::session
