#include "app/send/progress_watch.h"

#include <algorithm>

namespace ccixfer::send {

void ProgressWatch::answered() {
  peers_disk_.answered();
  confirmed();
}

void ProgressWatch::heard(const session::Alive& alive) {
  if (peers_disk_.heard(alive, disk_patience_)) confirmed();
}

void ProgressWatch::look(Instant now, size_t jobs, uint64_t steps, bool waits_for_rate) {
  if (waits_for_rate) disk_.hold_back();
  disk_.look(now, jobs, steps);
  if (progressed_ || disk_.moved()) last_progress_ = now;
  progressed_ = false;
  const Duration silent = disk_.silent(now);
  if (disk_.waiting()) last_progress_ = std::max(last_progress_, after(now - silent, std::min(silent, disk_patience_)));
}

std::optional<session::Alive> ProgressWatch::take_alive(Instant now) {
  if (!disk_.alive_due(now)) return std::nullopt;
  disk_.alive_said(now);
  return session::Alive{disk_.steps(), session::milliseconds_of(disk_.silent(now))};
}

std::string ProgressWatch::stuck_disk(Instant now) const {
  return session::stuck_disk(disk_.silent(now), peers_disk_.silent(), disk_patience_, "the receiver's");
}

}  // namespace ccixfer::send
