// Small files into packs.
#include "app/send/pack_reads.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::EntryPhase;
using send::ReadPace;

struct PackBench : StageBench {
  send::PackReads packs{jobs, walk, entries, sink, heard};
  [[nodiscard]] bool start(const ReadPace& pace) { return packs.start(pace, packs.reading(), share); }
};

ReadPace idle_lane() {
  ReadPace pace;
  pace.lane_is_idle = true;
  return pace;
}

TEST_CASE("packs__few_files__wait_for_more_unless_a_lane_is_idle_or_none_can_come") {
  PackBench bench;
  bench.dir.file("a", "A");
  bench.packs.want(bench.announced("a", 0));
  CHECK_FALSE(bench.start({}));
  ReadPace segment_waits = idle_lane();
  segment_waits.segments_ready = 1;
  CHECK_FALSE(bench.start(segment_waits));
  CHECK_FALSE(bench.packs.start(idle_lane(), 1, bench.share));  // what is being read will keep it busy
  CHECK(bench.start(idle_lane()));
  CHECK(bench.packs.reading() == 1);
  bench.dir.file("b", "B");
  bench.packs.want(bench.announced("b", 1));
  ReadPace last;
  last.all_is_wanted = true;
  CHECK_FALSE(bench.start(last));  // one that is not full at a time
  bench.reap();
  CHECK(bench.start(last));
  bench.reap();
  CHECK(bench.sink.segments.size() == 2);
}

TEST_CASE("packs__read__in_one_segment_with_their_indices") {
  PackBench bench;
  for (uint64_t i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    bench.dir.file(name, name + name);
    bench.packs.want(bench.announced(name, i));
  }
  REQUIRE(bench.start(idle_lane()));
  CHECK(bench.share.held() == 1);
  const uint64_t steps = bench.jobs->steps();
  bench.reap();
  CHECK(bench.jobs->steps() == steps + 4);  // each file, and the job: a slow disk gives signs of life
  REQUIRE(bench.sink.segments.size() == 1);
  const send::FilledSegment& pack = bench.sink.segments[0];
  CHECK(pack.header.kind == session::SegmentKind::pack);
  CHECK(pack.header.count == 3);
  CHECK(pack.files == std::vector<uint64_t>{0, 1, 2});
  CHECK(pack.payload_bytes == 6);
  CHECK_FALSE(pack.resend);
  CHECK(bench.entries.find(1)->phase == EntryPhase::sent);
  send::Entry& again = *bench.entries.find(1);
  again.resend = true;
  bench.packs.want(again);
  REQUIRE(bench.start(idle_lane()));
  bench.reap();
  CHECK(bench.sink.segments.at(1).resend);
}

TEST_CASE("packs__files_that_changed_or_ended_meanwhile__are_refused_or_left_out") {
  PackBench bench;
  for (const char* name : {"changed", "ended", "waits", "whole"}) bench.dir.file(name, name);
  bench.packs.want(bench.announced("changed", 0));
  bench.packs.want(bench.announced("ended", 1));
  bench.packs.want(bench.announced("whole", 2));
  send::Entry& waits = bench.announced("waits", 3);
  bench.packs.want(waits);
  bench.packs.entry_ends(waits);
  bench.entries.end(waits);
  bench.dir.file("changed", "longer than before");
  REQUIRE(bench.start(idle_lane()));
  bench.entries.end(*bench.entries.find(1));
  bench.reap();
  CHECK(bench.heard.refused == std::vector<uint64_t>{0});
  CHECK(bench.entries.find(0)->outcome.outcome == session::SourceOutcome::changed);
  CHECK(bench.entries.find(0)->phase == EntryPhase::refused);
  CHECK(bench.sink.segments.at(0).files == std::vector<uint64_t>{1, 2});
  CHECK(bench.entries.used() == 2);
  CHECK_FALSE(bench.start(idle_lane()));
}

TEST_CASE("packs__more_than_a_pack_holds__is_due_at_once_and_the_rest_waits") {
  PackBench bench;
  for (uint64_t i = 0; i < 5; ++i) {
    bench.dir.file_of("f" + std::to_string(i), 3u << 19u);
    bench.packs.want(bench.announced("f" + std::to_string(i), i));
  }
  CHECK(bench.start({}));
  CHECK(bench.start({}));
  CHECK_FALSE(bench.start({}));
  bench.reap();
  CHECK(bench.sink.segments.at(0).files == std::vector<uint64_t>{0, 1});
  CHECK(bench.sink.segments.at(1).files == std::vector<uint64_t>{2, 3});
}

TEST_CASE("packs__no_buffer__files_wait") {
  PackBench bench;
  bench.dir.file("a", "A");
  bench.packs.want(bench.announced("a", 0));
  std::vector<send::Buffer> all;
  while (bench.share.may_lend(false)) all.push_back(bench.share.lend());
  CHECK_FALSE(bench.start(idle_lane()));
  all.pop_back();
  ReadPace keep = idle_lane();
  keep.keep_one = true;
  CHECK_FALSE(bench.start(keep));
  CHECK(bench.start(idle_lane()));
  bench.reap();
}

}  // namespace
}  // namespace ccixfer::send_test
