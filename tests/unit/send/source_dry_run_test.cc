// What a dry run tells.
#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using session::EntryType;

constexpr uint64_t mib = 1u << 20;

// The receiver answers with verdicts alone, and ends.
void run_dry(Bench& bench) {
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] { return bench.tally().total_known; });
  for (int i = 0; i < 10; ++i) bench.step();
  bench.receiver.say(session::Summary{});
  bench.run_until([&] { return bench.source->finished(); });
}

TEST_CASE("source__dry_run__entries_only") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file_of("t/large", 9 * mib);
  Bench bench(options_of({dir.path("t")}, session::option_dry_run));
  bench.receiver.decide = [](const session::Entry& entry, uint64_t) {
    return entry.type == EntryType::file ? Verdict::send : Verdict::done;
  };
  run_dry(bench);
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().bytes_sent == 0);
  CHECK(bench.seen.find("large")->status == "would-send");
}

TEST_CASE("source__dry_run__what_would_be_made_and_changed_is_told") {
  const TempDir dir;
  dir.file("t/d/a", "A");
  Bench bench(options_of({dir.path("t")}, session::option_dry_run));
  bench.receiver.decide = [](const session::Entry& entry, uint64_t) {
    return entry.type == EntryType::file ? Verdict::change : entry.path == "d" ? Verdict::make : Verdict::done;
  };
  run_dry(bench);
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().files_unchanged == 1);
  CHECK(bench.tally().bytes_total == 0);
  CHECK(bench.seen.find("d")->status == "would-make");
  CHECK(bench.seen.find("d/a")->status == "would-change");
}

TEST_CASE("source__what_a_dry_run_would_do__is_refused_where_none_was_asked_for") {
  const Verdict verdict = GENERATE(Verdict::make, Verdict::change);
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.decide = [verdict](const session::Entry&, uint64_t) { return verdict; };
  bench.start();
  bench.run_until([&] { return bench.source->error() != nullptr; });
  CHECK(bench.source->error()->kind == ErrorKind::protocol);
}

}  // namespace
}  // namespace ccixfer::send_test
