// Tells a slow disk from one that does not answer: it knows whether jobs are in the work pool, and
// since when none of them has made a step. A step is what a job does between two looks at it: the
// job ends, bytes are hashed or copied, a file is placed. A single system call is no step before it
// returns, however long it takes.
// In: one look in each turn. Out: what Liveness makes the last progress and the Alive of.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "app/session/messages.h"
#include "core/base/time.h"

namespace ccixfer::session {

inline constexpr Duration alive_interval =
    std::chrono::milliseconds(250);  // a role with jobs in the disk tells its peer so this often
// How many times --timeout a disk may take for one step before the transfer ends.
inline constexpr int disk_timeouts = 10;
// Such a step counts as progress for this long; then the timeout itself runs.
[[nodiscard]] inline Duration disk_patience(Duration timeout) {
  return timeout >= forever / disk_timeouts ? forever : timeout * (disk_timeouts - 1);
}

class DiskWatch {
 public:
  // Once in each turn. `jobs` are in the pool; `steps` were made since the role began.
  void look(Instant now, size_t jobs, uint64_t steps) {
    const bool waits = std::exchange(holds_back_, false) || jobs > 0;
    steps += looks_held_back_;
    moved_ = steps != steps_;
    if (waits && (!waiting_ || moved_)) since_ = now;
    waiting_ = waits;
    steps_ = steps;
    if (!waiting_) {
      alive_at_ = never;
    } else if (alive_at_ == never) {
      alive_at_ = after(now, alive_interval);
    }
  }
  // Before a look: a cap makes us keep the peer waiting. The peer is to hear that we live.
  void hold_back() {
    holds_back_ = true;
    ++looks_held_back_;
  }
  [[nodiscard]] bool waiting() const { return waiting_; }
  [[nodiscard]] bool moved() const { return moved_; }  // since the look before
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] Duration silent(Instant now) const { return waiting_ ? now - since_ : Duration(0); }
  // An Alive is due to the peer.
  [[nodiscard]] bool alive_due(Instant now) const { return now >= alive_at_; }
  void alive_said(Instant now) { alive_at_ = after(now, alive_interval); }
  [[nodiscard]] Instant next_deadline() const { return alive_at_; }

 private:
  bool waiting_ = false;
  bool moved_ = false;
  bool holds_back_ = false;
  uint64_t looks_held_back_ = 0;
  uint64_t steps_ = 0;
  Instant since_{};
  Instant alive_at_ = never;
};

// What the peer's Alive messages say of its disk.
class PeersDisk {
 public:
  // True: the disk made a step, or has not taken longer than `patience` for one yet.
  bool heard(const Alive& alive, Duration patience);
  void answered() { silent_ = Duration(0); }  // the peer said something else
  [[nodiscard]] Duration silent() const { return silent_; }

 private:
  uint64_t steps_ = 0;
  Duration silent_{0};
};

[[nodiscard]] uint64_t milliseconds_of(Duration duration);
// The words for a disk, ours or the peer's (`whose`), that has not answered for `patience` or
// longer. Empty: both have answered.
[[nodiscard]] std::string stuck_disk(Duration ours, Duration peers, Duration patience, std::string_view whose);

}  // namespace ccixfer::session
