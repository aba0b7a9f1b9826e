#include "app/main/wall_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// `count` digits in front of the text, which go.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int> take_time(std::string_view& text, bool with_seconds) {
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  int second = 0;
  if (with_seconds && take(text, ':')) {
    const auto given = take_digits(text, 2);
    if (!given || *given > 59) return std::nullopt;
    second = *given;
  }
  return *hour * 3600 + *minute * 60 + second;
}

std::optional<StopAt::Date> take_date(std::string_view& text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return StopAt::Date{*year, *month, *day};
}

bool take_zone(std::string_view& text, std::optional<int>& offset_s) {
  if (text.empty()) return true;
  if (take(text, 'Z')) {
    offset_s = 0;
    return true;
  }
  const int sign = take(text, '+') ? 1 : take(text, '-') ? -1 : 0;
  const auto offset = sign == 0 ? std::nullopt : take_time(text, false);
  if (offset) offset_s = sign * *offset;
  return offset.has_value();
}

std::tm local(WallTime time) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

// Local time as a whole: a time that a change of the clocks leaves out is the one an hour on, as mktime(3) has it.
WallTime from_local(std::tm parts, int second_of_day) {
  parts.tm_hour = second_of_day / 3600;
  parts.tm_min = second_of_day / 60 % 60;
  parts.tm_sec = second_of_day % 60;
  parts.tm_isdst = -1;
  return WallTime(std::chrono::seconds(std::mktime(&parts)));
}

}  // namespace

std::optional<unsigned> parse_minute_of_day(std::string_view text) {
  const auto second = take_time(text, false);
  if (!second || !text.empty()) return std::nullopt;
  return static_cast<unsigned>(*second / 60);
}

Result<StopAt> parse_stop_at(std::string_view text) {
  StopAt stop;
  stop.text = text;
  std::string_view rest = text;
  bool good = true;
  if (text.find('-') == 4) {
    stop.date = take_date(rest);
    good = stop.date.has_value() && (take(rest, 'T') || take(rest, ' '));
  }
  const auto second = good ? take_time(rest, stop.date.has_value()) : std::nullopt;
  good = second && (stop.date ? take_zone(rest, stop.offset_s) : true) && rest.empty();
  if (!good) {
    return fail(ErrorKind::usage,
                fmt::format("bad value: --stop-at {}: give a time of day such as 06:30, or a date and time such as "
                            "2026-11-25T06:30",
                            printable(text)));
  }
  stop.second_of_day = *second;
  return stop;
}

Result<WallTime> time_of(const StopAt& stop, WallTime now) {
  if (stop.fixed) return *stop.fixed;
  WallTime time{};
  if (!stop.date) {
    std::tm today = local(now);
    time = from_local(today, stop.second_of_day);
    if (time <= now) {
      ++today.tm_mday;
      time = from_local(today, stop.second_of_day);
    }
    return time;
  }
  if (stop.offset_s) {
    const std::chrono::year_month_day date{std::chrono::year(stop.date->year),
                                           std::chrono::month(static_cast<unsigned>(stop.date->month)),
                                           std::chrono::day(static_cast<unsigned>(stop.date->day))};
    time = WallTime(std::chrono::sys_days(date)) + std::chrono::seconds(stop.second_of_day - *stop.offset_s);
  } else {
    std::tm parts{};
    parts.tm_year = stop.date->year - 1900;
    parts.tm_mon = stop.date->month - 1;
    parts.tm_mday = stop.date->day;
    time = from_local(parts, stop.second_of_day);
  }
  if (time <= now) {
    return fail(ErrorKind::usage, fmt::format("bad value: --stop-at {}: it is past: give a time to come", printable(stop.text)));
  }
  return time;
}

LocalMinute local_minute(WallTime time) {
  const std::tm parts = local(time);
  return {static_cast<unsigned>(parts.tm_hour * 60 + parts.tm_min), std::chrono::seconds(60 - std::min(parts.tm_sec, 59))};
}

WallTime wall_time_now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

void keep_time_zone() {
  static_cast<void>(::setenv("TZ", ":/etc/localtime", 0));
  ::tzset();
}

}  // namespace ccixfer::program
