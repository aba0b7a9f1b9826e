// What a transfer waits for.
#include "app/session/bottleneck.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::session;
using namespace std::chrono_literals;

namespace {

SourceState busy(bool reads, bool ready, bool in_air, bool credit) { return {true, reads, ready, in_air, credit, false}; }

}  // namespace

TEST_CASE("bottleneck__of_a_source__by_what_keeps_the_next_segment") {
  CHECK(waits_for(busy(true, false, false, true)) == Bottleneck::source_disk);        // nothing is filled
  CHECK(waits_for(busy(true, true, true, false)) == Bottleneck::network);             // those before it are on their way
  CHECK(waits_for(busy(false, false, true, true)) == Bottleneck::network);            // no buffer for another
  CHECK(waits_for(busy(true, true, false, false)) == Bottleneck::destination_disk);   // all arrived, and there is no room
  CHECK(waits_for(busy(false, false, false, true)) == Bottleneck::destination_disk);  // only answers are missing
  CHECK(waits_for(busy(true, false, true, true)) == Bottleneck::none);                // both work
  SourceState capped = busy(true, true, false, true);
  capped.waits_for_rate = true;
  CHECK(waits_for(capped) == Bottleneck::rate_cap);
  CHECK(waits_for(SourceState{}) == Bottleneck::none);
}

TEST_CASE("bottleneck__of_a_destination__its_own_disk_or_what_it_cannot_see") {
  CHECK(waits_for(DestinationState{true, false, true, false}) == Bottleneck::destination_disk);
  CHECK(waits_for(DestinationState{true, true, false, false}) == Bottleneck::source_or_network);
  CHECK(waits_for(DestinationState{true, true, true, false}) == Bottleneck::none);
  CHECK(waits_for(DestinationState{true, false, false, true}) == Bottleneck::rate_cap);
  CHECK(waits_for(DestinationState{}) == Bottleneck::none);
}

TEST_CASE("bottleneck_watch__the_longest_wait_lately__older_ones_fade") {
  BottleneckWatch watch;
  Instant now = Instant{} + 24h;
  CHECK(watch.lately(now) == Bottleneck::none);
  watch.note(now, Bottleneck::source_disk);
  CHECK(watch.lately(now) == Bottleneck::none);
  CHECK(watch.lately(now + 1s) == Bottleneck::source_disk);
  for (int i = 0; i < 500; ++i) {  // now and then it reads, mostly it waits for the network
    watch.note(now, Bottleneck::source_disk);
    now += 3ms;
    watch.note(now, Bottleneck::network);
    now += 7ms;
  }
  CHECK(watch.lately(now) == Bottleneck::network);
  watch.note(now, Bottleneck::none);
  CHECK(watch.lately(now + 100ms) == Bottleneck::network);
  CHECK(watch.lately(now + 20s) == Bottleneck::none);
}

TEST_CASE("bottleneck_watch__what_is_waited_for_seldom__is_none") {
  BottleneckWatch watch;
  Instant now{};
  for (int i = 0; i < 1000; ++i) {
    watch.note(now, Bottleneck::destination_disk);
    now += 1ms;
    watch.note(now, Bottleneck::none);
    now += 9ms;
  }
  CHECK(watch.lately(now) == Bottleneck::none);
}
