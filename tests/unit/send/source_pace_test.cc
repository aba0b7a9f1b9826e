// When a source reads and puts: what waits for more of its kind, how much it holds, and when it wants to be turned again.
#include <algorithm>
#include <catch2/catch.hpp>

#include "app/send/walk.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using session::SegmentKind;

constexpr uint64_t mib = 1u << 20;

// Files are small and never opened before they are wanted and due, so that each open of one is a read of it.
size_t count_opens(Bench& bench, const std::string& prefix, size_t& opens) {
  bench.files.hook = [&opens, prefix](std::string_view call, std::string_view name) {
    if (call == "open" && name.starts_with(prefix)) ++opens;
    return 0;
  };
  return opens;
}

// An answer by hand, for all of a tree "t" whose entries are the directory, its files and its leave.
void entries_placed(Bench& bench, uint64_t count) {
  bench.receiver.answering = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.outstanding == count && bench.receiver.in_air() == 0; });
}

void steps(Bench& bench, int count) {
  for (int i = 0; i < count; ++i) bench.step();
}

TEST_CASE("source__files_that_ended_before_they_were_read__do_not_fill_a_pack") {
  const TempDir dir;
  for (int i = 0; i < 5; ++i) dir.file_of("t/f" + std::to_string(i), 3 * mib / 2);
  Bench bench(options_of({dir.path("t")}));
  size_t opens = 0;
  count_opens(bench, "f", opens);
  entries_placed(bench, 7);
  bench.receiver.lane_down(0);  // nothing idles, so that files wait for more of them
  bench.receiver.say(session::Answer{0, {{1, Verdict::done}, {2, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens == 0);
  bench.receiver.say(session::FileResults{{{1, ErrorKind::no_space, 0}, {2, ErrorKind::no_space, 0}}});
  bench.receiver.say(session::Answer{3, {{2, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens == 0);
  CHECK(bench.tally().files_failed == 2);
  bench.receiver.say(session::Answer{5, {{1, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens == 2);  // it is full, and the third waits
}

TEST_CASE("source__data_waits_for_the_rate__small_files_gather_behind_it") {
  const TempDir dir;
  for (int i = 0; i < 5; ++i) dir.file("t/f" + std::to_string(i), "content");
  send::SourceOptions options = options_of({dir.path("t")});
  options.rate_bytes_per_s = 1000;
  Bench bench(options);
  size_t opens = 0;
  count_opens(bench, "f", opens);
  entries_placed(bench, 7);
  for (uint64_t index = 1; index < 6; ++index) bench.receiver.entries[index].entry.size_bytes = 7;
  bench.receiver.say(session::Answer{0, {{1, Verdict::done}, {1, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens == 1);
  CHECK(bench.receiver.count(SegmentKind::pack) == 0);  // it waits for the rate
  bench.receiver.say(session::Answer{2, {{3, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens == 1);
  CHECK(bench.receiver.count(SegmentKind::pack) == 0);
  bench.run_until([&] { return bench.receiver.count(SegmentKind::pack) == 1; });
  steps(bench, 5);
  CHECK(opens == 4);
}

TEST_CASE("source__rate_cap__wants_to_be_turned_when_the_next_may_go") {
  const TempDir dir;
  dir.file_of("t/large", 9 * mib);
  dir.file("t/small", "S");
  send::SourceOptions options = options_of({dir.path("t")});
  options.rate_bytes_per_s = mib;
  Bench bench(options);
  bench.start();
  for (int i = 0; i < 1000 && !bench.source->finished(); ++i) {
    bench.work.reap();
    bench.receiver.turn();
    bench.source->turn(bench.now);
    if (bench.work.in_flight() > 0 || bench.receiver.in_air() > 0 || bench.source->finished()) continue;
    const Instant at = bench.source->next_deadline();
    REQUIRE(at < bench.now + std::chrono::seconds(10));  // nobody else will wake it
    bench.now = std::max(bench.now, at);
  }
  CHECK(bench.source->finished());
  CHECK(bench.receiver.content("large") == pattern(9 * mib));
}

TEST_CASE("source__pool_of_two_or_three__entries_take_one_buffer_at_a_time") {
  const TempDir dir;
  for (int i = 0; i < 3000; ++i) dir.file("t/" + std::string(60, 'n') + std::to_string(i), "");
  for (const uint32_t buffers : {2u, 3u, 4u}) {
    CAPTURE(buffers);
    Bench bench(options_of({dir.path("t")}), buffers);
    bench.receiver.puts_per_turn = 0;
    bench.start();
    steps(bench, 20);
    CHECK(bench.receiver.count(SegmentKind::entries) == buffers / 2);
  }
}

TEST_CASE("source__many_large_files__sixteen_are_open_at_once") {
  const TempDir dir;
  dir.directory("t");
  for (int i = 0; i < 20; ++i) {
    dir.file("t/large" + std::to_string(i), "");
    std::filesystem::resize_file(dir.path("t/large" + std::to_string(i)), 21 * mib);
  }
  Bench bench(options_of({dir.path("t")}), 4);
  size_t opens = 0;
  count_opens(bench, "large", opens);
  entries_placed(bench, 22);
  bench.receiver.lane_down(0);
  bench.receiver.answering = true;
  steps(bench, 20);
  CHECK(opens == 16);
}

TEST_CASE("source__a_large_file_and_many_small_ones__go_by_turns") {
  const TempDir dir;
  dir.file_of("t/large", 28 * mib);
  for (int i = 0; i < 10; ++i) dir.file_of("t/small" + std::to_string(i), 3 * mib);
  Bench bench(options_of({dir.path("t")}), 16);
  bench.run();
  std::vector<SegmentKind> kinds;
  for (const Put& put : bench.receiver.puts) {
    if (put.header.kind != SegmentKind::entries) kinds.push_back(put.header.kind);
  }
  REQUIRE(kinds.size() == 17);
  // Behind the first ones, which went while the large file was opened.
  CHECK(std::count(kinds.begin() + 6, kinds.begin() + 12, SegmentKind::piece) >= 2);
  CHECK(std::count(kinds.begin() + 6, kinds.begin() + 12, SegmentKind::pack) >= 2);
}

// Entries segments that arrive damaged are sent again once for each time that they are asked for.
TEST_CASE("source__entries_damaged_one_after_the_other__each_goes_again_alone") {
  const TempDir dir;
  for (int i = 0; i < 3000; ++i) dir.file("t/" + std::string(60, 'n') + std::to_string(i), "");
  Bench bench(options_of({dir.path("t")}), 16);
  std::set<uint64_t> hit;
  bench.receiver.damaged = [&hit](const Put& put) {
    return put.header.kind == SegmentKind::entries && put.header.sequence < 3 && hit.insert(put.header.sequence).second;
  };
  bench.receiver.puts_per_turn = 1;
  bench.run();
  CHECK(hit.size() == 3);
  CHECK(bench.tally().segments_resent == 3);
  CHECK(bench.tally().files == 3000);
}

// A bound on memory: names that wait for the receiver. The batches of those that are hashed are small, and as many more are read
// ahead as jobs hash them.
TEST_CASE("source__nobody_takes_its_entries__the_walk_is_some_batches_ahead") {
  const TempDir dir;
  for (size_t i = 0; i < 10 * send::walk_batch_entries_max; ++i) dir.file("t/" + std::to_string(i), "");
  const auto looked_at = [&dir](uint32_t bits) {
    Bench bench(options_of({dir.path("t")}, bits));
    size_t files = 0;
    bench.files.hook = [&files](std::string_view call, std::string_view) {
      if (call == "stat_at") ++files;
      return 0;
    };
    bench.receiver.credit_window = 0;
    bench.start();
    steps(bench, 200);
    bench.source->abort({ErrorKind::interrupted, "enough"});
    return files;
  };
  constexpr size_t in_buffers = 4;
  CHECK(looked_at(0) == (in_buffers + 3) * send::walk_batch_entries_max);
  CHECK(looked_at(session::option_checksum) == (in_buffers + 3 + 4) * 64);
}

}  // namespace
}  // namespace ccixfer::send_test
