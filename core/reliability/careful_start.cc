#include "core/reliability/careful_start.h"

#include <algorithm>

namespace ccixfer::reliability {
namespace {

constexpr uint64_t share = 50;                                // percent of what is remembered
constexpr int64_t round_trip_least = 50;                      // percent of the remembered one: below, it is another path
constexpr int64_t round_trip_most = 150;                      // above, it is another path, or a queue stands there
constexpr uint64_t again_least = 90;                          // percent of the remembered rate: the path as it was
constexpr uint64_t again_most = 115;                          // above, it carries more than it did
constexpr uint64_t pace_of_search = 125;                      // percent of the remembered rate
constexpr int64_t queue_begins = 110;                         // percent of the shortest round trip
constexpr uint64_t path_bytes_per_s_max = uint64_t{1} << 40;  // times ten seconds it does not wrap

}  // namespace

void CarefulStart::recall(const KnownPath& path) {
  if (path.bytes_per_s == 0 || path.bytes_per_s > path_bytes_per_s_max) return;
  if (path.round_trip <= Duration{0} || path.round_trip > std::chrono::seconds(10)) return;
  path_ = path;
  stage_ = Stage::waiting;
}

void CarefulStart::round_trip(Duration latest, Duration least) {
  has_queue_ = latest > least / 100 * queue_begins;
  if (stage_ != Stage::waiting) return;
  has_round_trip_ = true;
  const int64_t percent = latest.count() / std::max<int64_t>(path_.round_trip.count() / 100, 1);
  if (percent < round_trip_least || percent > round_trip_most) stage_ = Stage::over;
}

bool CarefulStart::begins() {
  if (stage_ != Stage::waiting || !has_round_trip_) return false;
  stage_ = Stage::unproved;
  return true;
}

void CarefulStart::proved() {
  if (stage_ == Stage::unproved) stage_ = Stage::proved;
}

bool CarefulStart::is_found_again(uint64_t bytes_per_s) const {
  if (stage_ != Stage::proved || !has_queue_) return false;
  const uint64_t percent = bytes_per_s / std::max<uint64_t>(path_.bytes_per_s / 100, 1);
  return percent >= again_least && percent <= again_most;
}

uint64_t CarefulStart::pace_most(uint64_t bytes_per_s) const {
  const bool as_it_was = stage_ == Stage::proved && bytes_per_s / std::max<uint64_t>(path_.bytes_per_s / 100, 1) <= again_most;
  return as_it_was ? path_.bytes_per_s / 100 * pace_of_search : UINT64_MAX;
}

uint64_t CarefulStart::bytes_per_s() const { return path_.bytes_per_s / 100 * share; }

uint64_t CarefulStart::window_bytes() const {
  return bytes_per_s() * static_cast<uint64_t>(path_.round_trip.count() / 1000) / 1'000'000;
}

}  // namespace ccixfer::reliability
