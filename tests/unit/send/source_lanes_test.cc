// A source over several lanes: numbers of puts are dense on each, so the same number means something else on another.
#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

using namespace ccixfer;
using namespace ccixfer::send_test;

TEST_CASE("source__segments_damaged_on_one_of_three_lanes__those_of_that_lane_come_again") {
  const TempDir dir;
  dir.file_of("t/large", uint64_t{41} << 20);
  for (session::LaneIndex bad = 0; bad < 3; ++bad) {
    CAPTURE(bad);
    Bench bench(options_of({dir.path("t")}), 16);
    bench.receiver.lane_up(1);
    bench.receiver.lane_up(2);
    std::set<uint64_t> asked;
    bench.receiver.damaged = [&](const Put& put) {
      const bool of_all_lanes = put.header.kind == session::SegmentKind::piece && put.header.n > 0;
      return put.lane == bad && of_all_lanes && asked.size() < 2 && asked.insert(put.header.n).second;
    };
    bench.run();
    CHECK(asked.size() == 2);
    CHECK(bench.receiver.by_path("large")->pieces.size() == 11);
    CHECK(bench.receiver.content("large") == pattern(uint64_t{41} << 20));
  }
}

TEST_CASE("source__buffers_go_by_turns__asks_once_for_each_segment_that_is_ready") {
  const TempDir dir;
  dir.file_of("t/large", uint64_t{21} << 20);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.credit_window = 0;
  bench.receiver.by_turns = true;
  bench.start();
  const auto& asks = bench.receiver.asks;
  size_t granted = 0;
  for (int i = 0; i < 10000 && !bench.source->finished(); ++i) {
    bench.step();
    REQUIRE(asks.size() <= granted + 1);  // nothing is asked twice
    if (asks.size() == granted || i % 7 != 0) continue;
    CHECK(asks.back().second.limit == granted);
    bench.receiver.grant(0, ++granted);
  }
  REQUIRE(bench.source->finished());
  CHECK(bench.receiver.content("large") == pattern(uint64_t{21} << 20));
  CHECK(granted == bench.receiver.puts.size());  // and nothing for nothing
}
