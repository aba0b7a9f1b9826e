// A source that lists before its session is open.
#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

TEST_CASE("source__lists_ahead__says_nothing_before_the_session_is_open_and_sends_the_rest_behind") {
  const TempDir dir;
  for (int i = 0; i < 40; ++i) dir.file("t/f" + std::to_string(i), "content " + std::to_string(i));
  Bench bench(options_of({dir.path("t")}, archive));
  bench.source->list_ahead();
  for (int i = 0; i < 100 && !bench.source->has_listed_ahead(); ++i) {
    bench.source->turn(bench.now);
    bench.work.reap();
  }
  REQUIRE(bench.source->has_listed_ahead());
  const session::FirstEntries first = bench.source->first_entries(400);
  REQUIRE(first.count > 1);
  for (int i = 0; i < 10; ++i) bench.source->turn(bench.now);
  CHECK(bench.receiver.posted.empty());
  CHECK(bench.source->next_deadline() == never);
  const auto entries = session::decode_entries(first.bytes, first.count);
  REQUIRE(entries);
  bench.receiver.take_first(*entries);
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.receiver.entries.size() == 42);  // with the directory and its leave
  for (int i = 0; i < 40; ++i) CHECK(bench.receiver.content("f" + std::to_string(i)) == "content " + std::to_string(i));
}

TEST_CASE("source__lists_ahead_what_is_not_there__says_so_before_the_session_is_open") {
  const TempDir dir;
  Bench bench(options_of({dir.path("missing")}, archive));
  bench.source->list_ahead();
  for (int i = 0; i < 100 && !bench.source->has_listed_ahead(); ++i) {
    bench.source->turn(bench.now);
    bench.work.reap();
  }
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::source_selection);
}

}  // namespace
}  // namespace ccixfer::send_test
