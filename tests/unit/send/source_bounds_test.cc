// Where a source begins to wait and where it goes on: entries outstanding, files of a pack, buffers that others have.
#include <catch2/catch.hpp>

#include "app/send/announcer.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using session::SegmentKind;
using namespace std::chrono_literals;

constexpr uint64_t mib = 1u << 20;

void steps(Bench& bench, int count) {
  for (int i = 0; i < count; ++i) bench.step();
}

// All entries are there; the answers are the test's.
void entries_placed(Bench& bench, uint64_t count) {
  bench.receiver.answering = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.outstanding == count && bench.receiver.in_air() == 0; });
}

// How many files "f..." were opened: small ones are, each once, when they are read.
struct Opens {
  explicit Opens(Bench& bench) {
    bench.files.hook = [this](std::string_view call, std::string_view name) {
      if (call == "open" && name.starts_with("f")) ++count;
      return 0;
    };
  }
  size_t count = 0;
};

// In the place of other sessions: all buffers of the pool that are free.
struct Others {
  explicit Others(Bench& bench_) : bench(bench_) { take(); }
  void take() {
    while (bench.pool.free_count() > 0) lent.push_back(bench.pool.lend());
  }
  Bench& bench;
  std::vector<memory::Loan> lent;
};

void check_asks_again_soon(Bench& bench) {
  bench.source->turn(bench.now);
  CHECK(bench.source->next_deadline() > bench.now);
  CHECK(bench.source->next_deadline() <= bench.now + 100ms);
}

}  // namespace

// Else each entry that ends would let one more go, in a segment of its own.
TEST_CASE("source_bounds__most_entries_outstanding__no_more_and_on_when_a_quarter_has_ended") {
  const TempDir dir;
  for (int i = 0; i < 34000; ++i) dir.file("t/" + std::to_string(i), "");
  {
    Bench bench(options_of({dir.path("t")}));
    bench.receiver.giving_results = false;
    bench.start();
    steps(bench, 300);
    CHECK(bench.receiver.outstanding_most == session::entries_outstanding_max);
    bench.receiver.giving_results = true;
    bench.run_until([&] { return bench.source->finished(); });
    CHECK(bench.tally().files == 34000);
    CHECK(bench.receiver.outstanding_most <= session::entries_outstanding_max);
    CHECK(bench.receiver.count(SegmentKind::pack) < 60);
  }
  Bench bench(options_of({dir.path("t")}));
  entries_placed(bench, session::entries_outstanding_max);
  steps(bench, 10);
  const size_t segments = bench.receiver.count(SegmentKind::entries);
  const uint32_t ended = session::entries_outstanding_max - send::entries_resume_at - 1;
  bench.receiver.say(session::Answer{0, {{1, Verdict::done}, {ended - 1, Verdict::unchanged}}});
  steps(bench, 10);
  CHECK(bench.tally().files_unchanged == ended - 1);
  CHECK(bench.receiver.count(SegmentKind::entries) == segments);
  CHECK(bench.receiver.outstanding == session::entries_outstanding_max);
  bench.receiver.say(session::Answer{ended, {{1, Verdict::unchanged}}});
  steps(bench, 10);
  CHECK(bench.receiver.count(SegmentKind::entries) > segments);
  CHECK(bench.receiver.count(SegmentKind::entries) < segments + 10);
  CHECK(bench.receiver.outstanding == 34002);  // all that there are: they fit now
}

TEST_CASE("source_bounds__no_lane_idles__packs_are_read_full") {
  const TempDir dir;
  for (uint32_t i = 0; i < session::pack_files_max + 2; ++i) dir.file("t/f" + std::to_string(i), "x");
  Bench bench(options_of({dir.path("t")}));
  const Opens opens(bench);
  entries_placed(bench, session::pack_files_max + 4);
  bench.receiver.lane_down(0);
  bench.receiver.say(session::Answer{0, {{1, Verdict::done}, {session::pack_files_max - 1, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens.count == 0);
  bench.receiver.say(session::Answer{session::pack_files_max, {{1, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens.count == session::pack_files_max);
  bench.receiver.say(session::Answer{session::pack_files_max + 1, {{1, Verdict::send}}});
  steps(bench, 5);
  CHECK(opens.count == session::pack_files_max);  // the next pack waits for more, or for the last answer
  bench.receiver.say(session::Answer{session::pack_files_max + 2, {{1, Verdict::unchanged}}});
  steps(bench, 5);
  CHECK(opens.count == session::pack_files_max);
  bench.receiver.say(session::Answer{session::pack_files_max + 3, {{1, Verdict::done}}});
  steps(bench, 5);
  CHECK(opens.count == session::pack_files_max + 1);
}

TEST_CASE("source_bounds__no_lane_idles__a_pack_that_is_full_to_the_byte_is_read") {
  for (const uint64_t missing : {0u, 1u}) {
    INFO(missing);
    const TempDir dir;
    const uint64_t each = session::piece_bytes / 2 - session::pack_record_bytes;
    dir.file_of("t/f0", each);
    dir.file_of("t/f1", each - missing);
    Bench bench(options_of({dir.path("t")}));
    const Opens opens(bench);
    entries_placed(bench, 4);
    bench.receiver.lane_down(0);
    bench.receiver.say(session::Answer{0, {{1, Verdict::done}, {2, Verdict::send}}});
    steps(bench, 5);
    CHECK(opens.count == (missing == 0 ? 2u : 0u));
  }
}

// Nobody tells that a buffer came back to a shared pool.
TEST_CASE("source_bounds__pool_is_empty_when_data_is_due__asks_again_soon") {
  for (const bool large : {false, true}) {
    INFO(large);
    const TempDir dir;
    const uint64_t size = large ? 5 * mib : 100;
    dir.file_of("t/f", size);
    Bench bench(options_of({dir.path("t")}));
    entries_placed(bench, 3);
    steps(bench, 5);
    Others others(bench);
    bench.receiver.answering = true;
    steps(bench, 10);
    CHECK(bench.receiver.count(large ? SegmentKind::piece : SegmentKind::pack) == 0);
    check_asks_again_soon(bench);
    others.lent.clear();
    bench.run_until([&] { return bench.source->finished(); });
    CHECK(bench.source->error() == nullptr);
    CHECK(bench.receiver.content("f") == pattern(size));
    CHECK(bench.source->next_deadline() == never);
  }
}

TEST_CASE("source_bounds__pool_is_empty_when_files_are_hashed__asks_again_soon") {
  const TempDir dir;
  dir.file("t/f", "content");
  Bench bench(options_of({dir.path("t")}, archive | session::option_checksum));
  Others others(bench);
  bench.start();
  steps(bench, 10);
  CHECK(bench.receiver.puts.empty());
  check_asks_again_soon(bench);
  others.lent.clear();
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("f") == "content");
  REQUIRE(bench.receiver.by_path("f") != nullptr);
  CHECK(bench.receiver.by_path("f")->entry.has_digest);
}

TEST_CASE("source_bounds__pool_is_empty_when_entries_are_wanted_again__asks_again_soon") {
  const TempDir dir;
  dir.file("t/f", "content");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.answering = false;
  Others others(bench);
  others.lent.clear();
  size_t damaged = 0;
  bench.receiver.damaged = [&](const Put& put) { return put.header.kind == SegmentKind::entries && ++damaged == 1; };
  bench.start();
  for (int i = 0; i < 20; ++i) {
    bench.work.reap();
    bench.receiver.turn();
    if (damaged > 0) others.take();  // its own buffer, too, as soon as it is back
    bench.source->turn(bench.now);
  }
  CHECK(damaged == 1);
  CHECK(bench.receiver.count(SegmentKind::entries) == 1);
  check_asks_again_soon(bench);
  others.lent.clear();
  bench.receiver.answering = true;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.count(SegmentKind::entries) == 2);
  CHECK(bench.receiver.content("f") == "content");
}

}  // namespace ccixfer::send_test
