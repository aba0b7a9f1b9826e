// Files in pieces.
#include "app/send/large_reads.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::EntryPhase;
using session::SourceOutcome;

constexpr uint64_t mib = 1u << 20;

struct LargeBench : StageBench {
  send::LargeReads large{jobs, walk, entries, sink, heard};
  send::Entry& wanted(const std::string& path, uint64_t index, uint64_t first = 0, uint64_t count = ~uint64_t{0}) {
    send::Entry& entry = announced(path, index);
    const uint64_t pieces = send::pieces_of(entry.listed.size_bytes);
    REQUIRE(send::large_file_of(entry).wanted.add(first, std::min(count, pieces - first)));
    large.want(entry);
    return entry;
  }
  void read_all() {
    large.start_opens();
    reap();
    while (large.start_piece({}, share)) {
    }
    reap();
  }
};

TEST_CASE("large__whole_file__pieces_and_an_end_with_its_digest_when_all_is_read") {
  LargeBench bench;
  bench.dir.file_of("f", 9 * mib);
  send::Entry& entry = bench.wanted("f", 4);
  bench.read_all();
  REQUIRE(bench.sink.segments.size() == 3);
  std::vector<Hash128> hashes;
  for (const send::FilledSegment& piece : bench.sink.segments) {
    CHECK(piece.header.kind == session::SegmentKind::piece);
    CHECK(piece.header.index == 4);
    CHECK(piece.header.sequence == hashes.size());
    CHECK(piece.header.file_version == entry.listed.version);
    hashes.push_back(piece.header.hash);
  }
  CHECK(bench.sink.segments[2].payload_bytes == mib);
  REQUIRE(bench.heard.ends.size() == 1);  // though nothing is placed yet
  CHECK(bench.heard.ends[0].index == 4);
  CHECK(bench.heard.ends[0].digest == session::file_digest(hashes));
  CHECK(entry.phase == EntryPhase::sent);
}

TEST_CASE("large__a_piece_is_wanted_again__it_is_a_resend_and_the_digest_stays") {
  LargeBench bench;
  bench.dir.file_of("f", 9 * mib);
  send::Entry& entry = bench.wanted("f", 0);
  bench.read_all();
  bench.reap();
  REQUIRE((entry.large->wanted.add(1, 1) && entry.large->again.add(1, 1)));
  bench.large.want(entry);
  bench.read_all();
  REQUIRE(bench.sink.segments.size() == 4);
  CHECK(bench.sink.segments[3].resend);
  CHECK(bench.sink.segments[3].header.sequence == 1);
  bench.reap();
  REQUIRE(bench.heard.ends.size() == 2);
  CHECK(bench.heard.ends[1].digest == bench.heard.ends[0].digest);
}

TEST_CASE("large__file_changes__refused_at_either_look") {
  LargeBench bench;
  bench.dir.file_of("before", 5 * mib);
  bench.dir.file_of("behind", 5 * mib);
  send::Entry& before = bench.wanted("before", 0);
  static_cast<void>(bench.wanted("behind", 1));
  bench.dir.file_of("before", 6 * mib);
  bench.large.start_opens();
  bench.reap();
  CHECK(bench.heard.refused == std::vector<uint64_t>{0});
  CHECK(before.outcome.outcome == SourceOutcome::changed);
  while (bench.large.start_piece({}, bench.share)) {
  }
  bench.dir.file_of("behind", 6 * mib);
  bench.reap();
  CHECK(bench.sink.segments.size() == 2);
  CHECK(bench.heard.refused == std::vector<uint64_t>{0, 1});
  CHECK(bench.heard.ends.empty());
  bench.jobs->flush();
  bench.reap();
  CHECK(bench.files.open_now == 1);  // the root of the source
}

TEST_CASE("large__many_files__sixteen_are_open_and_the_next_when_one_ends") {
  LargeBench bench;
  bench.dir.file_of("f", 5 * mib);
  for (uint64_t i = 0; i < send::large_files_open_max + 2; ++i) static_cast<void>(bench.wanted("f", i, 1, 0));
  bench.large.start_opens();
  CHECK(bench.work.in_flight() == send::large_files_open_max);
  bench.reap();
  CHECK(bench.heard.ends.size() == send::large_files_open_max);  // nothing of them is wanted
  bench.large.start_opens();
  CHECK(bench.work.in_flight() == 2 + 0);
  bench.reap();
}

// Another way for the pieces of a file that others send too.
struct OtherWay final : send::PieceRoutes {
  std::shared_ptr<const send::PieceRoute> route_of(uint64_t index) override {
    asked.push_back(index);
    return route;
  }
  void file_ended(uint64_t index) override { ended.push_back(index); }
  HeardSegments sink;
  std::shared_ptr<send::PieceRoute> route;
  std::vector<uint64_t> asked, ended;
};

struct RoutedBench : LargeBench {
  RoutedBench() {
    large.set_routes(&way);
    dir.file_of("f", 9 * mib);
  }
  send::Entry& shared(uint64_t index) {
    send::Entry& entry = announced("f", index);
    large.want_compared(entry, false);
    REQUIRE(large.compare(entry, {index, 0, 3, {}}));
    return entry;
  }
  OtherWay way;
};

TEST_CASE("large__a_file_with_a_route__its_pieces_go_there_by_the_name_it_has_there") {
  RoutedBench bench;
  bench.way.route = std::make_shared<send::PieceRoute>(send::PieceRoute{&bench.way.sink, {}, 77, false});
  send::Entry& entry = bench.shared(4);
  bench.read_all();
  CHECK(bench.sink.segments.empty());
  REQUIRE(bench.way.sink.segments.size() == 3);
  for (const send::FilledSegment& piece : bench.way.sink.segments) CHECK(piece.header.index == 77);
  CHECK(bench.way.asked == std::vector<uint64_t>{4, 4, 4});
  REQUIRE(bench.heard.ends.size() == 1);
  CHECK(bench.heard.ends[0].index == 4);
  bench.large.entry_ends(entry);
  CHECK(bench.way.ended == std::vector<uint64_t>{4});
}

TEST_CASE("large__a_file_that_one_source_sends_alone__has_no_other_route") {
  RoutedBench bench;
  bench.way.route = std::make_shared<send::PieceRoute>(send::PieceRoute{&bench.way.sink, {}, 77, false});
  static_cast<void>(bench.wanted("f", 4));
  bench.read_all();
  CHECK(bench.way.asked.empty());
  CHECK(bench.sink.segments.size() == 3);
}

TEST_CASE("large__a_route_that_closes_while_pieces_are_read__they_are_read_again_for_the_sources_own") {
  RoutedBench bench;
  bench.way.route = std::make_shared<send::PieceRoute>(send::PieceRoute{&bench.way.sink, {}, 77, false});
  static_cast<void>(bench.shared(4));
  bench.large.start_opens();
  bench.reap();
  CHECK(bench.large.start_piece({}, bench.share));
  bench.way.route->is_closed = true;
  bench.way.route.reset();
  bench.read_all();
  bench.read_all();
  CHECK(bench.way.sink.segments.empty());
  REQUIRE(bench.sink.segments.size() == 3);
  std::set<uint64_t> pieces;
  for (const send::FilledSegment& piece : bench.sink.segments) {
    CHECK(piece.header.index == 4);
    pieces.insert(piece.header.sequence);
  }
  CHECK(pieces == std::set<uint64_t>{0, 1, 2});
  CHECK(bench.heard.ends.size() == 1);
  CHECK(bench.heard.refused.empty());
}

// A file whose pieces others name may stay open for long: those that this end reads alone do not wait for it.
TEST_CASE("large__many_files_to_compare_and_others__each_kind_has_room") {
  LargeBench bench;
  bench.dir.file_of("f", 5 * mib);
  for (uint64_t i = 0; i < send::large_files_open_max; ++i) bench.large.want_compared(bench.announced("f", i), false);
  bench.large.start_opens();
  CHECK(bench.work.in_flight() == send::compared_files_open_max);
  bench.reap();
  send::Entry& alone = bench.wanted("f", 100, 0, 2);
  bench.read_all();
  CHECK(bench.sink.segments.size() == 2);
  for (const auto& segment : bench.sink.segments) CHECK(segment.header.index == alone.index);
  bench.sink.segments.clear();
  REQUIRE(bench.heard.ends.size() == 1);
  // The first one is all elsewhere: the next of its kind is opened.
  REQUIRE(bench.large.is_elsewhere(bench.entries.at(0), 0, 2));
  bench.reap();
  REQUIRE(bench.heard.ends.size() == 2);
  send::Entry& next = *bench.entries.find(send::compared_files_open_max);
  REQUIRE(bench.large.compare(next, {next.index, 0, 1, {}}));
  bench.read_all();
  REQUIRE(bench.sink.segments.size() == 1);
  CHECK(bench.sink.segments.front().header.index == next.index);
}

TEST_CASE("large__entry_ends_while_jobs_read_it__its_slot_and_its_place_are_free_after_them") {
  LargeBench bench;
  bench.dir.file_of("f", 9 * mib);
  send::Entry& entry = bench.wanted("f", 0);
  bench.large.start_opens();
  bench.reap();
  REQUIRE(bench.large.start_piece({}, bench.share));
  REQUIRE(bench.large.start_piece({}, bench.share));
  bench.large.entry_ends(entry);
  bench.entries.end(entry);
  CHECK_FALSE(bench.large.start_piece({}, bench.share));
  CHECK(bench.entries.used() == 1);
  bench.reap();
  CHECK(bench.entries.used() == 0);
  CHECK(bench.sink.segments.empty());
  CHECK(bench.share.held() == 0);
  CHECK_FALSE(bench.large.start_piece({}, bench.share));  // its slot is no open file any more
  bench.jobs->flush();
  bench.reap();
  CHECK(bench.files.open_now == 1);
}

// As a receipt's job does that reads the file once more.
TEST_CASE("large__entry_ends_while_a_job_that_is_not_ours_uses_it__nothing_more_of_it_is_read") {
  for (const bool is_read_too : {false, true}) {
    LargeBench bench;
    bench.dir.file_of("f", 9 * mib);
    send::Entry& entry = bench.wanted("f", 0);
    bench.large.start_opens();
    bench.reap();
    if (is_read_too) REQUIRE(bench.large.start_piece({}, bench.share));
    ++entry.jobs;
    bench.large.entry_ends(entry);
    bench.entries.end(entry);
    CHECK_FALSE(bench.large.start_piece({}, bench.share));
    bench.reap();
    CHECK_FALSE(bench.entries.job_ended(entry));  // the other one is the last
    CHECK(bench.entries.used() == 0);
    CHECK_FALSE(bench.large.start_piece({}, bench.share));
    // The next one in that slot is read as ever.
    CHECK(&bench.wanted("f", 1) == &entry);
    bench.read_all();
    CHECK(bench.sink.segments.size() == 3);
    CHECK(bench.heard.ends.size() == 1);
  }
}

TEST_CASE("large__pieces_to_compare__only_those_that_differ_are_sent") {
  LargeBench bench;
  bench.dir.file_of("f", 13 * mib);
  send::Entry& entry = bench.announced("f", 4);
  bench.large.want_compared(entry, false);
  bench.read_all();
  CHECK(bench.sink.segments.empty());
  CHECK(bench.work.in_flight() == 0);  // none was named: that is not the end
  const std::string data = pattern(13 * mib);
  const auto hash_of = [&](uint64_t piece) {
    return xxh3_128(as_bytes(std::string_view(data)).subspan(piece * 4 * mib, std::min(4 * mib, (13 - 4 * piece) * mib)));
  };
  REQUIRE(bench.large.compare(entry, {4, 0, 2, {hash_of(0), Hash128{1, 2}}}));
  REQUIRE(bench.large.compare(entry, {4, 2, 1, {}}));
  bench.read_all();
  CHECK(bench.heard.same == std::vector<uint64_t>{0});
  REQUIRE(bench.sink.segments.size() == 2);
  CHECK(bench.sink.segments[0].header.sequence == 1);
  CHECK(bench.work.in_flight() == 0);  // one more is to be named
  REQUIRE(bench.large.compare(entry, {4, 3, 1, {hash_of(3)}}));
  bench.read_all();
  CHECK(bench.heard.same == std::vector<uint64_t>{0, 3});
  CHECK(bench.large.same_bytes() == 5 * mib);
  bench.reap();
  REQUIRE(bench.heard.ends.size() == 1);
  CHECK(bench.heard.ends[0].has_digest);
  CHECK(bench.heard.ends[0].digest == session::file_digest({hash_of(0), hash_of(1), hash_of(2), hash_of(3)}));
}

TEST_CASE("large__pieces_to_compare_that_make_no_sense__are_refused") {
  LargeBench bench;
  bench.dir.file_of("f", 13 * mib);
  send::Entry& entry = bench.announced("f", 4);
  bench.large.want_compared(entry, false);
  CHECK_FALSE(bench.large.compare(entry, {4, 3, 2, {}}));
  REQUIRE(bench.large.compare(entry, {4, 1, 1, {}}));
  CHECK_FALSE(bench.large.compare(entry, {4, 1, 1, {}}));
  CHECK_FALSE(bench.large.compare(entry, {4, 0, 4, {}}));
}

TEST_CASE("large__holes_of_a_shared_file__are_told_by_who_leads_and_no_word_about_them_matters") {
  LargeBench bench;
  bench.files.tells_holes = true;
  bench.dir.file_of("f", 4 * mib);
  REQUIRE(truncate(bench.dir.path("f").c_str(), 40 * mib) == 0);  // one piece of data, nine that are holes
  send::Entry& entry = bench.announced("f", 4);
  bench.large.want_compared(entry, true);
  REQUIRE(bench.large.compare(entry, {4, 2, 1, {}}));  // named before the file was opened
  bench.read_all();
  REQUIRE(bench.heard.holes.size() == 1);
  CHECK(bench.heard.holes[0].ranges.size() == 3);
  CHECK(bench.sink.segments.empty());
  CHECK(entry.large->untold.count() == 1);
  REQUIRE(bench.large.compare(entry, {4, 3, 2, {}}));  // these words were on their way
  CHECK(bench.large.is_elsewhere(entry, 5, 5));
  REQUIRE(bench.large.compare(entry, {4, 0, 1, {}}));
  bench.read_all();
  REQUIRE(bench.sink.segments.size() == 1);
  bench.reap();
  CHECK(bench.heard.ends.size() == 1);
}

TEST_CASE("large__more_hashes_than_may_be_unanswered__are_refused") {
  LargeBench bench;
  bench.dir.file_of("f", (session::compared_pieces_max + 1) * 4 * mib);
  send::Entry& entry = bench.announced("f", 4);
  bench.large.want_compared(entry, false);
  for (uint64_t piece = 0; piece < session::compared_pieces_max; ++piece) {
    REQUIRE(bench.large.compare(entry, {4, piece, 1, {Hash128{piece, 0}}}));
  }
  CHECK_FALSE(bench.large.compare(entry, {4, session::compared_pieces_max, 1, {Hash128{1, 1}}}));
  bench.large.entry_ends(entry);  // these count no more
  CHECK(entry.large->there.empty());
}

TEST_CASE("large__a_compared_piece_is_asked_for_again__it_is_sent") {
  LargeBench bench;
  bench.dir.file_of("f", 8 * mib);
  send::Entry& entry = bench.announced("f", 4);
  bench.large.want_compared(entry, false);
  const std::string data = pattern(8 * mib);
  REQUIRE(bench.large.compare(entry, {4, 0, 1, {xxh3_128(as_bytes(std::string_view(data)).first(4 * mib))}}));
  bench.large.forget_there(*entry.large, 0, 2);
  bench.read_all();
  CHECK(bench.heard.same.empty());
  CHECK(bench.sink.segments.size() == 1);
}

}  // namespace
}  // namespace ccixfer::send_test
