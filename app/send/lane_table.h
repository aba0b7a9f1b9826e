// What the source knows of each lane: where to put, the credit, and the next n. It chooses the lane for
// a segment: of those with credit that have room beside others (LanePace), the one with the fewest
// puts in the air. The numbers n of a lane
// session have no gap, because one is taken only when the link has accepted the put. A lane that dies
// takes its numbering with it; when it is up again, its LaneOpen starts a new lane session at n = 0.
// Bounds: lanes_max lanes. False: the peer's message makes no sense (no stripes, credit that falls).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "app/send/lane_pace.h"
#include "app/session/link.h"

namespace ccixfer::send {

class LaneTable {
 public:
  struct Lane {
    bool up = false;
    bool open = false;     // LaneOpen came
    bool stalled = false;  // the link takes no more just now
    session::LaneOpen where;
    uint64_t limit = 0;                // puts with n below it may go
    bool asks = false;                 // the destination wants to be asked for more
    std::optional<uint64_t> asked_at;  // it was, when the limit was that
    uint64_t next_n = 0;
    uint32_t in_air = 0;
    uint64_t in_air_bytes = 0;
    LanePace pace;
    [[nodiscard]] bool usable() const { return up && open && !stalled && next_n < limit; }
  };

  void up(session::LaneIndex lane);
  void down(session::LaneIndex lane);  // also: do not use it any more, although its last puts are still to be reported
  [[nodiscard]] bool opened(session::LaneIndex lane, const session::LaneOpen& where);
  [[nodiscard]] bool credit(session::LaneIndex lane, const session::Credit& credit);
  // A lane on which more is to be asked for, if there is one; it counts as asked then.
  [[nodiscard]] std::optional<session::LaneIndex> ask();
  [[nodiscard]] size_t asked() const;                                    // questions that have no answer yet
  void put_accepted(session::LaneIndex lane, uint64_t bytes = 0);        // takes the next n
  void put_accepted_again(session::LaneIndex lane, uint64_t bytes = 0);  // the same n once more
  void put_ended(session::LaneIndex lane, uint64_t bytes = 0);
  // One of the present lane session ended well: LanePace::ended.
  void put_took(session::LaneIndex lane, uint64_t carried_bytes, Duration took);
  void stall(session::LaneIndex lane);
  void unstall();  // once a turn
  // For a segment, when so much is ready, it included.
  [[nodiscard]] std::optional<session::LaneIndex> choose(uint64_t ready_bytes) const;
  [[nodiscard]] bool has_credit() const;       // some lane has
  [[nodiscard]] bool has_idle_credit() const;  // some lane with credit has nothing in the air
  [[nodiscard]] bool anything_in_air() const;
  [[nodiscard]] size_t live() const;
  [[nodiscard]] const Lane& at(session::LaneIndex lane) const { return lanes_[lane]; }
  [[nodiscard]] bool is_up(session::LaneIndex lane) const { return lane < lanes_.size() && lanes_[lane].up; }

 private:
  [[nodiscard]] double seconds_of_next(const Lane& lane) const;
  [[nodiscard]] double seconds_most(uint64_t ready_bytes) const;

  std::vector<Lane> lanes_;
  PutRoundTrip round_trip_;
};

}  // namespace ccixfer::send
