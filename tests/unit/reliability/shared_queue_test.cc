// Whether others keep a queue standing, and the window meanwhile.
#include "core/reliability/shared_queue.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::SharedQueue;

namespace {

constexpr uint32_t datagram = 1000;
constexpr Duration path = 20ms;
const Instant start{std::chrono::seconds(100)};

}  // namespace

TEST_CASE("shared_queue__one_short_round_trip_in_a_round__no_queue_stood_through_it") {
  SharedQueue queue;
  CHECK_FALSE(queue.stood_all_round(path));  // nothing was measured
  for (const Duration latest : {40ms, 38ms, 39ms}) queue.round_trip(latest);
  CHECK(queue.stood_all_round(path));
  CHECK(queue.stood_all_cycle(path));
  queue.next_round();
  CHECK_FALSE(queue.stood_all_round(path));
  queue.round_trip(21ms);
  queue.round_trip(40ms);
  CHECK_FALSE(queue.stood_all_round(path));
  CHECK_FALSE(queue.stood_all_cycle(path));
  queue.next_round();
  queue.next_cycle();
  queue.round_trip(26ms);
  CHECK(queue.stood_all_round(path));
  CHECK(queue.stood_all_cycle(path));
}

TEST_CASE("shared_queue__a_difference_that_hosts_make__it_is_no_queue") {
  SharedQueue queue;
  queue.round_trip(2ms);
  CHECK_FALSE(queue.stood_all_round(100us));
  queue.next_round();
  queue.round_trip(3ms);
  CHECK(queue.stood_all_round(100us));
  queue.next_round();
  queue.round_trip(120ms);
  CHECK_FALSE(queue.stood_all_round(100ms));  // less than a quarter
}

TEST_CASE("shared_queue__losses__only_those_in_a_standing_queue_make_the_window_smaller") {
  SharedQueue queue;
  queue.begin(100'000, start);
  queue.round_trip(20ms);
  queue.round_ended(true, path, datagram, start);
  CHECK(queue.window_bytes() == 100'000);
  queue.next_round();
  queue.round_trip(30ms);
  queue.round_ended(false, path, datagram, start);
  CHECK(queue.window_bytes() == 100'000);
  queue.round_ended(true, path, datagram, start);
  CHECK(queue.window_bytes() == 70'000);
}

TEST_CASE("shared_queue__a_window_that_is_not_used__it_does_not_grow") {
  SharedQueue queue;
  queue.begin(100'000, start);
  for (int i = 1; i <= 100; ++i) queue.acked(10'000, 49'000, datagram, path, start + i * path);
  CHECK(queue.window_bytes() == 100'000);
  for (int i = 101; i <= 200; ++i) queue.acked(10'000, 50'000, datagram, path, start + i * path);
  CHECK(queue.window_bytes() > 100'000);
}

TEST_CASE("shared_queue__no_queue_for_sixty_round_trips_or_three_seconds__the_others_are_gone") {
  for (const Duration round_trip : {20ms, 200ms}) {
    CAPTURE(round_trip.count());
    SharedQueue queue;
    queue.begin(100'000, start);
    const Duration wait = round_trip == 20ms ? Duration(1240ms) : Duration(3s);
    CHECK_FALSE(queue.is_gone(round_trip, Duration{0}, start + wait));
    CHECK(queue.is_gone(round_trip, Duration{0}, start + wait + 1ms));
    queue.round_trip(round_trip * 105 / 100);
    queue.round_ended(false, round_trip, datagram, start + 1s);
    CHECK(queue.is_gone(round_trip, Duration{0}, start + wait + 1ms));
    queue.next_round();
    queue.round_trip(round_trip * 115 / 100);
    queue.round_ended(false, round_trip, datagram, start + 1s);
    CHECK_FALSE(queue.is_gone(round_trip, Duration{0}, start + wait + 1s));
    queue.go_on(start + 2s);
    CHECK_FALSE(queue.is_gone(round_trip, Duration{0}, start + wait + 2s));
    CHECK(queue.is_gone(round_trip, Duration{0}, start + wait + 2s + 1ms));
  }
}

// The first round in the phase ends after a round trip, and until then nobody has looked.
TEST_CASE("shared_queue__a_queue_much_longer_than_the_path__it_is_not_gone_before_a_round_has_ended") {
  SharedQueue queue;
  queue.begin(100'000, start);
  CHECK_FALSE(queue.is_gone(1ms, 100ms, start + 200ms));
  queue.round_trip(100ms);
  queue.round_ended(false, 1ms, datagram, start + 101ms);
  CHECK_FALSE(queue.is_gone(1ms, 100ms, start + 300ms));
  CHECK(queue.is_gone(1ms, 100ms, start + 364ms));
}

TEST_CASE("shared_queue__a_short_path__two_milliseconds_more_are_no_queue") {
  SharedQueue queue;
  queue.begin(100'000, start);
  queue.round_trip(2ms);
  queue.round_ended(false, 200us, datagram, start + 1s);
  CHECK(queue.is_gone(200us, 2ms, start + 100ms));
}

TEST_CASE("shared_queue__a_time_with_little_in_flight__says_whose_queue_it_was") {
  SharedQueue queue;
  const auto probe = [&queue](Duration least) {
    queue.next_cycle();
    queue.round_trip(least);
    return queue.was_own();
  };
  queue.begin(100'000, start);
  CHECK(probe(20ms));
  CHECK(probe(22ms));
  CHECK_FALSE(probe(40ms));
  CHECK_FALSE(probe(40ms));
  CHECK(queue.path() <= 22ms);
  queue.begin(100'000, start);  // it was left meanwhile: two are not three in a row
  CHECK_FALSE(probe(40ms));
  CHECK_FALSE(probe(40ms));
  CHECK(probe(40ms));  // the path is another one
  CHECK(queue.path() == 40ms);
  CHECK(probe(41ms));
}
