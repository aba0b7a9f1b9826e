// How a source ends: in the middle, by an error, and with what only the summary tells.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>

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

// A descriptor of a source's directory is closed by a job, and might be somebody else's when a job that came before reads below it.
TEST_CASE("source__destroyed_with_reads_under_way__its_directories_stay_open_for_them") {
  const TempDir dir;
  const bool small = GENERATE(true, false);  // each kind of read alone
  if (!small) dir.file_of("t/large", 9 * mib);
  for (int i = 0; i < 50 && small; ++i) dir.file("t/" + std::to_string(i), "x");
  for (int steps = 0; steps < 24; ++steps) {
    Bench bench(options_of({dir.path("t")}));
    bench.work.newest_first = true;
    bench.start();
    for (int i = 0; i < steps; ++i) bench.step();
    bench.source->turn(bench.now);
    bench.source.reset();
    while (bench.work.reap() > 0) {
    }
    CHECK(bench.files.bad_descriptors == 0);
  }
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
  CHECK(bench.tally().files_failed == 1 + more);
  const auto says_so = [](const std::string& failure) {
    return failure.find("modes or times to 2 files and directories") != std::string::npos;
  };
  CHECK(std::count_if(bench.seen.failures.begin(), bench.seen.failures.end(), says_so) == (more > 0 ? 1 : 0));
}

TEST_CASE("source__abort_that_ends_no_session__protocol_error") {
  const auto kind = GENERATE(ErrorKind::ok, ErrorKind::partial, ErrorKind::vanished, ErrorKind::max_delete, ErrorKind::no_space);
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  bench.receiver.say(session::Abort{kind, "that was all"});
  bench.run_until([&] { return bench.source->finished(); });
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == (kind == ErrorKind::no_space ? kind : ErrorKind::protocol));
}

// What a receiver says of itself is believed only as far as it can be true.
TEST_CASE("source__receiver_claims_what_was_never_sent__protocol_error") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file_of("t/large", 9 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.answering = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::entries) > 0; });
  SECTION("a file is there, before its verdict") {
    session::FileResults results;
    for (uint64_t index = 0; index < 3; ++index) results.results.push_back({index, ErrorKind::ok, 0});
    bench.receiver.say(results);
  }
  SECTION("bytes are durable") { bench.receiver.say(session::Durable{1, 0}); }
  SECTION("a summary without verdicts") {
    bench.run_until([&] {
      return std::any_of(bench.receiver.posted.begin(), bench.receiver.posted.end(),
                         [](const session::Message& message) { return std::holds_alternative<session::End>(message); });
    });
    bench.receiver.say(session::Summary{});
  }
  SECTION("more failures than entries") {
    bench.receiver.answering = true;
    bench.receiver.failures_in_summary = ~uint64_t{0};
  }
  bench.run_until([&] { return bench.source->finished(); });
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::protocol);
}

TEST_CASE("source__summary_before_the_result_of_a_file_that_was_sent__protocol_error") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.by_path("a") != nullptr && bench.receiver.by_path("a")->packed; });
  for (int i = 0; i < 3; ++i) bench.step();
  bench.receiver.say(session::Summary{0, 0, 0, 1});
  bench.step();
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::protocol);
}

// The receiver has said that all is there: that it closes before it has our goodbye is no failure.
TEST_CASE("source__link_lost_before_the_goodbye_is_gone__finished_without_an_error") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.delivered = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.bye; });
  for (int i = 0; i < 3; ++i) bench.step();
  CHECK_FALSE(bench.source->finished());
  CHECK(bench.source->said_all());
  SECTION("the session is lost") { bench.source->on_link_lost({ErrorKind::network, "gone"}); }
  SECTION("its only connection is: a new one would find a receiver that has forgotten all of it") { bench.receiver.lane_down(0); }
  CHECK(bench.source->finished());
  CHECK(bench.source->error() == nullptr);
}

TEST_CASE("source__receiver_claims_a_file_while_it_is_read__protocol_error") {
  const TempDir dir;
  dir.file_of("t/large", 61 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.puts_per_turn = 1;
  bench.start();
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::piece) > 0; });
  session::FileResults results;
  results.results.push_back({1, ErrorKind::ok, 0});
  bench.receiver.say(results);
  bench.run_until([&] { return bench.source->finished(); });
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::protocol);
}

// A second session of one transfer: what the receiver has by then was delivered by the first, though no result told so.
TEST_CASE("source__second_session_of_a_transfer__counts_and_tells_each_file_once") {
  const TempDir dir;
  dir.file("t/heard", "1");
  dir.file("t/unheard", "22");
  dir.file("t/old", "333");
  dir.file_of("t/large", 9 * mib);
  send::SourceOptions options = options_of({dir.path("t")});
  options.record = std::make_shared<session::TransferRecord>();
  const auto decide = [](const session::Entry& entry, Verdict of_large, Verdict of_others) {
    if (entry.type != session::EntryType::file) return Verdict::done;
    return entry.path == "old" ? Verdict::unchanged : entry.path == "large" ? of_large : of_others;
  };
  std::vector<std::string> told;
  const auto note = [&told](const Bench& bench) {
    for (const FileSeen& file : bench.seen.files) told.push_back(file.path + " " + file.status);
  };
  {
    Bench bench(options);
    bench.receiver.decide = [&](const session::Entry& entry, uint64_t) { return decide(entry, Verdict::pieces, Verdict::send); };
    bench.receiver.want = [](uint64_t) { return std::vector<session::Want::Range>{{1, 2}}; };  // 4 MiB were there before
    bench.receiver.giving_results = false;
    bench.start();
    bench.run_until([&] { return bench.receiver.count(session::SegmentKind::piece) == 2 && bench.receiver.in_air() == 0; });
    session::FileResults heard;
    for (const auto& [index, file] : bench.receiver.entries) {
      if (file.entry.path == "heard") heard.results.push_back({index, ErrorKind::ok, 0});
    }
    bench.receiver.say(heard);
    bench.receiver.say(session::Durable{4 * mib + 3, 1});
    bench.run_until([&] { return bench.tally().files == 1; });
    CHECK(bench.tally().bytes == 4 * mib + 3);
    CHECK(bench.tally().bytes_total == 5 * mib + 3);
    note(bench);
  }
  Bench bench(options);
  bench.receiver.decide = [&](const session::Entry& entry, uint64_t) { return decide(entry, Verdict::pieces, Verdict::unchanged); };
  bench.receiver.want = [](uint64_t) { return std::vector<session::Want::Range>{{2, 1}}; };
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::piece) == 1 && bench.tally().total_known; });
  CHECK(bench.tally().files == 2);
  CHECK(bench.tally().files_unchanged == 1);
  CHECK(bench.tally().bytes == 4 * mib + 3);
  CHECK(bench.tally().bytes_total == 5 * mib + 3);
  SECTION("the rest arrives") {
    bench.receiver.bytes_of_result = mib;
    bench.receiver.giving_results = true;
    bench.run_until([&] { return bench.source->finished(); });
    CHECK(bench.source->error() == nullptr);
    CHECK(bench.tally().over);
    CHECK(bench.tally().files == 3);
    CHECK(bench.tally().bytes == 5 * mib + 3);
    CHECK(bench.tally().bytes_total == 5 * mib + 3);
    note(bench);
    std::sort(told.begin(), told.end());
    CHECK(told == std::vector<std::string>{"heard ok", "large ok", "old unchanged", "unheard ok"});
  }
  SECTION("it fails") {
    session::FileResults failed;
    for (const auto& [index, file] : bench.receiver.entries) {
      if (file.entry.path == "large") failed.results.push_back({index, ErrorKind::file_io, EIO});
    }
    bench.receiver.say(failed);
    bench.run_until([&] { return bench.tally().files_failed == 1; });
    CHECK(bench.tally().bytes == 3);
    CHECK(bench.tally().bytes_total == 3);
  }
}

// One call of the disk takes minutes, here or at the receiver: neither is a timeout, and neither lasts for ever.
TEST_CASE("source__slow_disk_here_or_at_the_receiver__alive_up_to_its_patience") {
  using namespace std::chrono_literals;
  const TempDir dir;
  dir.file("t/a", "A");
  send::SourceOptions options = options_of({dir.path("t")});
  options.disk_patience = 90s;
  Bench bench(options);
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::pack) == 1 && bench.receiver.in_air() == 0; });
  for (int i = 0; i < 10; ++i) bench.step();
  const Instant began = bench.now;
  const auto pass = [&](Duration time, uint64_t steps, bool silent) {
    for (const Instant end = bench.now + time; bench.now < end; bench.now += 1s) {
      const auto silent_ms = silent ? static_cast<uint64_t>((bench.now - began) / 1ms) : 0;
      bench.receiver.say(session::Alive{steps, silent_ms});
      bench.step();
    }
  };
  pass(80s, 1, true);
  CHECK(bench.source->last_progress() > began + 78s);
  CHECK(bench.source->stuck_disk().empty());
  pass(40s, 1, true);
  CHECK(bench.source->last_progress() < began + 91s);
  CHECK(bench.source->stuck_disk().rfind("the receiver's disk has not answered for 1", 0) == 0);
  pass(2s, 2, true);  // it did something
  CHECK(bench.source->last_progress() > began + 119s);
  bench.receiver.giving_results = true;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.source->stuck_disk().empty());
}

TEST_CASE("source__own_jobs_do_not_come_back__tells_the_receiver_and_waits_for_its_patience") {
  using namespace std::chrono_literals;
  const TempDir dir;
  dir.file("t/a", "A");
  send::SourceOptions options = options_of({dir.path("t")});
  options.disk_patience = 90s;
  Bench bench(options);
  bench.start();  // its first job waits, as nobody reaps
  const Instant began = bench.now;
  const auto pass_until = [&](Instant at) {
    for (bench.source->turn(bench.now); bench.now < at; bench.source->turn(bench.now)) {
      bench.now = std::min(at, std::max(bench.now + 1ms, bench.source->next_deadline()));
    }
  };
  pass_until(began + 80s);
  CHECK(bench.source->last_progress() > began + 79s);
  const auto* alive = std::get_if<session::Alive>(&bench.receiver.posted.back());
  REQUIRE(alive != nullptr);
  CHECK(alive->silent_ms > 75'000);
  CHECK(bench.receiver.posted.size() < 1000);
  pass_until(began + 120s);
  CHECK(bench.source->last_progress() < began + 91s);
  CHECK(bench.source->stuck_disk().rfind("the disk here has not answered for 1", 0) == 0);
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.source->error() == nullptr);
}

TEST_CASE("source__destination_finds_that_a_file_changed__it_counts_as_changed") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::pack) > 0; });
  session::FileResults results;
  results.results.push_back({1, ErrorKind::vanished, 0});
  bench.receiver.say(results);
  bench.run_until([&] { return bench.tally().files_vanished + bench.tally().files_failed > 0; });
  CHECK(bench.tally().files_vanished == 1);
  CHECK(bench.tally().files_failed == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
