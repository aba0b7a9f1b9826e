// When a queue begins to stand.
#include "core/reliability/queue_onset.h"

#include <catch2/catch.hpp>

namespace ccixfer::reliability {
namespace {

using namespace std::chrono_literals;

// How much longer than the path's own a round trip must be.
Duration begins_at(Duration path) {
  for (Duration longer = 1ms; longer < 1s; longer += 1ms) {
    QueueOnset onset;
    for (uint32_t i = 0; i < QueueOnset::samples_wanted; ++i) onset.round_trip(path + longer, path);
    if (onset.stands()) return longer;
  }
  return forever;
}

TEST_CASE("queue_onset__a_queue__is_longer_by_a_share_of_the_path_within_bounds") {
  CHECK(begins_at(100us) == 5ms);  // more than four
  CHECK(begins_at(100ms) == 5ms);
  CHECK(begins_at(200ms) == 9ms);
  CHECK(begins_at(1s) == 17ms);
}

TEST_CASE("queue_onset__a_queue__makes_each_of_some_round_trips_longer") {
  QueueOnset onset;
  for (uint32_t i = 1; i < QueueOnset::samples_wanted; ++i) onset.round_trip(130ms, 100ms);
  CHECK_FALSE(onset.stands());
  onset.round_trip(104ms, 100ms);  // one that was not
  for (uint32_t i = 1; i < QueueOnset::samples_wanted; ++i) onset.round_trip(130ms, 100ms);
  CHECK_FALSE(onset.stands());
  onset.round_trip(130ms, 100ms);
  CHECK(onset.stands());
  onset.round_trip(130ms, 100ms);
  CHECK(onset.stands());
  onset.round_trip(100ms, 100ms);  // it is empty again
  CHECK_FALSE(onset.stands());
}

}  // namespace
}  // namespace ccixfer::reliability
