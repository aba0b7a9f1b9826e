// Figures of a clock that does not tick between two looks.
#include "tests/unit/bench/rig.h"

using namespace ccixfer;
using namespace ccixfer::bench;

TEST_CASE("bench__a_clock_that_stands__no_figure_that_is_no_number") {
  Pair pair(41, {.tests = "completion,message-latency", .sizes = "4096", .count = "5"});
  pair.here.work = [&](Instant) {
    pair.asker.turn(Instant{std::chrono::seconds(1)});
    while (auto row = pair.asker.next_row()) pair.rows.push_back(*row);
  };
  REQUIRE(pair.run() == sim::RunEnd::reached);
  REQUIRE(pair.asker.error().kind == ErrorKind::ok);
  for (const char* test : {"completion-put", "completion-message", "completion-exchange"}) {
    INFO(test);
    const Row& row = pair.row(test);
    CHECK(row.latency.p50 == Duration{0});
    CHECK(row.took == Duration{0});
    CHECK(row.reduction == 0);
  }
}
