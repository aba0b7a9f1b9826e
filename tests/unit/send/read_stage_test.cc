// Which reader a file goes to, and that packs and pieces take turns.
#include "app/send/read_stage.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::EntryPhase;
using session::SegmentKind;

constexpr uint64_t mib = 1u << 20;

struct ReadBench : StageBench {
  std::atomic<bool> input_was_read{false};
  send::ReadStage reads{jobs, walk, entries, sink, heard, input_was_read};
  void read(size_t ahead = 100) {
    send::ReadPace pace;
    pace.segments_ready = sink.segments.size();
    pace.segments_ahead = ahead;
    pace.lane_is_idle = true;
    reads.start_reads(pace, share);
    reap();
  }
  [[nodiscard]] size_t count(SegmentKind kind) const {
    size_t count = 0;
    for (const send::FilledSegment& segment : sink.segments) count += segment.header.kind == kind ? 1 : 0;
    return count;
  }
};

TEST_CASE("reads__small_large_and_in_part__in_packs_and_in_pieces") {
  ReadBench bench;
  bench.dir.file("small", "s");
  bench.dir.file("part", "p");
  bench.dir.file_of("large", 5 * mib);
  send::Entry& small = bench.announced("small", 0);
  send::Entry& part = bench.announced("part", 1);
  send::Entry& large = bench.announced("large", 2);
  REQUIRE(bench.reads.want_whole(small));
  REQUIRE(send::large_file_of(part).wanted.add(0, 1));
  bench.reads.want_pieces(part);
  REQUIRE(bench.reads.want_whole(large));
  bench.read();
  bench.read();
  CHECK(bench.count(SegmentKind::pack) == 1);
  CHECK(bench.count(SegmentKind::piece) == 3);
  bench.reads.piece_placed(1);
  bench.reads.piece_placed(2);
  bench.reads.piece_placed(2);
  bench.reads.piece_placed(77);  // it has ended long ago
  bench.reap();
  CHECK(bench.heard.ends.size() == 2);
}

TEST_CASE("reads__nothing_of_a_file_is_wanted__its_end_only") {
  ReadBench bench;
  bench.dir.file_of("large", 5 * mib);
  bench.reads.want_pieces(bench.announced("large", 0));
  bench.read();
  CHECK(bench.sink.segments.empty());
  CHECK(bench.heard.ends.size() == 1);
}

TEST_CASE("reads__wanted_again__only_what_was_sent_or_is_large") {
  ReadBench bench;
  bench.dir.file("small", "s");
  bench.dir.file_of("large", 5 * mib);
  send::Entry& small = bench.announced("small", 0);
  send::Entry& large = bench.announced("large", 1);
  CHECK(bench.reads.want_again(small, 0, 1));
  CHECK(small.phase == EntryPhase::announced);
  REQUIRE(bench.reads.want_whole(small));
  CHECK(bench.reads.want_again(small, 0, 1));
  CHECK_FALSE(small.resend);  // it is on its way
  REQUIRE(bench.reads.want_whole(large));
  bench.read();
  bench.read();
  bench.sink.segments.clear();
  CHECK(bench.reads.want_again(small, 0, 1));
  CHECK(bench.reads.want_again(large, 1, 1));
  bench.read();
  bench.read();
  REQUIRE(bench.sink.segments.size() == 2);
  CHECK((bench.sink.segments[0].resend && bench.sink.segments[1].resend));
}

TEST_CASE("reads__packs_and_pieces_wait__they_take_turns_within_what_may_be_ahead") {
  ReadBench bench;
  bench.dir.file_of("large", 30 * mib);
  REQUIRE(bench.reads.want_whole(bench.announced("large", 0)));
  for (uint64_t i = 1; i < 5; ++i) {
    bench.dir.file_of("f" + std::to_string(i), 3 * mib);
    REQUIRE(bench.reads.want_whole(bench.announced("f" + std::to_string(i), i)));
  }
  bench.read(0);  // opens only
  bench.read(4);
  CHECK(bench.count(SegmentKind::pack) == 2);
  CHECK(bench.count(SegmentKind::piece) == 2);
  bench.read(4);
  CHECK(bench.sink.segments.size() == 4);
}

TEST_CASE("reads__buffers_and_segments_abound__at_most_eight_jobs_read") {
  ReadBench bench;
  bench.dir.file_of("large", 100 * mib);
  REQUIRE(bench.reads.want_whole(bench.announced("large", 0)));
  bench.read(0);
  send::ReadPace pace;
  pace.segments_ahead = 100;
  memory::Pool many(session::segment_bytes_max, 12);
  send::BufferShare buffers(many, nullptr);
  bench.reads.start_reads(pace, buffers);
  CHECK(bench.work.in_flight() == send::reading_jobs_max);
  bench.reap();
  bench.sink.segments.clear();
}

TEST_CASE("reads__standard_input__is_read_beside_the_others_and_ends_with_its_entry") {
  ReadBench bench;
  bench.files.stream = pattern(5 * mib);
  send::Entry& input = bench.entries.at(bench.entries.add(0, 0));
  input.stream = true;
  REQUIRE(bench.reads.want_whole(input));
  bench.read();
  CHECK(bench.sink.segments.size() == 1);
  CHECK_FALSE(bench.reads.waits_for_input());
  bench.reads.piece_placed(0);
  bench.reads.entry_ends(input);
  bench.entries.end(input);
  bench.reads.start_reads({}, bench.share);
  CHECK(bench.work.in_flight() == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
