// What a process knows of paths.
#include "app/devices/path_table.h"

#include <catch2/catch.hpp>

namespace ccixfer::program {
namespace {

using namespace std::chrono_literals;

constexpr int64_t day_s = 24 * 3600;

TEST_CASE("path_table__a_host__is_known_for_two_days_and_the_later_word_counts") {
  int64_t now = 1'800'000'000;
  PathTable table([&now] { return now; });
  CHECK_FALSE(table.recall("10.0.0.2"));
  table.remember("10.0.0.2", {1000, 5ms});
  table.remember("10.0.0.2", {2000, 6ms});
  REQUIRE(table.recall("10.0.0.2"));
  CHECK(table.recall("10.0.0.2")->bytes_per_s == 2000);
  CHECK(table.recall("10.0.0.2")->round_trip == 6ms);
  CHECK_FALSE(table.recall("10.0.0.20"));
  now += 2 * day_s;
  CHECK(table.recall("10.0.0.2"));
  ++now;
  CHECK_FALSE(table.recall("10.0.0.2"));
  CHECK(table.text().empty());
  now -= 3 * day_s;  // the clock was set back by more than a little
  CHECK_FALSE(table.recall("10.0.0.2"));
}

TEST_CASE("path_table__text__comes_back_and_bad_lines_are_left_out") {
  PathTable table([] { return int64_t{1'800'000'000}; });
  table.read(
      "10.0.0.1 125000000 100200 1799999000\n"
      "fe80::1%eth0 9 1 1800000000\n"
      "10.0.0.1 1 1 1799998000\n"     // older
      "a 1 1 1799000000\n"            // too old
      "b 1 1 1800090000\n"            // of a day that is to come
      "c 1 0 1800000000\n"            // no round trip
      "d 1 99999999999 1800000000\n"  // a day long
      "e x 1 1800000000\n\n f 1 1 1800000000\ng 1 1\nh 1 1 1800000000 more\n"
      "i 1 1 18000000");  // torn
  CHECK(table.size() == 2);
  CHECK(table.text() == "10.0.0.1 125000000 100200 1799999000\nfe80::1%eth0 9 1 1800000000\n");
  REQUIRE(table.recall("10.0.0.1"));
  CHECK(table.recall("10.0.0.1")->round_trip == 100200us);
  table.remember("two words", {1, 1ms});
  table.remember("", {1, 1ms});
  table.remember(std::string(200, 'x'), {1, 1ms});
  CHECK(table.size() == 2);
}

TEST_CASE("path_table__more_hosts_than_it_keeps__the_oldest_go") {
  int64_t now = 1'800'000'000;
  PathTable table([&now] { return now; });
  for (size_t i = 0; i < path_table_hosts_max + 10; ++i, ++now) table.remember("host" + std::to_string(i), {1, 1ms});
  CHECK(table.size() == path_table_hosts_max);
  CHECK_FALSE(table.recall("host9"));
  CHECK(table.recall("host10"));
}

}  // namespace
}  // namespace ccixfer::program
