// From listed records to entries segments.
#include "app/send/announcer.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::Announcer;
using send::WalkRecord;

class HeardNotListed final : public send::AnnouncerHandler {
 public:
  std::vector<std::string> lines;
  void on_not_listed(WalkRecord::Kind /*kind*/, std::string_view path, std::string_view reason) override {
    lines.push_back(std::string(path) + ": " + std::string(reason));
  }
};

WalkRecord& add_record(send::WalkBatch& batch, const std::string& path, const std::string& more = "") {
  WalkRecord record;
  record.path_at = static_cast<uint32_t>(batch.text.size());
  record.path_bytes = static_cast<uint32_t>(path.size());
  batch.text += path;
  record.more_at = static_cast<uint32_t>(batch.text.size());
  record.more_bytes = static_cast<uint32_t>(more.size());
  batch.text += more;
  batch.records.push_back(record);
  return batch.records.back();
}

struct AnnouncerBench {
  explicit AnnouncerBench(uint32_t buffers = 8)
      : pool(session::segment_bytes_max, buffers), share(pool, nullptr), walk(options()), announcer(walk, entries, sink, heard) {}
  static send::WalkOptions options() {
    send::WalkOptions options;
    options.sources = {"/some/where"};
    return options;
  }
  void list(size_t files) {
    auto batch = std::make_shared<send::WalkBatch>();
    for (size_t i = 0; i < files; ++i) add_record(*batch, "f" + std::to_string(i)).stat.size_bytes = 7;
    listings.add(batch, false);
  }
  [[nodiscard]] std::vector<session::Entry> decoded(size_t segment) {
    const send::FilledSegment& filled = sink.segments.at(segment);
    auto in_it = session::decode_entries(Bytes(filled.buffer.bytes()).first(filled.header.data_bytes), filled.header.count);
    REQUIRE(in_it);
    return *in_it;
  }

  memory::Pool pool;
  send::BufferShare share;
  send::EntryTable entries;
  HeardSegments sink;
  HeardNotListed heard;
  send::Walk walk;
  send::Listings listings;
  Announcer announcer;
};

TEST_CASE("announcer__records__are_entries_in_the_table_and_in_a_segment") {
  AnnouncerBench bench;
  auto batch = std::make_shared<send::WalkBatch>();
  add_record(*batch, "f").stat.size_bytes = 7;
  add_record(*batch, "lost", "no such file").kind = WalkRecord::Kind::vanished;
  add_record(*batch, "", "no permission").kind = WalkRecord::Kind::failed;
  add_record(*batch, "l", "target").type = session::EntryType::symlink;
  bench.listings.add(batch, false);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.heard.lines == std::vector<std::string>{"lost: no such file", "/some/where: no permission"});
  REQUIRE(bench.sink.segments.size() == 1);
  const session::SegmentHeader& header = bench.sink.segments[0].header;
  CHECK(header.kind == session::SegmentKind::entries);
  CHECK(header.hash == xxh3_128(bench.sink.segments[0].buffer.bytes().first(header.data_bytes)));
  const std::vector<session::Entry> in_segment = bench.decoded(0);
  REQUIRE(in_segment.size() == 2);
  CHECK(in_segment[0].size_bytes == 7);
  CHECK(in_segment[1].target == "target");
  CHECK(bench.announcer.entries() == 2);
  REQUIRE(bench.entries.find(0) != nullptr);
  CHECK(bench.entries.find(0)->counted_bytes == 7);
  CHECK(bench.entries.find(1)->path == "l");
}

TEST_CASE("announcer__first_entries__are_what_fits_and_segments_go_on_behind_them") {
  AnnouncerBench bench;
  bench.list(100);
  const session::FirstEntries first = bench.announcer.first_entries(bench.listings, 300);
  CHECK(first.bytes.size() <= 300);
  const auto entries = session::decode_entries(first.bytes, first.count);
  REQUIRE(entries);
  REQUIRE(entries->size() > 1);
  CHECK(entries->size() < 100);
  CHECK(entries->at(1).path == "f1");
  CHECK(bench.announcer.entries() == entries->size());
  REQUIRE(bench.entries.find(1) != nullptr);
  CHECK(bench.entries.find(1)->counted_bytes == 7);
  CHECK(bench.sink.segments.empty());
  bench.announcer.announce(bench.listings, bench.share, 0);
  REQUIRE(bench.sink.segments.size() == 1);
  CHECK(bench.sink.segments[0].header.sequence == 1);
  CHECK(bench.sink.segments[0].header.index == entries->size());
  CHECK(bench.decoded(0).size() == 100 - entries->size());
  CHECK(bench.decoded(0).at(0).path == "f" + std::to_string(entries->size()));
}

TEST_CASE("announcer__first_entries__stop_where_something_has_to_be_told") {
  AnnouncerBench bench;
  auto batch = std::make_shared<send::WalkBatch>();
  add_record(*batch, "f");
  add_record(*batch, "lost", "no such file").kind = WalkRecord::Kind::vanished;
  add_record(*batch, "g");
  bench.listings.add(batch, false);
  CHECK(bench.announcer.first_entries(bench.listings, 1000).count == 1);
  CHECK(bench.heard.lines.empty());
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.heard.lines.size() == 1);
  REQUIRE(bench.sink.segments.size() == 1);
  CHECK(bench.decoded(0).at(0).path == "g");
}

TEST_CASE("announcer__first_entries_for_which_there_is_no_room__come_in_the_first_segment") {
  AnnouncerBench bench;
  bench.list(2);
  const session::FirstEntries none = bench.announcer.first_entries(bench.listings, 3);
  CHECK(none.count == 0);
  CHECK(none.bytes.empty());
  bench.announcer.announce(bench.listings, bench.share, 0);
  REQUIRE(bench.sink.segments.size() == 1);
  CHECK(bench.sink.segments[0].header.sequence == 0);
  CHECK(bench.decoded(0).size() == 2);
}

TEST_CASE("announcer__one_file_without_a_path__carries_its_own_name") {
  AnnouncerBench bench;
  auto batch = std::make_shared<send::WalkBatch>();
  add_record(*batch, "");
  bench.listings.add(batch, false);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.decoded(0).at(0).name == "where");
}

TEST_CASE("announcer__buffers__at_most_four_segments_are_in_them") {
  AnnouncerBench bench;
  bench.list(session::entries_per_segment_max * 6);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.sink.segments.size() == send::entries_segments_max);
  CHECK(bench.sink.segments[1].header.sequence == 1);
  CHECK(bench.sink.segments[1].header.index == bench.sink.segments[0].header.count);
  bench.announcer.announce(bench.listings, bench.share, send::entries_segments_max);
  CHECK(bench.sink.segments.size() == send::entries_segments_max);
  bench.announcer.announce(bench.listings, bench.share, send::entries_segments_max - 1);
  CHECK(bench.sink.segments.size() == send::entries_segments_max + 1);
}

TEST_CASE("announcer__too_many_are_outstanding__goes_on_when_a_quarter_has_ended") {
  AnnouncerBench bench;
  bench.list(session::entries_outstanding_max + 10);
  for (int i = 0; i < 100; ++i) {
    bench.sink.segments.clear();
    bench.announcer.announce(bench.listings, bench.share, 0);
  }
  CHECK(bench.announcer.entries() == session::entries_outstanding_max);
  uint64_t index = 0;
  for (; bench.entries.used() > send::entries_resume_at + 1; ++index) bench.entries.end(*bench.entries.find(index));
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.announcer.entries() == session::entries_outstanding_max);
  bench.entries.end(*bench.entries.find(index));
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.announcer.entries() == session::entries_outstanding_max + 10);
}

TEST_CASE("announcer__long_entries_are_unanswered__no_more_than_their_bytes_may_be") {
  AnnouncerBench bench;
  const std::string longest(session::path_bytes_max - 8, 'x');
  for (uint32_t i = 0; i < 9000; ++i) {
    auto batch = std::make_shared<send::WalkBatch>();
    add_record(*batch, std::to_string(10'000'000 + i) + longest, longest).type = session::EntryType::symlink;
    std::swap(batch->text[0], batch->text[7]);  // the first byte differs from the one before, so nothing is shared
    bench.listings.add(batch, false);
  }
  uint64_t unanswered_bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    bench.announcer.announce(bench.listings, bench.share, 0);
    for (const send::FilledSegment& segment : bench.sink.segments) {
      unanswered_bytes += segment.header.data_bytes + session::segment_trailer_bytes;
    }
    bench.sink.segments.clear();
  }
  CHECK(unanswered_bytes <= session::entries_unanswered_bytes_max);
  CHECK(unanswered_bytes > session::entries_unanswered_bytes_max - 2 * session::entries_segment_bytes);
  const uint64_t announced = bench.announcer.entries();
  CHECK(announced < 9000);
  bench.announcer.answered_before(announced);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.announcer.entries() > announced);
}

TEST_CASE("announcer__segment_arrived_damaged__goes_again_until_it_is_answered") {
  AnnouncerBench bench;
  bench.list(3);
  bench.announcer.announce(bench.listings, bench.share, 0);
  const std::vector<session::Entry> first = bench.decoded(0);
  bench.announcer.want_again(0);
  bench.announcer.announce(bench.listings, bench.share, 0);
  REQUIRE(bench.sink.segments.size() == 2);
  CHECK(bench.sink.segments[1].resend);
  CHECK(bench.sink.segments[1].header.sequence == 0);
  CHECK(bench.decoded(1).at(2).path == first.at(2).path);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.sink.segments.size() == 2);
  bench.announcer.answered_before(2);
  bench.announcer.want_again(0);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.sink.segments.size() == 3);
  bench.announcer.answered_before(3);
  bench.announcer.want_again(0);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.sink.segments.size() == 3);
}

TEST_CASE("announcer__no_buffer__records_wait") {
  AnnouncerBench bench(1);
  bench.list(3);
  {
    const send::Buffer last = bench.share.lend();
    bench.announcer.announce(bench.listings, bench.share, 0);
    CHECK(bench.share.starved());
  }
  CHECK(bench.announcer.entries() == 0);
  bench.announcer.announce(bench.listings, bench.share, 0);
  CHECK(bench.announcer.entries() == 3);
}

}  // namespace
}  // namespace ccixfer::send_test
