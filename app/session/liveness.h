// Whether a session gets anywhere, as the program sees it that ends a session without progress:
// what the machine itself reports, what its jobs do in the disk, and what the peer says of its own
// disk.
// In: progress and Alive messages as they come, and a look at the jobs once a turn. Out: the
// instant of the last progress, which a slow disk moves on for as long as the patience with it
// lasts, and the Alive that the peer is to get. Pure; single-threaded.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "app/session/disk_watch.h"
#include "app/session/messages.h"
#include "core/base/time.h"

namespace ccixfer::session {

class Liveness {
 public:
  // `patience`: the longest that a disk, ours or the peer's, may take for one step and count as
  // progress.
  explicit Liveness(Duration patience) : patience_(patience) {}

  void start(Instant now) { now_ = last_progress_ = now; }
  void made_progress() { progressed_ = true; }
  void answered() { peers_disk_.answered(); }  // the peer said something other than Alive
  void heard(const Alive& alive) { progressed_ = peers_disk_.heard(alive, patience_) || progressed_; }
  // Before a look: a cap keeps the peer waiting.
  void hold_back() { disk_.hold_back(); }
  // Once a turn: how many jobs are in the work pool, and how many steps they have made since the
  // session began.
  void look(Instant now, size_t jobs, uint64_t steps);
  // Jobs are in the disk, and nothing else may tell the peer that we live: empty while it is not
  // due.
  [[nodiscard]] std::optional<Alive> take_alive(Instant now);
  [[nodiscard]] Instant next_deadline() const { return disk_.next_deadline(); }

  [[nodiscard]] Instant last_progress() const { return last_progress_; }
  // The words for a disk that has not answered for longer than the patience, ours or the peer's
  // (`whose`); empty: none.
  [[nodiscard]] std::string stuck_disk(std::string_view whose) const;

 private:
  const Duration patience_;
  DiskWatch disk_;
  PeersDisk peers_disk_;
  Instant now_{};
  Instant last_progress_{};
  bool progressed_ = false;  // since the last look
};

}  // namespace ccixfer::session
