// What is said to people at the end: the summary, the statistics, the error with its advice.
#include <catch2/catch.hpp>
#include <cmath>

#include "app/report/job_run.h"
#include "app/report/outcome.h"
#include "app/report/progress_line.h"
#include "app/report/staged.h"
#include "app/report/statistics.h"

namespace ccixfer::report {

using Lines = std::vector<std::string>;
using namespace std::chrono_literals;

TEST_CASE("summary_line__only_what_there_is_to_say") {
  Done done;
  done.seconds = 2;
  CHECK(summary_line(done) == "0 files, 0 B in 2.0 s (0 B/s)");
  done.counts.files = 1;
  done.counts.bytes = 4000;
  CHECK(summary_line(done) == "1 file, 4.0 kB in 2.0 s (2.0 kB/s)");
  done.counts.files = 2, done.counts.files_unchanged = 3, done.counts.files_failed = 4, done.counts.segments_resent = 5;
  CHECK(summary_line(done) == "2 files, 4.0 kB in 2.0 s (2.0 kB/s), 3 unchanged, 4 failed, 5 segments sent again");
  done.seconds = 0;
  CHECK(summary_line(done) == "2 files, 4.0 kB in 0.0 s (0 B/s), 3 unchanged, 4 failed, 5 segments sent again");
  done.counts = {};
  done.counts.helped = true;
  done.seconds = 2;
  done.counts.bytes_sent = 4000;
  CHECK(summary_line(done) == "helped: 4.0 kB sent in 2.0 s; the process that leads the transfer tells of it");
}

TEST_CASE("summary_line__a_failure_that_moved_nothing__no_rate_of_it") {
  Done done;
  done.kind = ErrorKind::network;
  done.seconds = 4;
  CHECK(summary_line(done) == "failed after 4.0 s");
  done.counts.files_failed = 2;
  CHECK(summary_line(done) == "failed after 4.0 s, 2 failed");
  for (uint64_t Counts::*moved : {&Counts::files, &Counts::files_unchanged, &Counts::bytes}) {
    Done some = done;
    some.counts.*moved = 1;
    CHECK(summary_line(some).find("failed after") == std::string::npos);
  }
}

TEST_CASE("statistics__files_bytes_and_what_went_again") {
  Done done;
  CHECK(statistics(done, {}) == Lines{"0 files delivered, 0 unchanged at the receiver, 0 failed", "0 B delivered in 0:00, 0 B/s",
                                      "0 B went over the network"});
  done.counts.files = 1, done.counts.files_unchanged = 2, done.counts.files_failed = 3;
  done.counts.bytes = 4000, done.counts.bytes_sent = 5000, done.counts.segments_resent = 1;
  done.seconds = 2;
  CHECK(statistics(done, {}) == Lines{"1 file delivered, 2 unchanged at the receiver, 3 failed",
                                      "4.0 kB delivered in 0:02, 2.0 kB/s", "5.0 kB went over the network, 1 segment of it again"});
  done.counts.segments_resent = 2;
  CHECK(statistics(done, {}).back() == "5.0 kB went over the network, 2 segments of it again");
}

TEST_CASE("statistics__reasons__by_how_often_and_what_was_left_out") {
  FileTally files;
  files.count("ok", "");
  for (int i = 0; i < 2; ++i) files.count("failed", "no\nspace");
  files.count("failed", "denied");
  files.count("failed", "a name");
  files.count("skipped", "a socket");
  files.count("skipped", "a device");
  files.count("skipped", "a socket");
  const Lines lines = statistics({}, files);
  REQUIRE(lines.size() == 9);
  CHECK(Lines(lines.begin() + 1, lines.begin() + 7) ==
        Lines{"  2: no%0Aspace", "  1: a name", "  1: denied", "3 left out", "  2: a socket", "  1: a device"});
  CHECK(files.reasons("ok").empty());
  CHECK(files.reasons("unheard of").empty());
}

TEST_CASE("statistics__more_reasons_than_are_counted__the_rest_together_and_last") {
  FileTally files;
  for (size_t i = 0; i < reasons_counted_max; ++i) files.count("failed", "reason " + std::to_string(i));
  CHECK(files.reasons("failed").size() == reasons_counted_max);
  for (int i = 0; i < 5; ++i) files.count("failed", "one more " + std::to_string(i));
  files.count("failed", "reason 7");  // known: counted as before
  const auto reasons = files.reasons("failed");
  REQUIRE(reasons.size() == reasons_counted_max + 1);
  CHECK(reasons.front() == std::pair<std::string, uint64_t>("reason 7", 2));
  CHECK(reasons.back() == std::pair<std::string, uint64_t>("other reasons", 5));
}

TEST_CASE("progress_line__what_is_not_known_is_not_shown") {
  CHECK(progress_line({1, 0, 0, 0, -1, 0, -1}, true, 200) == "0 B of 0 B  0 B/s  1 file");
  CHECK(progress_line({0, 50, 100, 10, 5, 0, -1}, false, 200) == "50 B of 100 B+  10 B/s  0:05  0 files");
  CHECK(progress_line({2, 150, 100, 10, 0, 0, -1}, true, 200) == "150 B of 150 B  100%  10 B/s  0:00  2 files");
  const std::string whole = progress_line({2, 50, 100, 10, 5, 0, -1}, true, 200);
  CHECK(progress_line({2, 50, 100, 10, 5, 0, -1}, true, static_cast<unsigned>(whole.size())) == whole);
  CHECK(progress_line({2, 50, 100, 10, 5, 0, -1}, true, static_cast<unsigned>(whole.size()) - 1) == "50%  10 B/s  0:05  2 files");
}

TEST_CASE("progress_line__80_and_40_columns__rate_files_time_and_what_it_waits_for") {
  Progress large{123'456, 888'000'000'000, 1'999'900'000'000, 812e6, 3723, 0, -1, {Waits::network, "192.0.2.2:7000"}};
  CHECK(progress_line(large, true, 200) ==
        "888 GB of 2.0 TB  44%  812 MB/s  1:02:03  123456 files  slowest: network at 192.0.2.2:7000");
  CHECK(progress_line(large, true, 79) == "888 GB of 2.0 TB  44%  812 MB/s  1:02:03  123456 files  slowest: network");
  CHECK(progress_line(large, true, 70) == "44%  812 MB/s  1:02:03  123456 files  slowest: network");
  CHECK(progress_line(large, true, 39) == "44% 812 MB/s 1:02:03 123456 files net");
  CHECK(progress_line(large, true, 34) == "44% 812 MB/s 1:02:03 123456 f net");
  CHECK(progress_line(large, false, 39) == "888 GB 812 MB/s 1:02:03 123456 f net");  // of how many nobody knows
  const std::pair<Waits, std::string> words[] = {{Waits::source_disk, "source disk|src"},
                                                 {Waits::destination_disk, "destination disk|dst"},
                                                 {Waits::source_or_network, "source or network|src/net"},
                                                 {Waits::bandwidth_limit, "--bwlimit|cap"}};
  for (const auto& [what, both] : words) {
    large.waiting = {what, ""};
    const size_t bar = both.find('|');
    CHECK(progress_line(large, true, 79).ends_with("  slowest: " + both.substr(0, bar)));
    CHECK(progress_line(large, true, 39).ends_with(" " + both.substr(bar + 1)));
  }
  large.waiting = {Waits::network, "esc \x1b[2J"};  // a name of the peer's world
  CHECK(progress_line(large, true, 200).find('\x1b') == std::string::npos);
}

TEST_CASE("summary_line__what_was_left_out_and_deleted__is_said") {
  Done done;
  done.counts = {3, 2, 1, 5'000'000, 5'000'000, 0};
  done.seconds = 2;
  done.others = {4, 7};
  CHECK(summary_line(done) == "3 files, 5.0 MB in 2.0 s (2.5 MB/s), 2 unchanged, 1 failed, 4 left out, 7 deleted");
}

TEST_CASE("format_seconds__each_place") {
  CHECK(format_seconds(59.9) == "0:59");
  CHECK(format_seconds(60) == "1:00");
  CHECK(format_seconds(3599) == "59:59");
  CHECK(format_seconds(3600) == "1:00:00");
  CHECK(format_seconds(360'000) == "100:00:00");
}

TEST_CASE("rate_meter__a_tiny_file_comes_first__counts_for_its_moment_only") {
  RateMeter meter;
  const Instant start{1h};
  CHECK(meter.bytes_per_s() == 0);
  meter.sample(start, 0);
  meter.sample(start + 200ms, 6);
  CHECK(meter.bytes_per_s() == Approx(30));
  CHECK_FALSE(meter.is_settled());
  uint64_t bytes = 6;
  for (int i = 1; i <= 4; ++i) {
    bytes += 65'000'000;
    meter.sample(start + 200ms + i * 250ms, bytes);
    if (i == 1) CHECK(meter.bytes_per_s() > 130e6);
    if (i == 1) CHECK(meter.bytes_per_s() < 160e6);
  }
  CHECK(meter.is_settled());
  CHECK(meter.bytes_per_s() > 200e6);
  CHECK(meter.bytes_per_s() < 260e6);
}

TEST_CASE("rate_meter__begins_with_what_it_sees_and_follows_within_seconds") {
  RateMeter meter;
  const Instant start{1s};
  meter.sample(start, 1000);
  CHECK(meter.bytes_per_s() == 0);  // of one sample nothing can be said
  meter.sample(start + 1s, 3000);
  CHECK(meter.bytes_per_s() == Approx(2000));
  meter.sample(start + 1s + 40ms, 9'000'000);  // too short to say anything
  CHECK(meter.bytes_per_s() == Approx(2000));
  meter.sample(start + 2s, 3000);
  // A second ago counts exp(-1/2) of what is now.
  const double fades = std::exp(-0.5);
  const double after_nothing = 2000 * fades / (1 + fades);
  CHECK(meter.bytes_per_s() == Approx(after_nothing));
  meter.sample(start + 3s, 500);  // another transfer: it begins anew, and the memory fades
  CHECK(meter.bytes_per_s() == Approx(after_nothing));
  meter.sample(start + 4s, 4500);
  CHECK(meter.bytes_per_s() == Approx((4000 + 2000 * fades * fades) / (1 + fades + fades * fades)));
}

TEST_CASE("advised__what_where_and_what_to_do__each_once") {
  const auto words = [](ErrorKind kind, const char* message, const char* where) { return advised({kind, message}, where).message; };
  CHECK(words(ErrorKind::ok, "fine", "f") == "fine");
  CHECK(words(ErrorKind::no_space, "disk full", "/d/x") ==
        "disk full: /d/x: free some space there and run the same command again to resume");
  CHECK(words(ErrorKind::no_space, "/d/x: disk full", "/d/x") ==
        "disk full: /d/x: free some space there and run the same command again to resume");
  CHECK(words(ErrorKind::network, "lost tcp://h", "h") == "lost tcp://h: run the same command again to resume");
  CHECK(words(ErrorKind::network, "lost", "") == "lost: run the same command again to resume");
  CHECK(words(ErrorKind::network, "a: b: c", "h") == "a: b: c");
  CHECK(words(ErrorKind::network, "a: b", "h") == "a: b: h: run the same command again to resume");
  CHECK(words(ErrorKind::partial, "1 file failed: the rest is delivered", "h") == "1 file failed: the rest is delivered");
}

TEST_CASE("advised__each_kind_has_advice_of_its_own_need") {
  const auto advice = [](ErrorKind kind) { return advised({kind, "x"}, "").message.substr(3); };
  CHECK(advice(ErrorKind::no_answer) == "check that the peer runs and can be reached");
  CHECK(advice(ErrorKind::no_route) == "check the routers and their configuration (ccixfer routes)");
  CHECK(advice(ErrorKind::source_selection) == "name a file or directory that exists");
  CHECK(advice(ErrorKind::not_authorised) == "name a place below the peer's directory");
  CHECK(advice(ErrorKind::file_io) == "mend what it names and run the same command again to resume");
  CHECK(advice(ErrorKind::protocol) == "use the same version at both ends");
  CHECK(advice(ErrorKind::integrity) == "check memory and disks at both ends and run again");
  CHECK(advice(ErrorKind::bug) == "report it with the log (-vv --log-file FILE)");
  CHECK(advice(ErrorKind::usage) == "correct it and try again");
  for (const ErrorKind kind : {ErrorKind::network, ErrorKind::interrupted, ErrorKind::timeout})
    CHECK(advice(kind) == "run the same command again to resume");
  for (const ErrorKind kind : {ErrorKind::partial, ErrorKind::vanished})
    CHECK(advice(kind) == "see the files that are named and run again");
}

TEST_CASE("run_line__counts_what_is_known_of_a_run") {
  JobRun run;
  run.job = "nightly";
  run.destination = "tcp://h/d";
  run.began_s = 100;
  run.ended_s = 160;
  run.exit = 0;
  run.status = "ok";
  run.files = 1;
  CHECK(run_line(run).find(": ok: 1 file, 0 unchanged, 0 failed, 0 B in ") != std::string::npos);
  run.files = 2;
  CHECK(run_line(run).find(": ok: 2 files, ") != std::string::npos);
  run.exit = 20;
  run.status = run_killed;
  run.reason = "ended by signal 9 (KILL)";
  run.files = 0;
  CHECK(run_line(run).find(": killed (20): ended by signal 9 (KILL): after ") != std::string::npos);
  CHECK(run_line(run).find(" files") == std::string::npos);
}

TEST_CASE("history_line__one_file__is_one_file") {
  const auto text = [](const char* line) { return history_line(0, line).value().text; };
  CHECK(text(R"({"transfer":"01","peer":"p","status":"ok","files":1})").find(": ok: 1 file, 0 unchanged") != std::string::npos);
  CHECK(text(R"({"transfer":"01","peer":"p","status":"ok","files":2})").find(": ok: 2 files, 0 unchanged") != std::string::npos);
}

}  // namespace ccixfer::report
