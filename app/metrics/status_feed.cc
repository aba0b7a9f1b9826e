#include "app/metrics/status_feed.h"

namespace ccixfer::metrics {

const std::string* StatusFeed::fresh(Clock::time_point now) const {
  return at_ && now < *at_ + snapshot_interval ? &json_ : nullptr;
}

std::optional<StatusFeed::Clock::time_point> StatusFeed::want(Clock::time_point now) {
  if (board_ == nullptr) return std::nullopt;
  if (fresh(now) != nullptr) return *at_ + snapshot_interval;
  board_->ask();
  return std::nullopt;
}

bool StatusFeed::take(Clock::time_point now) {
  if (board_ == nullptr) return false;
  auto words = board_->take();
  if (!words) return false;
  json_ = (*words)();
  at_ = now;
  return true;
}

}  // namespace ccixfer::metrics
