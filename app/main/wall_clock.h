// Times of day and dates as people give them to --stop-at and to the timetable of --bwlimit. Parsing is pure; what follows from a
// time is asked of the local time zone (TZ, else /etc/localtime). Errors: usage, with what to give instead.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::program {

using WallTime = std::chrono::sys_seconds;

inline constexpr unsigned minutes_a_day = 24 * 60;

[[nodiscard]] std::optional<unsigned> parse_minute_of_day(std::string_view text);  // "HH:MM"

// A date and time, or a time of day alone, which means the next one.
struct StopAt {
  struct Date {
    int year = 0, month = 0, day = 0;
  };
  std::string text;  // as it was given
  std::optional<Date> date;
  int second_of_day = 0;
  std::optional<int> offset_s;         // of the zone that was given, from UTC; none: local time
  std::optional<WallTime> fixed = {};  // worked out before, and may be past by now
};

// "HH:MM", or "YYYY-MM-DDTHH:MM[:SS][Z|+HH:MM|-HH:MM]", with a space for the T as well.
[[nodiscard]] Result<StopAt> parse_stop_at(std::string_view text);
// usage: it is not in the future, and was not fixed.
[[nodiscard]] Result<WallTime> time_of(const StopAt& stop, WallTime now);

// 0 to minutes_a_day - 1, and the seconds until the next minute begins, 1 to 60.
struct LocalMinute {
  unsigned minute_of_day = 0;
  std::chrono::seconds to_next{60};
};
[[nodiscard]] LocalMinute local_minute(WallTime time);

[[nodiscard]] WallTime wall_time_now();
// Before the process is confined and has threads: the zone is read now, and not again from files that may be out of reach.
void keep_time_zone();

}  // namespace ccixfer::program
