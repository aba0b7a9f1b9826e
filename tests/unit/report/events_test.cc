// JSON events and the lines for people.
#include "app/report/events.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/report/line_output.h"
#include "app/report/outcome.h"
#include "app/report/progress_line.h"
#include "app/report/reporter.h"
#include "core/base/local_kinds.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::report {
namespace {

nlohmann::json parsed(const std::string& line) {
  CHECK(line.find('\n') == std::string::npos);
  return nlohmann::json::parse(line);
}

}  // namespace

TEST_CASE("events__done__has_every_member_of_the_contract") {
  Done done;
  done.kind = ErrorKind::no_space;
  done.counts.files = 7;
  done.counts.bytes = 1000;
  done.counts.bytes_sent = 1200;
  done.seconds = 2;
  done.counters = {{"routed_bytes", 9}};
  const auto json = parsed(done_event(1.5, done));
  CHECK(json["event"] == "done");
  CHECK(json["t"] == 1.5);
  CHECK(json["status"] == "no_space");
  CHECK(json["exit"] == 44);
  for (const char* member :
       {"files", "files_unchanged", "files_failed", "bytes", "bytes_sent", "segments_resent", "seconds", "bytes_per_s"}) {
    INFO(member);
    CHECK(json.contains(member));
  }
  CHECK(json["bytes_per_s"] == 500);
  CHECK(json["counters"]["routed_bytes"] == 9);
}

TEST_CASE("events__names__never_raw_and_flagged_when_not_utf8") {
  const auto plain = parsed(file_event(0, {"dir/\xC3\xA9\n\x1b[0m", 3, "ok", "", ""}));
  CHECK(plain["path"] == "dir/\xC3\xA9\n\x1b[0m");
  CHECK_FALSE(plain.contains("escaped"));
  CHECK_FALSE(plain.contains("reason"));
  const std::string line = file_event(0, {"x\xC2\x9By", 3, "ok", "", ""});
  CHECK(line.find('\x9B') == std::string::npos);  // no C1 control reaches a terminal
  const auto odd = parsed(file_event(0, {"not utf8 \xFF\xFE", 3, "failed", "why \xFF", ""}));
  CHECK(odd["path"] == "not utf8 %FF%FE");
  CHECK(odd["escaped"] == true);
  CHECK(odd["reason"] == "why %FF");
}

TEST_CASE("events__session_progress_ready_retry__shapes") {
  const auto session = parsed(session_event(0, {"ab", "tcp://h:1", {{"tcp", "tcp://h:1", "1:2", 0.5}}, ""}));
  CHECK(session["path"][0]["transport"] == "tcp");
  CHECK(session["path"][0]["node"] == "tcp://h:1");
  const auto progress = parsed(progress_event(0, {1, 2, 3, 4, -1}));
  CHECK(progress["eta_s"].is_null());
  CHECK(progress["bytes_total"] == 3);
  CHECK(parsed(ready_event(0, {"cci://1:2:h:1", "tcp://h:1"}))["uris"].size() == 2);
  CHECK(parsed(retry_event(0, "lost"))["reason"] == "lost");
  const auto waiting = parsed(waiting_event(1, "ab", 3));
  CHECK(waiting["event"] == "waiting");
  CHECK(waiting["transfer"] == "ab");
  CHECK(waiting["before"] == 3);
}

TEST_CASE("events__utf8__as_the_standard_has_it") {
  // The first and the last of each length, and what stands on both sides of the gaps.
  for (const char* good : {"", "plain \xF0\x9F\x98\x80", "\x7F", "\xC2\x80", "\xC3\xBF", "\xDF\xBF", "\xE0\xA0\x80", "\xE1\x80\x80",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF1\x80\x80\x80",
                           "\xF4\x8F\xBF\xBF", "\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80 "}) {
    INFO(printable(good));
    CHECK(is_utf8(good));
  }
  for (const char* bad : {"\xC0\x80",
                          "\xC1\xBF",
                          "\xE0\x9F\xBF",
                          "\xF0\x8F\xBF\xBF",
                          "\xED\xA0\x80",
                          "\xED\xBF\xBF",
                          "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80",
                          "\xFF\x80\x80\x80",
                          "\xE0\x80\x80",
                          "\x80",
                          "\xBF",
                          "\xC3",
                          "\xC3 ",
                          "\xC3\xC3",
                          "\xE1\x80",
                          "\xE1\x80 ",
                          "\xE1 \x80",
                          "\xF0\x9F\x98",
                          "\xF1 \x80\x80",
                          "\xF1\x80 \x80",
                          "\xF1\x80\x80 ",
                          "good \xE1\x80\x80\x80"}) {
    INFO(printable(bad));
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("outcome__precedence__every_kind_once_and_the_worse_wins") {
  CHECK(precedence().size() == static_cast<size_t>(last_kind) + 1);
  for (size_t i = 0; i < precedence().size(); ++i) {
    for (size_t k = i; k < precedence().size(); ++k) CHECK(worse(precedence()[k], precedence()[i]) == precedence()[i]);
  }
  CHECK(worse(ErrorKind::integrity, ErrorKind::no_space) == ErrorKind::integrity);
  CHECK(worse(ErrorKind::file_io, ErrorKind::no_space) == ErrorKind::no_space);
  CHECK(worse(ErrorKind::vanished, ErrorKind::partial) == ErrorKind::partial);
  CHECK(worse(ErrorKind::ok, ErrorKind::vanished) == ErrorKind::vanished);
}

TEST_CASE("outcome__counts__24_only_when_nothing_failed_otherwise") {
  for (const uint64_t failed : {0u, 1u, 2u, 3u}) {
    for (const uint64_t vanished : {0u, 1u, 2u, 3u}) {
      const ErrorKind expected = failed > 0 ? ErrorKind::partial : vanished > 0 ? ErrorKind::vanished : ErrorKind::ok;
      INFO(failed << " failed, " << vanished << " vanished");
      CHECK(kind_of_counts(failed, vanished) == expected);
    }
  }
}

TEST_CASE("progress_line__narrow_terminal__whole_fields_within_the_width") {
  const Progress progress{12, 4'200'000'000, 10'000'000'000, 812e6, 7, 0, -1};
  const std::string whole = progress_line(progress, true, 200);
  CHECK(whole.find("42%") != std::string::npos);
  CHECK(whole.find("0:07") != std::string::npos);
  for (unsigned width = 0; width < 80; ++width) {
    const std::string line = progress_line(progress, true, width);
    CHECK(line.size() <= width);
    CHECK((line.empty() || std::string_view("%sf").find(line.back()) != std::string_view::npos || line.ends_with("0:07")));
  }
  CHECK(progress_line({0, 10, 0, 0, -1, 0, -1}, false, 200).find("+") != std::string::npos);
}

TEST_CASE("progress_line__nothing_moves__how_long_and_when_it_ends_instead_of_a_rate") {
  const Progress stalled{12, 4'200'000'000, 10'000'000'000, 812e6, -1, 8.9, 60};
  CHECK(progress_line(stalled, true, 200) == "4.2 GB of 10.0 GB  42%  no progress for 8 s, gives up at 60 s  12 files");
  const Progress patient{12, 4'200'000'000, 10'000'000'000, 812e6, -1, 100, -1};
  CHECK(progress_line(patient, true, 200) == "4.2 GB of 10.0 GB  42%  no progress for 100 s  12 files");
}

TEST_CASE("progress_event__what_it_waits_for__is_named_with_the_slowest_hop") {
  CHECK(progress_event(1, {1, 2, 3, 4, -1, 0, -1, {Waits::destination_disk, ""}}) ==
        R"({"event":"progress","t":1.0,"files":1,"bytes":2,"bytes_total":3,"bytes_per_s":4.0,"eta_s":null,)"
        R"("bottleneck":"destination_disk"})");
  CHECK(progress_event(1, {1, 2, 3, 4, -1, 0, -1, {Waits::network, "h:1"}}).find(R"("bottleneck":"network","hop":"h:1")") !=
        std::string::npos);
}

TEST_CASE("progress_event__nothing_moves__says_for_how_long_and_no_time_of_arrival") {
  CHECK(progress_event(1, {1, 2, 3, 4, -1, 8.25, 60}) ==
        R"({"event":"progress","t":1.0,"files":1,"bytes":2,"bytes_total":3,"bytes_per_s":4.0,"eta_s":null,"stalled_s":8.3})");
  CHECK(progress_event(1, {1, 2, 3, 4, 0.2, 0, -1}).find("stalled_s") == std::string::npos);
}

TEST_CASE("ended_line__who_where_to_how_much_and_how_it_ended") {
  Ended ended;
  ended.peer = "tcp://10.0.0.2:5";
  ended.path = "run\n1";
  ended.counts.files = 1;
  ended.counts.files_unchanged = 2;
  ended.counts.files_failed = 3;
  ended.counts.bytes = 4000;
  CHECK(ended_line(ended) ==
        "transfer from tcp://10.0.0.2:5 into run%0A1 ended well: 1 file delivered, 2 unchanged, 3 failed, 4.0 kB");
  ended.name = "site-a";
  CHECK(ended_line(ended).starts_with("transfer from site-a into run%0A1 ended well"));
  ended.name.clear();
  ended.path.clear();
  ended.serves = true;
  ended.kind = ErrorKind::network;
  ended.reason = "the peer is gone";
  ended.counts.files = 2;
  CHECK(ended_line(ended) ==
        "transfer of the root to tcp://10.0.0.2:5 ended: network: the peer is gone: 2 files delivered, 2 unchanged, 3 failed, 4.0 "
        "kB");
}

TEST_CASE("format_seconds__hours_and_extremes") {
  CHECK(format_seconds(7) == "0:07");
  CHECK(format_seconds(3723) == "1:02:03");
  CHECK(format_seconds(-1) == "0:00");
  CHECK_FALSE(format_seconds(1e300).empty());
}

TEST_CASE("error_line__peer_words__are_printable") {
  const std::string line = error_line({ErrorKind::network, "lost: \x1b[31mred\n"});
  CHECK(line.rfind("ccixfer: ", 0) == 0);
  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("line_output__reader_that_sleeps__nothing_blocks_and_nothing_is_lost") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  LineOutput output(ends[1]);
  const std::string line(1000, 'x');
  for (int i = 0; i < 1000; ++i) output.line(line);  // fifteen pipes full: would never return if it blocked
  CHECK(output.waiting());
  size_t total = 0;
  std::vector<char> buffer(1 << 16);
  while (total < 1001u * 1000u) {
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    REQUIRE(got > 0);
    total += static_cast<size_t>(got);
    output.flush();
  }
  CHECK_FALSE(output.waiting());
  close(ends[0]);
  close(ends[1]);
}

// Beyond what may wait in memory it blocks, until the reader has taken enough.
TEST_CASE("line_output__more_than_may_wait__waits_for_the_reader_and_loses_nothing") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  size_t total = 0;
  std::thread reader([&] {
    std::vector<char> buffer(1 << 16);
    for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) total += static_cast<size_t>(got);
  });
  const size_t lines = line_bytes_queued_max / (1u << 20) + 3;
  {
    LineOutput output(ends[1]);
    const std::string line((1u << 20) - 1, 'x');
    for (size_t i = 0; i < lines; ++i) output.line(line);
    output.flush_all();
    CHECK_FALSE(output.waiting());
    CHECK(output.error() == 0);
  }
  close(ends[1]);
  reader.join();
  close(ends[0]);
  CHECK(total == lines << 20);
}

}  // namespace ccixfer::report
