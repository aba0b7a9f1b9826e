#include "app/send/lane_table.h"

#include <algorithm>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

using session::LaneIndex;

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
  if (is_up(lane)) lanes_[lane].pace.ended(carried_bytes, took);
}

void LaneTable::stall(LaneIndex lane) { lanes_[lane].stalled = true; }

void LaneTable::unstall() {
  for (Lane& lane : lanes_) lane.stalled = false;
}

std::optional<LaneIndex> LaneTable::choose() const {
  std::optional<LaneIndex> best;
  const bool has_others = live() > 1;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].usable() || (has_others && !lanes_[i].pace.has_room(lanes_[i].in_air_bytes))) continue;
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
