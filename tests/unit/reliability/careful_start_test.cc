// A start on a path that an earlier connection knew.
#include "core/reliability/careful_start.h"

#include <catch2/catch.hpp>

#include "core/reliability/bbr.h"
#include "tests/unit/reliability/bottleneck.h"
#include "tests/unit/reliability/cubic.h"

namespace ccixfer::reliability {
namespace {

using namespace std::chrono_literals;
using testing::Bottleneck;
using testing::BottleneckOptions;
using testing::Cubic;

constexpr uint64_t gigabit = 125'000'000;

BottleneckOptions far(uint64_t rate) {
  BottleneckOptions options;
  options.rate = rate;
  options.round_trip = 100ms;
  return options;
}

std::unique_ptr<CongestionControl> bbr(uint64_t known_bytes_per_s) {
  auto control = std::make_unique<Bbr>(Bottleneck::datagram, 1);
  if (known_bytes_per_s > 0) control->recall({known_bytes_per_s, 100ms});
  return control;
}

// What is delivered in the first second, as a share of what the path carries in it.
double first_second(const BottleneckOptions& options, uint64_t known_bytes_per_s) {
  Bottleneck path(options);
  const size_t flow = path.add(bbr(known_bytes_per_s));
  path.run(1s);
  return static_cast<double>(path.delivered_bytes(flow)) / static_cast<double>(options.rate);
}

TEST_CASE("careful_start__a_path_as_it_was__half_of_what_it_carried_may_fly_once_a_packet_came_through") {
  CarefulStart start;
  CHECK_FALSE(start.begins());  // nothing is known
  start.recall({gigabit, 100ms});
  CHECK_FALSE(start.begins());  // nor is it the same path
  start.round_trip(101ms, 101ms);
  CHECK_FALSE(start.is_unproved());
  CHECK(start.begins());
  CHECK(start.is_unproved());
  CHECK(start.window_bytes() == gigabit / 20);
  CHECK(start.bytes_per_s() == gigabit / 2);
  CHECK_FALSE(start.begins());  // once
  CHECK_FALSE(start.is_found_again(gigabit));
  start.proved();
  CHECK_FALSE(start.is_unproved());
  CHECK_FALSE(start.begins());
  CHECK_FALSE(start.is_found_again(gigabit));  // no queue shows that this is all
  start.round_trip(112ms, 101ms);
  CHECK(start.is_found_again(gigabit));
  CHECK(start.is_found_again(gigabit / 100 * 92));
  CHECK_FALSE(start.is_found_again(gigabit / 100 * 89));
  CHECK_FALSE(start.is_found_again(gigabit / 100 * 117));  // there may be more still
  start.give_up();
  CHECK_FALSE(start.is_found_again(gigabit));
}

TEST_CASE("careful_start__another_round_trip_or_a_loss__nothing_is_made_of_what_was_known") {
  for (const Duration round_trip : {Duration(49ms), Duration(152ms), Duration(10s), Duration(0)}) {
    CarefulStart start;
    start.recall({gigabit, 100ms});
    start.round_trip(100ms, 100ms);
    start.round_trip(round_trip, 100ms);
    CHECK_FALSE(start.begins());
  }
  CarefulStart lossy;
  lossy.recall({gigabit, 100ms});
  lossy.round_trip(100ms, 100ms);
  lossy.lost();
  CHECK_FALSE(lossy.begins());
}

TEST_CASE("careful_start__what_cannot_be__is_not_believed") {
  for (const KnownPath& path : {KnownPath{0, 100ms}, KnownPath{~uint64_t{0}, 100ms}, KnownPath{gigabit, Duration(0)},
                                KnownPath{gigabit, Duration(-1)}, KnownPath{gigabit, forever}}) {
    CarefulStart start;
    start.recall(path);
    start.round_trip(100ms, 100ms);
    CHECK_FALSE(start.begins());
  }
}

TEST_CASE("careful_start__a_path_that_proved_as_it_was__the_pace_is_a_quarter_more_than_remembered") {
  CarefulStart start;
  CHECK(start.pace_most(gigabit) == UINT64_MAX);
  start.recall({gigabit, 100ms});
  start.round_trip(100ms, 100ms);
  REQUIRE(start.begins());
  CHECK(start.pace_most(gigabit / 2) == UINT64_MAX);  // nothing is proved
  start.proved();
  CHECK(start.pace_most(gigabit / 2) == gigabit / 4 * 5);
  CHECK(start.pace_most(gigabit / 100 * 115) == gigabit / 4 * 5);
  CHECK(start.pace_most(gigabit / 100 * 116) == UINT64_MAX);  // it carries more now
}

TEST_CASE("bbr__a_path_that_was_known__is_full_three_round_trips_earlier") {
  CHECK(first_second(far(gigabit), 0) < 0.4);
  CHECK(first_second(far(gigabit), gigabit) > 0.65);
  CHECK(first_second(far(gigabit), 10 * gigabit) > 0.65);  // it carried more once
}

TEST_CASE("bbr__a_path_as_it_was_known__is_not_filled_beyond_that") {
  const auto dropped = [](uint64_t known) {
    Bottleneck path(far(gigabit));
    path.add(bbr(known));
    path.run(2s);
    return path.dropped();
  };
  CHECK(dropped(gigabit) == 0);
  CHECK(dropped(0) == 0);  // nor is that of one that nobody knew
}

TEST_CASE("bbr__a_path_that_carries_more_than_it_did__is_used_as_soon_as_without_knowing") {
  Bottleneck path(far(gigabit));
  const size_t flow = path.add(bbr(gigabit / 10));
  Bottleneck plain(far(gigabit));
  const size_t plain_flow = plain.add(bbr(0));
  path.run(2s);
  plain.run(2s);
  CHECK(path.delivered_bytes(flow) * 10 > plain.delivered_bytes(plain_flow) * 9);
}

TEST_CASE("bbr__a_path_that_carries_less_than_it_did__is_found_out_by_the_first_flight") {
  for (const uint64_t rate : {gigabit / 2, gigabit / 10, gigabit / 100}) {
    INFO(rate);
    CHECK(first_second(far(rate), gigabit) > first_second(far(rate), 0) * 0.9);
    Bottleneck path(far(rate));
    const size_t flow = path.add(bbr(gigabit));
    path.run(3s);
    const uint64_t dropped = path.dropped();
    const uint64_t delivered = path.delivered_bytes(flow);
    path.run(10s);
    CHECK(static_cast<double>(path.delivered_bytes(flow) - delivered) > static_cast<double>(rate) * 10 * 0.9);
    CHECK((path.dropped() - dropped) * Bottleneck::datagram * 100 < path.delivered_bytes(flow) - delivered);
  }
}

TEST_CASE("bbr__others_have_the_path_that_was_known__they_keep_what_they_would_have") {
  const auto rival_has = [](uint64_t known) {
    Bottleneck path(far(gigabit / 10));
    const size_t rival = path.add(std::make_unique<Cubic>(Bottleneck::datagram));
    path.run(30s);
    const uint64_t before = path.delivered_bytes(rival);
    path.add(bbr(known));
    path.run(10s);
    return static_cast<double>(path.delivered_bytes(rival) - before) / 1e6;
  };
  CHECK(rival_has(gigabit / 10) > rival_has(0) * 0.8);
}

TEST_CASE("bbr__what_it_learned__is_the_path_once_it_was_full") {
  Bottleneck path(far(gigabit));
  const size_t flow = path.add(bbr(0));
  path.run(300ms);
  CHECK_FALSE(path.control(flow).learned());
  path.run(3s);
  const std::optional<KnownPath> learned = path.control(flow).learned();
  REQUIRE(learned);
  CHECK(learned->bytes_per_s > gigabit / 10 * 9);
  CHECK(learned->bytes_per_s < gigabit / 10 * 11);
  CHECK(learned->round_trip >= 100ms);
  CHECK(learned->round_trip < 110ms);
}

}  // namespace
}  // namespace ccixfer::reliability
