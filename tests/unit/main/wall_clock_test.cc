// Times of day and dates as people give them.
#include "app/main/wall_clock.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace ccixfer;
using namespace ccixfer::program;
using namespace std::chrono_literals;

namespace {

// Central Europe: an hour ahead of UTC, two in summer.
class Zone {
 public:
  explicit Zone(const char* zone) {
    const char* before = ::getenv("TZ");
    had_ = before != nullptr;
    if (had_) before_ = before;
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  ~Zone() {
    had_ ? ::setenv("TZ", before_.c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  bool had_ = false;
  std::string before_;
};
constexpr const char* central_europe = "CET-1CEST,M3.5.0,M10.5.0/3";

WallTime utc(int year, unsigned month, unsigned day, int hour, int minute, int second = 0) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

WallTime stop(const char* text, WallTime now) { return time_of(parse_stop_at(text).value(), now).value(); }

}  // namespace

TEST_CASE("wall_clock__a_time_of_day__is_the_next_one") {
  const Zone zone(central_europe);
  const WallTime now = utc(2026, 11, 25, 11, 30);  // 12:30 there
  CHECK(stop("12:31", now) == utc(2026, 11, 25, 11, 31));
  CHECK(stop("12:30", now) == utc(2026, 11, 26, 11, 30));
  CHECK(stop("06:00", now) == utc(2026, 11, 26, 5, 0));
  CHECK(stop("00:00", utc(2026, 12, 31, 22, 59, 59)) == utc(2026, 12, 31, 23, 0));
  CHECK(stop("06:00", utc(2026, 3, 28, 20, 0)) == utc(2026, 3, 29, 4, 0));  // the clocks change in that night
}

TEST_CASE("wall_clock__a_time_that_was_fixed__is_no_next_one_and_no_fault_when_it_is_past") {
  StopAt stop = *parse_stop_at("06:00");
  const WallTime six{std::chrono::hours(24 * 365 * 50 + 6)};
  stop.fixed = six;
  for (const int later : {-1, 0, 1}) CHECK(time_of(stop, six + std::chrono::seconds(later)) == six);
}

TEST_CASE("wall_clock__a_date_and_time__is_local_or_of_the_zone_that_is_given") {
  const Zone zone(central_europe);
  const WallTime now = utc(2026, 6, 1, 0, 0);
  CHECK(stop("2026-07-01T06:30", now) == utc(2026, 7, 1, 4, 30));
  CHECK(stop("2026-12-01 06:30:15", now) == utc(2026, 12, 1, 5, 30, 15));
  CHECK(stop("2026-07-01T06:30Z", now) == utc(2026, 7, 1, 6, 30));
  CHECK(stop("2026-07-01T06:30:00+05:30", now) == utc(2026, 7, 1, 1, 0));
  CHECK(stop("2026-07-01T06:30-03:00", now) == utc(2026, 7, 1, 9, 30));
  CHECK(stop("2028-02-29T00:00Z", now) == utc(2028, 2, 29, 0, 0));
  const auto past = time_of(parse_stop_at("2026-06-01T01:59").value(), now);
  REQUIRE_FALSE(past);
  CHECK(past.error().kind == ErrorKind::usage);
  CHECK(past.error().message == "bad value: --stop-at 2026-06-01T01:59: it is past: give a time to come");
}

TEST_CASE("wall_clock__what_is_no_time__is_refused") {
  for (const char* text : {"", "6:00", "24:00", "12:60", "12", "12:00:00", "12:00Z", "tomorrow", "2026-02-29T00:00",
                           "2026-13-01T00:00", "2026-1-1T00:00", "2026-01-01", "2026-01-01T", "2026-01-01T25:00",
                           "2026-01-01T00:00:60", "2026-01-01T00:00+0100", "2026-01-01T00:00Zx", "-1:00", "\x1b[2J"}) {
    INFO(text);
    const auto stop_at = parse_stop_at(text);
    REQUIRE_FALSE(stop_at);
    CHECK(stop_at.error().kind == ErrorKind::usage);
    CHECK(stop_at.error().message.find('\x1b') == std::string::npos);
  }
  CHECK(parse_minute_of_day("00:00") == 0u);
  CHECK(parse_minute_of_day("23:59") == 1439u);
  CHECK_FALSE(parse_minute_of_day("23:59:00"));
}

TEST_CASE("wall_clock__the_minute_of_the_day__is_the_local_one") {
  const Zone zone(central_europe);
  CHECK(local_minute(utc(2026, 1, 1, 0, 0)).minute_of_day == 60);
  CHECK(local_minute(utc(2026, 7, 1, 23, 0)).minute_of_day == 60);
  CHECK(local_minute(utc(2026, 1, 1, 0, 0)).to_next == 60s);
  CHECK(local_minute(utc(2026, 1, 1, 0, 0, 59)).to_next == 1s);
}
