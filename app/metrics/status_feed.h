// The last snapshot in words, and when the protocol thread is asked for the next one: at most every snapshot_interval, and only
// while somebody wants one. The metrics' thread only.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "app/metrics/board.h"

namespace ccixfer::metrics {

inline constexpr std::chrono::seconds snapshot_interval{1};

class StatusFeed {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StatusFeed(Board* board) : board_(board) {}  // nullptr: there never is one

  // A snapshot that is younger than snapshot_interval; nullptr: not yet.
  [[nodiscard]] const std::string* fresh(Clock::time_point now) const;
  // Asks, if that is due. The moment when it will be; nothing: it is asked now, and news() is readable when it has answered.
  [[nodiscard]] std::optional<Clock::time_point> want(Clock::time_point now);
  [[nodiscard]] int news() const { return board_ != nullptr ? board_->news_handle() : -1; }
  [[nodiscard]] bool take(Clock::time_point now);  // true: fresh() is another one from now on

 private:
  Board* const board_;
  std::string json_;
  std::optional<Clock::time_point> at_;
};

}  // namespace ccixfer::metrics
