// What a source counts when the other end has some of it, and messages that come twice.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

constexpr uint64_t mib = 1u << 20;

}  // namespace

TEST_CASE("source__the_other_end_has_some_of_it__totals_count_what_is_wanted") {
  const TempDir dir;
  const uint64_t wanted = GENERATE(0u, 2u);  // the last piece is shorter than the others
  dir.file("t/here", "12345");
  dir.file("t/new", "1234567");
  dir.file_of("t/part", 9 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.decide = [](const session::Entry& entry, uint64_t) {
    if (entry.path == "here") return Verdict::unchanged;
    if (entry.path == "part") return Verdict::pieces;
    return entry.type == session::EntryType::file ? Verdict::send : Verdict::done;
  };
  bench.receiver.want = [&](uint64_t index) {
    return bench.receiver.entries.at(index).entry.path == "part" ? std::vector<session::Want::Range>{{wanted, 1}}
                                                                 : std::vector<session::Want::Range>{};
  };
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().files == 2);
  CHECK(bench.tally().files_unchanged == 1);
  CHECK(bench.tally().bytes_total == 7 + (wanted == 2 ? mib : 4 * mib));
  CHECK(bench.receiver.by_path("part")->pieces.size() == 1);
  CHECK(bench.receiver.by_path("part")->pieces.contains(wanted));
  CHECK(bench.seen.find("here")->status == "unchanged");
  CHECK(bench.seen.find("part")->status == "ok");
}

TEST_CASE("source__an_answer_that_comes_again__changes_nothing") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file_of("t/b", 5 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] {
    const ReceivedFile* a = bench.receiver.by_path("a");
    const ReceivedFile* b = bench.receiver.by_path("b");
    return a != nullptr && a->packed && b != nullptr && b->end;
  });
  const size_t puts = bench.receiver.puts.size();
  session::Answer again;
  again.first_index = 0;
  again.runs.push_back({static_cast<uint32_t>(bench.receiver.entries.size()), Verdict::send});
  bench.receiver.say(again);
  for (int i = 0; i < 20; ++i) bench.step();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.receiver.puts.size() == puts);
  bench.receiver.giving_results = true;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.tally().files == 2);
}

}  // namespace ccixfer::send_test
