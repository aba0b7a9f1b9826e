// How a source ends: in the middle, by an error, and with what only the summary tells.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

constexpr uint64_t mib = 1u << 20;

TEST_CASE("source__destroyed_in_the_middle__no_descriptor_and_no_buffer_is_left") {
  const TempDir dir;
  dir.file_of("t/large", 30 * mib);
  for (int i = 0; i < 2000; ++i) dir.file("t/d" + std::to_string(i % 7) + "/" + std::to_string(i), "x");
  for (int steps = 0; steps < 24; ++steps) {
    Bench bench(options_of({dir.path("t")}));
    bench.start();
    for (int i = 0; i < steps; ++i) bench.step();
  }
  SUCCEED("the bench's end checks descriptors, the pool's end checks loans");
}

// The transport reads the buffers of what is in the air: who destroyed the source then would give them to somebody else.
TEST_CASE("source__ended_by_an_error_with_puts_in_the_air__idle_when_they_ended") {
  const TempDir dir;
  dir.file_of("t/large", 40 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  CHECK(bench.source->idle());
  bench.receiver.puts_per_turn = 1;
  bench.run_until([&] { return bench.receiver.in_air() >= 3; });
  bench.receiver.puts_per_turn = 0;
  bench.source->abort({ErrorKind::interrupted, "stop"});
  bench.step();
  CHECK(bench.source->finished());
  CHECK_FALSE(bench.source->idle());
  bench.receiver.puts_per_turn = 100;
  bench.run_until([&] { return bench.receiver.in_air() == 0; });
  CHECK(bench.source->idle());
}

TEST_CASE("source__summary_tells_of_more_failures_than_the_results__they_count") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file("t/secret", "S");
  Bench bench(options_of({dir.path("t")}, archive));
  bench.files.hook = [](std::string_view call, std::string_view name) { return call == "open" && name == "secret" ? -EACCES : 0; };
  const uint64_t more = GENERATE(as<uint64_t>{}, 0, 2);
  bench.receiver.failures_in_summary = 1 + more;
  bench.run();
  CHECK(bench.totals().files_failed == 1 + more);
  const auto says_so = [](const std::string& warning) {
    return warning.find("mode or times to 2 of the directories") != std::string::npos;
  };
  CHECK(std::count_if(bench.seen.warnings.begin(), bench.seen.warnings.end(), says_so) == (more > 0 ? 1 : 0));
}

}  // namespace
}  // namespace ccixfer::send_test
