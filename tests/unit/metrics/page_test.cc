// The metrics as text, in both formats.
#include "app/metrics/page.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

struct Process {
  Counters counters;
  Activity activity;
  [[nodiscard]] std::string text(Format format, bool is_router = false) const {
    return page({"0.1.0", is_router ? "router" : "receiver", 1000.5, &counters, is_router ? nullptr : &activity}, format, 1.25,
                4096);
  }
};

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("page__who_was_not_answered__is_counted_by_reason") {
  const Counters counters;
  Refusals refusals;
  refusals.add(Refused::wrong_token);
  refusals.add(Refused::wrong_token);
  refusals.add(Refused::no_place);
  const std::string text =
      page({.version = "0.1.0", .role = "router", .counters = &counters, .refusals = &refusals}, Format::openmetrics, 0, 0);
  for (const char* line :
       {"# TYPE ccixfer_metrics_refused counter", "ccixfer_metrics_refused_total{reason=\"no_token\"} 0",
        "ccixfer_metrics_refused_total{reason=\"wrong_token\"} 2", "ccixfer_metrics_refused_total{reason=\"no_tls\"} 0",
        "ccixfer_metrics_refused_total{reason=\"no_place\"} 1"}) {
    INFO(line);
    CHECK(has_line(text, line));
  }
}

TEST_CASE("page__a_receiver__says_what_it_did") {
  Process process;
  process.counters.add(Counter::bytes_in, 7);
  process.counters.add(Counter::segments_bad, 2);
  process.activity.session_opened();
  process.activity.session_opened();
  process.activity.session_opened();
  process.activity.session_ended(ErrorKind::ok, 0.5);
  process.activity.session_ended(ErrorKind::no_space, 7200);
  process.activity.session_refused(ErrorKind::authentication);
  process.activity.delivered(3, 4, 5, uint64_t{1} << 50);
  const std::string text = process.text(Format::prometheus);
  for (const char* line : {"ccixfer_build_info{role=\"receiver\",version=\"0.1.0\"} 1",
                           "process_start_time_seconds 1000.500",
                           "process_cpu_seconds_total 1.250",
                           "ccixfer_resident_memory_max_bytes 4096",
                           "ccixfer_sessions 1",
                           "ccixfer_sessions_opened_total 3",
                           "ccixfer_sessions_ended_total{status=\"ok\"} 1",
                           "ccixfer_sessions_ended_total{status=\"no_space\"} 1",
                           "ccixfer_sessions_ended_total{status=\"bug\"} 0",
                           "ccixfer_session_duration_seconds_bucket{le=\"0.1\"} 0",
                           "ccixfer_session_duration_seconds_bucket{le=\"1.0\"} 1",
                           "ccixfer_session_duration_seconds_bucket{le=\"3600.0\"} 1",
                           "ccixfer_session_duration_seconds_bucket{le=\"21600.0\"} 2",
                           "ccixfer_session_duration_seconds_bucket{le=\"+Inf\"} 2",
                           "ccixfer_session_duration_seconds_sum 7200.500",
                           "ccixfer_session_duration_seconds_count 2",
                           "# TYPE ccixfer_session_duration_seconds histogram",
                           "ccixfer_sessions_refused_total{status=\"authentication\"} 1",
                           "ccixfer_sessions_refused_total{status=\"no_space\"} 0",
                           "ccixfer_files_total{outcome=\"delivered\"} 3",
                           "ccixfer_files_total{outcome=\"unchanged\"} 4",
                           "ccixfer_files_total{outcome=\"failed\"} 5",
                           "ccixfer_delivered_bytes_total 1125899906842624",
                           "ccixfer_network_received_bytes_total 7",
                           "ccixfer_segments_bad_total 2",
                           "# TYPE ccixfer_segments_bad_total counter"}) {
    INFO(line);
    CHECK(has_line(text, line));
  }
  const std::string router = process.text(Format::prometheus, true);
  CHECK(router.find("ccixfer_sessions") == std::string::npos);
  CHECK(has_line(router, "ccixfer_segments_bad_total 2"));
}

TEST_CASE("page__a_router__says_what_it_passed_on_by_device_and_class") {
  Counters counters;
  Subject subject{"0.1.0", "router", 1000.5, &counters};
  subject.traffic = [] { return RouterTraffic{{{"lan", 3, 4}, {"a\"b\\c\n", 5, 6}}, {7, 8}, {{"no_way", 9}}}; };
  const std::string text = page(subject, Format::prometheus, 1, 1);
  for (const char* line :
       {"ccixfer_router_received_bytes_total{device=\"lan\"} 3", "ccixfer_router_sent_bytes_total{device=\"lan\"} 4",
        R"(ccixfer_router_received_bytes_total{device="a\"b\\c\n"} 5)", "ccixfer_router_fragment_bytes_total{crossed=\"0\"} 7",
        "ccixfer_router_fragment_bytes_total{crossed=\"1\"} 8", "ccixfer_router_refused_total{reason=\"no_way\"} 9"}) {
    INFO(line);
    CHECK(has_line(text, line));
  }
}

TEST_CASE("page__a_disk__says_how_long_each_kind_of_call_took_and_what_it_moved") {
  const Counters counters;
  host::DiskTimes disk;
  disk.observe(host::DiskCall::read, std::chrono::microseconds(50), 10);
  disk.observe(host::DiskCall::write, std::chrono::milliseconds(2), 7);
  disk.observe(host::DiskCall::write, std::chrono::milliseconds(20), 8);
  disk.observe(host::DiskCall::sync, std::chrono::seconds(200), 0);
  const std::string text =
      page({.version = "0.1.0", .role = "receiver", .counters = &counters, .disk = &disk}, Format::openmetrics, 0, 0);
  for (const char* line : {"# TYPE ccixfer_disk_call_duration_seconds histogram",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="read",le="0.0001"} 1)",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="write",le="0.001"} 0)",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="write",le="0.01"} 1)",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="write",le="0.1"} 2)",
                           R"(ccixfer_disk_call_duration_seconds_sum{call="write"} 0.022)",
                           R"(ccixfer_disk_call_duration_seconds_count{call="write"} 2)",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="sync",le="120.0"} 0)",
                           R"(ccixfer_disk_call_duration_seconds_bucket{call="sync",le="+Inf"} 1)",
                           "ccixfer_disk_read_bytes_total 10", "ccixfer_disk_written_bytes_total 15"}) {
    INFO(line);
    CHECK(has_line(text, line));
  }
}

TEST_CASE("page__both_formats__name_each_family_once_and_their_samples_after_it") {
  const Process process;
  for (const Format format : {Format::openmetrics, Format::prometheus}) {
    const std::string text = process.text(format);
    std::map<std::string, std::string> kinds;
    std::set<std::string> samples;
    std::string family;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      std::istringstream words(line);
      std::string first, second, name, kind;
      words >> first >> second >> name >> kind;
      if (line == "# EOF") continue;
      if (second == "HELP") {
        CHECK(kinds.find(name) == kinds.end());
        family = name;
      } else if (second == "TYPE") {
        CHECK(name == family);
        kinds[name] = kind;
        CHECK((kind == "counter" || kind == "gauge" || kind == "histogram"));
        CHECK(name.ends_with("_total") == (kind == "counter" && format == Format::prometheus));
      } else {
        CHECK(samples.insert(first).second);
        std::string sample = first.substr(0, first.find('{'));
        if (kinds[family] == "histogram") {
          const std::string ending = sample.substr(std::min(sample.size(), family.size()));
          CHECK((ending == "_bucket" || ending == "_sum" || ending == "_count"));
          sample = family;
        }
        CHECK(sample == (kinds[family] == "counter" && format == Format::openmetrics ? family + "_total" : family));
      }
    }
    CHECK(kinds.size() > static_cast<size_t>(Counter::count_));
    CHECK(text.ends_with("# EOF\n") == (format == Format::openmetrics));
  }
}

TEST_CASE("page__format__is_the_one_that_was_asked_for") {
  CHECK(format_of("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1") == Format::openmetrics);
  CHECK(format_of("text/plain") == Format::prometheus);
  CHECK(format_of("") == Format::prometheus);
  CHECK(content_type(Format::openmetrics).find("1.0.0") != std::string_view::npos);
  CHECK(content_type(Format::prometheus).find("0.0.4") != std::string_view::npos);
}
