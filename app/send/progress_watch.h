// When the session last got anywhere, and which disk keeps it waiting. The destination shows
// progress by what it says, our own work pool by the steps of its jobs.
// In: what the destination says, and one look at the work pool in each turn. Out: the instant of
// the last progress (for --timeout), the `Alive` that is due, and words for a disk that does not
// answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "app/session/disk_watch.h"
#include "app/session/messages.h"
#include "core/base/time.h"

namespace ccixfer::send {

class ProgressWatch {
 public:
  // `disk_patience`: the longest that a disk, ours or the peer's, may take for one step and count
  // as progress.
  explicit ProgressWatch(Duration disk_patience) : disk_patience_(disk_patience) {}

  void begin(Instant now) { last_progress_ = now; }
  void confirmed() { progressed_ = true; }  // the destination confirmed something
  void answered();                          // it said something else than that it lives
  void heard(const session::Alive& alive);
  // Once in each turn. `jobs` are in the work pool and made `steps` since the session began;
  // `waits_for_rate`: the cap alone keeps us from sending.
  void look(Instant now, size_t jobs, uint64_t steps, bool waits_for_rate);
  // What the destination is to hear now, because jobs are in the disk and nothing else tells it
  // that we live.
  [[nodiscard]] std::optional<session::Alive> take_alive(Instant now);
  [[nodiscard]] Instant next_deadline() const { return disk_.next_deadline(); }
  [[nodiscard]] Instant last_progress() const { return last_progress_; }
  [[nodiscard]] std::string stuck_disk(Instant now) const;  // empty: none

 private:
  const Duration disk_patience_;
  session::DiskWatch disk_;
  session::PeersDisk peers_disk_;
  bool progressed_ = false;  // since the last look
  Instant last_progress_{};
};

}  // namespace ccixfer::send
