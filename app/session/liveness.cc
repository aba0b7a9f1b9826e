#include "app/session/liveness.h"

#include <algorithm>
#include <utility>

namespace ccixfer::session {

void Liveness::look(Instant now, size_t jobs, uint64_t steps) {
  now_ = now;
  disk_.look(now, jobs, steps);
  if (std::exchange(progressed_, false) || disk_.moved()) last_progress_ = now;
  if (!disk_.waiting()) return;
  const Duration silent = disk_.silent(now);
  last_progress_ = std::max(last_progress_, after(now - silent, std::min(silent, patience_)));
}

std::optional<Alive> Liveness::take_alive(Instant now) {
  if (!disk_.alive_due(now)) return std::nullopt;
  disk_.alive_said(now);
  return Alive{disk_.steps(), milliseconds_of(disk_.silent(now))};
}

std::string Liveness::stuck_disk(std::string_view whose) const {
  return session::stuck_disk(disk_.silent(now_), peers_disk_.silent(), patience_, whose);
}

}  // namespace ccixfer::session
