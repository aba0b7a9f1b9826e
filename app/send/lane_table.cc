#include "app/send/lane_table.h"

#include <algorithm>
#include <limits>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

using session::LaneIndex;

namespace {
constexpr double forever_seconds = std::numeric_limits<double>::infinity();
}

void LaneTable::up(LaneIndex lane) {
  CHECK(lane < session::lanes_max);
  if (lane >= lanes_.size()) lanes_.resize(size_t{lane} + 1);
  lanes_[lane] = Lane{};
  lanes_[lane].up = true;
}

void LaneTable::down(LaneIndex lane) {
  if (lane < lanes_.size()) lanes_[lane].up = false;
}

bool LaneTable::opened(LaneIndex lane, const session::LaneOpen& where) {
  if (!is_up(lane) || lanes_[lane].open) return !is_up(lane);  // of a lane that is gone already: nothing to say; twice: nonsense
  if (where.stripe_count == 0 || where.mailbox_base > ~uint64_t{0} - where.stripe_count) return false;
  lanes_[lane].open = true;
  lanes_[lane].where = where;
  return true;
}

bool LaneTable::credit(LaneIndex lane, const session::Credit& credit) {
  if (!is_up(lane)) return true;
  if (!lanes_[lane].open || credit.limit < lanes_[lane].limit) return false;
  lanes_[lane].limit = credit.limit;
  lanes_[lane].asks = credit.ask;
  return true;
}

std::optional<LaneIndex> LaneTable::ask() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.up || !lane.open || !lane.asks || lane.next_n < lane.limit || lane.asked_at == lane.limit) continue;
    lane.asked_at = lane.limit;
    return static_cast<LaneIndex>(i);
  }
  return std::nullopt;
}

size_t LaneTable::asked() const {
  return static_cast<size_t>(std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return lane.up && lane.open && lane.next_n == lane.limit && lane.asked_at == lane.limit;
  }));
}

void LaneTable::put_accepted(LaneIndex lane, uint64_t bytes) {
  ++lanes_[lane].next_n;
  put_accepted_again(lane, bytes);
}

void LaneTable::put_accepted_again(LaneIndex lane, uint64_t bytes) {
  ++lanes_[lane].in_air;
  lanes_[lane].in_air_bytes += bytes;
}

void LaneTable::put_ended(LaneIndex index, uint64_t bytes) {
  if (index >= lanes_.size()) return;
  Lane& lane = lanes_[index];
  if (lane.in_air > 0) --lane.in_air;
  lane.in_air_bytes -= std::min(lane.in_air_bytes, bytes);
  lane.stalled = false;
}

void LaneTable::put_took(LaneIndex lane, uint64_t carried_bytes, Duration took) {
  round_trip_.took(took);
  if (is_up(lane)) lanes_[lane].pace.ended(carried_bytes, took, round_trip_.least());
}

void LaneTable::stall(LaneIndex lane) { lanes_[lane].stalled = true; }

void LaneTable::unstall() {
  for (Lane& lane : lanes_) lane.stalled = false;
}

// When what is in the air on a lane has arrived, and a segment behind it; 0 where the lane's rate is not known.
double LaneTable::seconds_of_next(const Lane& lane) const {
  const double rate = lane.pace.bytes_per_s();
  return rate > 0 ? (static_cast<double>(lane.in_air_bytes) + double{session::piece_bytes}) / rate : 0;
}

// A slow lane takes none that comes sooner by waiting for a fast one. Towards the end of a transfer nothing is left behind it that
// would keep the others busy meanwhile.
double LaneTable::seconds_most(uint64_t ready_bytes) const {
  double rate = 0;
  uint64_t bytes = ready_bytes;
  double quickest = forever_seconds;
  for (const Lane& lane : lanes_) {
    if (!lane.usable()) continue;
    if (lane.pace.bytes_per_s() <= 0) return forever_seconds;
    rate += lane.pace.bytes_per_s();
    bytes += lane.in_air_bytes;
    quickest = std::min(quickest, seconds_of_next(lane));
  }
  return rate > 0 ? std::max(quickest, static_cast<double>(bytes) / rate) : forever_seconds;
}

std::optional<LaneIndex> LaneTable::choose(uint64_t ready_bytes) const {
  std::optional<LaneIndex> best;
  const bool has_others = live() > 1;
  const double most = has_others ? seconds_most(ready_bytes) : forever_seconds;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].usable()) continue;
    if (has_others && (!lanes_[i].pace.has_room(lanes_[i].in_air_bytes) || seconds_of_next(lanes_[i]) > most)) continue;
    if (!best || lanes_[i].in_air < lanes_[*best].in_air) best = static_cast<LaneIndex>(i);
  }
  return best;
}

bool LaneTable::has_credit() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.usable(); });
}

bool LaneTable::has_idle_credit() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.usable() && lane.in_air == 0; });
}

bool LaneTable::anything_in_air() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.in_air > 0; });
}

size_t LaneTable::live() const {
  return static_cast<size_t>(std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.up; }));
}

}  // namespace ccixfer::send
