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

void LaneTable::put_accepted(LaneIndex lane) {
  ++lanes_[lane].next_n;
  ++lanes_[lane].in_air;
}

void LaneTable::put_accepted_again(LaneIndex lane) { ++lanes_[lane].in_air; }

void LaneTable::put_ended(LaneIndex lane) {
  if (lane < lanes_.size() && lanes_[lane].in_air > 0) --lanes_[lane].in_air;
  if (lane < lanes_.size()) lanes_[lane].stalled = false;
}

void LaneTable::stall(LaneIndex lane) { lanes_[lane].stalled = true; }

void LaneTable::unstall() {
  for (Lane& lane : lanes_) lane.stalled = false;
}

std::optional<LaneIndex> LaneTable::choose() const {
  std::optional<LaneIndex> best;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].usable()) continue;
    if (!best || lanes_[i].in_air < lanes_[*best].in_air) best = static_cast<LaneIndex>(i);
  }
  return best;
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
