#include "app/main/lane_count.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::program {
namespace {

bool queue_stands(const ports::PathFigures& path) {
  constexpr double longer = 1.25;  // round trips are longer than the least by so much
  return std::chrono::duration<double>(path.round_trip) >= longer * std::chrono::duration<double>(path.round_trip_least);
}

constexpr double path_bytes_per_s = 1.25e9;      // 10 Gb/s: what a path is taken for, as nobody knows
constexpr double connection_window_bytes = 4e6;  // what Linux lets a connection's buffers grow to (net.ipv4.tcp_wmem)

constexpr int interval_round_trips = 4;
// A lane that is dialled needs three round trips until it moves bytes, and its window doubles some ten times.
constexpr int settle_round_trips = 14;
constexpr uint64_t losses_least = 2;      // in an interval: one may be a probe of the kernel's
constexpr double time_held_most = 0.1;    // of a lane's, by losses: each holds it for a round trip, as its window fills meanwhile
constexpr double still_growing = 1.1;     // of the interval before
constexpr double part_that_counts = 0.5;  // of what more lanes could have added

}  // namespace

uint16_t lanes_for(const std::vector<ports::HopInfo>& hops) {
  constexpr std::array own_windows{"udp", "eth", "verbs", "shm"};
  const auto has_own = [&](const ports::HopInfo& hop) {
    return std::find(own_windows.begin(), own_windows.end(), hop.transport) != own_windows.end();
  };
  if (std::all_of(hops.begin(), hops.end(), has_own)) return 1;
  const double in_flight_bytes = path_bytes_per_s * std::chrono::duration<double>(hops.front().round_trip).count();
  return static_cast<uint16_t>(
      std::clamp(std::ceil(2 * in_flight_bytes / connection_window_bytes), 1.0, double{lanes_chosen_most}));
}

LaneCount::LaneCount(uint16_t least, uint16_t most, Duration round_trip)
    : most_(most),
      round_trip_(round_trip),
      look_every_(std::max(lane_look_every_least, round_trip)),
      interval_(interval_round_trips * look_every_),
      lanes_(std::clamp<uint16_t>(lanes_first_most, least, most)) {
  CHECK(least >= 1 && least <= most);
  if (lanes_ == most_) next_look_ = never;
}

double LaneCount::losses_by_chance(const Seen& seen) const {
  if (!before_->path || !seen.path || seen.path->resent_packets < before_->path->resent_packets) return 0;
  const uint64_t lost = seen.path->resent_packets - before_->path->resent_packets;
  if (lost < losses_least || queue_stands(*seen.path)) return 0;
  return static_cast<double>(lost) * round_trip_ / (seen.at - before_->at);
}

void LaneCount::grow(uint16_t lanes, Instant now) {
  lanes_ = std::min(lanes, most_);
  before_.reset();
  rate_before_ = 0;
  next_look_ = lanes_ == most_ ? never : after(now, settle_round_trips * look_every_);
}

void LaneCount::judge_rate(double rate, const std::optional<ports::PathFigures>& path, Instant now) {
  const double before = std::exchange(rate_before_, rate);
  if (before <= 0 || rate > still_growing * before) return;
  if (trial_) {
    const double could_add = trial_->rate_before * (lanes_ - trial_->lanes_before) / trial_->lanes_before;
    if (rate < trial_->rate_before + part_that_counts * could_add) return;
  }
  // The path is full: more lanes would lengthen the queue, and lose what does not fit there.
  if (path && queue_stands(*path)) return;
  trial_ = Trial{lanes_, std::max(rate, before)};
  grow(static_cast<uint16_t>(lanes_ + std::max(1, lanes_ / 2)), now);
}

void LaneCount::look(Instant now, uint64_t moved_bytes, const std::optional<ports::PathFigures>& path) {
  if (now < next_look_) return;
  next_look_ = after(now, look_every_);
  const Seen seen{now, moved_bytes, path};
  if (!before_ || moved_bytes < before_->moved_bytes) {
    before_ = seen;
    return;
  }
  const double wanted = std::min(std::ceil(losses_by_chance(seen) / time_held_most), double{lanes_chosen_most});
  if (wanted > lanes_) return grow(static_cast<uint16_t>(wanted), now);
  if (now < after(before_->at, interval_)) return;
  const double rate =
      static_cast<double>(moved_bytes - before_->moved_bytes) / std::chrono::duration<double>(now - before_->at).count();
  before_ = seen;
  judge_rate(rate, path, now);
}

}  // namespace ccixfer::program
