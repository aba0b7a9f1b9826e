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

TEST_CASE("source__a_lane_that_takes_no_put_any_more__is_closed_and_the_others_carry_on") {
  const TempDir dir;
  dir.file_of("t/large", uint64_t{21} << 20);
  Bench bench(options_of({dir.path("t")}), 16);
  bench.receiver.lane_up(1);
  const Status status = GENERATE(Status::disconnected, Status::no_buffers, Status::again);
  int refused = 0;
  bench.receiver.accept = [&](session::LaneIndex lane) {
    if (lane != 1 || (status != Status::disconnected && refused == 2)) return Status::success;
    ++refused;
    return status;
  };
  bench.start();
  for (int i = 0; i < 100000 && !bench.source->finished(); ++i) {
    const int before = refused;
    bench.step();
    // The lane is closed in the next turn, which nothing else need bring about.
    if (status == Status::disconnected && refused > before) CHECK(bench.source->next_deadline() <= bench.now);
  }
  REQUIRE(bench.source->finished());
  CHECK(bench.receiver.content("large") == pattern(uint64_t{21} << 20));
  // What passes is tried again.
  CHECK(refused == (status == Status::disconnected ? 1 : 2));
  CHECK(bench.receiver.closed ==
        (status == Status::disconnected ? std::vector<session::LaneIndex>{1} : std::vector<session::LaneIndex>{}));
}

TEST_CASE("source__files_that_are_hashed_first__are_read_once_for_it") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}, session::option_checksum));
  bench.receiver.credit_window = 0;
  int opens = 0;
  bench.files.hook = [&opens](std::string_view call, std::string_view name) {
    if (call == "open" && name == "a") ++opens;
    return 0;
  };
  bench.start();
  for (int i = 0; i < 20; ++i) {
    bench.source->turn(bench.now);  // and again before the job is back
    bench.step();
  }
  CHECK(opens == 1);
  bench.source->abort({ErrorKind::interrupted, "enough"});
}
