// The cost of an empty turn, turn by turn: which turns count.
#include "app/bench/measures.h"
#include "tests/unit/bench/rig.h"

using namespace ccixfer;
using namespace ccixfer::bench;

TEST_CASE("empty_turns__an_event_within_a_sample__that_sample_is_none_and_the_next_is_whole") {
  Pair pair(51, {.tests = "empty-turn", .count = "1", .connections = "1"});
  const Plan plan = make_plan({.tests = "empty-turn", .count = "1", .connections = "1"}).value();
  for (const bool with_event : {false, true}) {
    Channel channel{*pair.here.endpoint, plan, uri, {}, {}, 0, 0, {}, {}, {}, {}, {}, 0};
    const auto measure = make_empty_turn(channel);
    Instant now{};
    uint64_t turns = 0;
    const auto turn = [&] {
      now = after(now, std::chrono::microseconds(1));
      ++turns;
      measure->on_turn(now);
    };
    measure->begin(now);
    while (turns < 101) turn();
    if (with_event) {
      cci::Event event;
      event.type = cci::EventType::receive;
      measure->on_event(event, now);
      now = after(now, std::chrono::seconds(1));  // what it took to take it
    }
    while (!measure->finished() && turns < 1000) turn();
    CHECK(turns == (with_event ? 101u : 0u) + 1 + 256);  // the first after an event only begins one
    const std::vector<Row> rows = measure->take_rows();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].count == 256);
    CHECK(rows[0].latency.min == std::chrono::microseconds(1));
    CHECK(rows[0].latency.p99_9 == std::chrono::microseconds(1));
  }
}
