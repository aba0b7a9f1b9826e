// The timetable of --bwlimit, and the clock that follows it.
#include "app/main/rate_table.h"

#include <catch2/catch.hpp>
#include <string>

#include "app/main/rate_clock.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t gigabit = 125'000'000;

std::string complaint(const char* text) {
  const auto table = RateTable::parse(text);
  if (table) return "";
  CHECK(table.error().kind == ErrorKind::usage);
  return table.error().message;
}

}  // namespace

TEST_CASE("rate_table__one_rate__holds_always") {
  const RateTable table = RateTable::parse("1Gb/s").value();
  CHECK_FALSE(table.changes());
  for (const unsigned minute : {0u, 480u, minutes_a_day - 1}) CHECK(table.at(minute) == gigabit);
  CHECK(RateTable::parse("off").value().at(0) == 0);
  CHECK(RateTable().at(700) == 0);
}

TEST_CASE("rate_table__times_of_the_day__each_until_the_next_and_over_midnight") {
  const RateTable table = RateTable::parse("08:00,1Gb/s 12:30,8Mb/s 18:00,off").value();
  CHECK(table.changes());
  CHECK(table.at(0) == 0);
  CHECK(table.at(8 * 60 - 1) == 0);
  CHECK(table.at(8 * 60) == gigabit);
  CHECK(table.at(12 * 60 + 29) == gigabit);
  CHECK(table.at(12 * 60 + 30) == 1'000'000);
  CHECK(table.at(18 * 60) == 0);
  CHECK(table.at(minutes_a_day - 1) == 0);
  CHECK(RateTable::parse("08:00,1Gb/s").value().at(0) == gigabit);
  CHECK(RateTable::parse("  08:00,1Gb/s   18:00,off ").value().changes());
}

TEST_CASE("rate_table__what_is_no_timetable__is_refused_with_what_to_give") {
  for (const char* text : {" ", "08:00", "08:00,1Gb/s,off", "8:00,off", "24:00,off", "08:00,100", "08:00,0MB/s",
                           "08:00,off 08:00,off", "18:00,off 08:00,1Gb/s", "08:00,1Gb/s,18:00,off", ",", "1Gb/s 18:00,off"}) {
    INFO(text);
    CHECK(complaint(text).find("bad value: --bwlimit") == 0);
  }
  CHECK(complaint("18:00,off 08:00,1Gb/s").find("times of the day in order") != std::string::npos);
  CHECK(complaint("08:00,100").find("with its unit") != std::string::npos);
}

TEST_CASE("rate_clock__a_time_of_the_table_comes__the_rate_changes_within_the_minute") {
  WallTime wall{std::chrono::sys_days(std::chrono::year(2026) / 1 / 15)};
  wall += 12h - std::chrono::minutes(local_minute(wall + 12h).minute_of_day) + 7h + 58min + 30s;  // 07:58:30 here
  const std::function<WallTime()> read = [&] { return wall; };
  RateClock clock(RateTable::parse("08:00,1Gb/s 18:00,off").value(), read);
  Instant now = Instant{} + 5h;
  CHECK(clock.rate_bytes_per_s() == 0);
  CHECK_FALSE(clock.turn(now));
  CHECK(clock.next_deadline() == now + 30s);
  const auto pass = [&](std::chrono::seconds time) {
    now += time;
    wall += time;
  };
  pass(30s);  // 07:59
  CHECK_FALSE(clock.turn(now));
  pass(59s);
  CHECK_FALSE(clock.turn(now));
  pass(1s);
  CHECK(clock.turn(now));
  CHECK(clock.rate_bytes_per_s() == gigabit);
  CHECK(clock.next_deadline() == now + 60s);
  CHECK_FALSE(clock.turn(now));
  wall += 10h;  // an administrator sets the clock
  now += 60s;
  CHECK(clock.turn(now));
  CHECK(clock.rate_bytes_per_s() == 0);
}

TEST_CASE("rate_clock__one_rate__never_looks_again") {
  RateClock clock{RateTable(7)};
  CHECK(clock.rate_bytes_per_s() == 7);
  CHECK_FALSE(clock.turn(Instant{} + 1h));
  CHECK(clock.next_deadline() == never);
}
