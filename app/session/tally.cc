#include "app/session/tally.h"

#include <utility>

namespace ccixfer::session {

void add(Tally& sum, const Tally& more) {
  sum.files += more.files;
  sum.files_unchanged += more.files_unchanged;
  sum.files_failed += more.files_failed;
  sum.files_vanished += more.files_vanished;
  sum.attributes_refused += more.attributes_refused;
  sum.setid_refused += more.setid_refused;
  sum.unlisted_failed += more.unlisted_failed;
  sum.unlisted_vanished += more.unlisted_vanished;
  sum.bytes += more.bytes;
  sum.bytes_total += more.bytes_total;
  sum.total_known = more.total_known;
  sum.bytes_sent += more.bytes_sent;
  sum.segments_resent += more.segments_resent;
  sum.entries_answered += more.entries_answered;
  sum.deleted += more.deleted;
  sum.delete_failed += more.delete_failed;
  sum.delete_skipped += more.delete_skipped;
}

Tally continued(const Tally& earlier, const Tally& later) {
  const auto reached = [](const Tally& tally) { return std::pair(tally.ended(), tally.bytes); };
  Tally tally = later.over || reached(later) >= reached(earlier) ? later : earlier;
  tally.over = later.over;
  tally.helped = later.helped;
  tally.bytes_sent = earlier.bytes_sent + later.bytes_sent;
  tally.segments_resent = earlier.segments_resent + later.segments_resent;
  return tally;
}

}  // namespace ccixfer::session
