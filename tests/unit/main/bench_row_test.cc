// What is said of a row: to people and to scripts.
#include "app/main/bench_row.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

using Lines = std::vector<std::string>;

bench::Row row_of(const std::string& test) {
  bench::Row row;
  row.test = test;
  row.count = 100;
  row.took = std::chrono::seconds(2);
  return row;
}

bench::Row completion_of(const std::string& test, double reduction, double paper) {
  bench::Row row = row_of(test);
  row.latency_of = "half round trip";
  row.latency = {std::chrono::microseconds(1), std::chrono::microseconds(2), std::chrono::microseconds(3),
                 std::chrono::microseconds(4), std::chrono::microseconds(5)};
  row.reduction = reduction;
  row.reduction_paper = paper;
  return row;
}

}  // namespace

TEST_CASE("bench_row__columns__stand_under_their_heads") {
  const auto gap = [](size_t spaces) { return std::string(spaces, ' '); };
  CHECK(bench_head() ==
        "test" + gap(21) + "bytes  depth      count  half round trip (connect, empty-turn: each)" + gap(26) + "rate");
  bench::Row row = row_of("rma-write");
  row.size_bytes = 1'000'000;
  row.depth = 8;
  CHECK(bench_lines(row) == Lines{"rma-write" + gap(14) + "1000000      8        100" + gap(66) + "50.0 MB/s"});
  row = row_of("message-rate");
  row.size_bytes = 64;
  CHECK(bench_lines(row).front().find(" 50 /s") != std::string::npos);
  row.took = Duration{0};  // no time, no rate
  CHECK(bench_lines(row).front().find("/s") == std::string::npos);
  row = completion_of("empty-turn", 0, 0);
  row.connections = 30;
  CHECK(bench_lines(row) ==
        Lines{"empty-turn 30" + gap(23) + "1        100  min 1.00 50% 2.00 90% 3.00 99% 4.00 99.9% 5.00 us" + gap(24)});
}

TEST_CASE("bench_row__a_put_beside_other_ways__says_how_much_less_and_never_below_nothing") {
  const std::string less = "  a put takes 25.0 % less than ";
  const bench::Row message = completion_of("completion-message", 0.25, 0.658),
                   exchange = completion_of("completion-exchange", 0.25, 0);
  REQUIRE(bench_lines(message).size() == 2);
  CHECK(bench_lines(message)[1].rfind(less + "a write with its completion message (", 0) == 0);
  REQUIRE(bench_lines(exchange).size() == 2);
  CHECK(bench_lines(exchange)[1] == less + "with an address exchange first");
  CHECK(bench_lines(completion_of("completion-put", 0.25, 0)).size() == 1);
  CHECK(bench_json(message).reduction == 0.25);
  CHECK(bench_json(message).reduction_paper == 0.658);
  CHECK(bench_json(exchange).reduction == 0.25);
  CHECK(bench_json(completion_of("completion-put", 0.25, 0)).reduction == -1);  // it has none
  for (const char* test : {"completion-message", "completion-exchange"}) {
    CHECK(bench_json(completion_of(test, -0.5, test == std::string("completion-message") ? 0.658 : 0)).reduction == 0);
  }
}

TEST_CASE("bench_row__puts_that_found_no_buffer__are_told_if_there_were_any") {
  bench::Row row = row_of("rvma-put");
  CHECK(bench_lines(row).size() == 1);
  row.again = 1;
  REQUIRE(bench_lines(row).size() == 2);
  CHECK(bench_lines(row)[1] == "  1 puts found no buffer and went out again");
  CHECK(bench_json(row).again == 1);
}

TEST_CASE("bench_row__for_scripts__every_member_in_seconds") {
  bench::Row row = completion_of("message-latency", 0, 0);
  row.size_bytes = 8;
  row.depth = 2;
  row.connections = 3;
  const report::BenchRow json = bench_json(row);
  CHECK(json.test == "message-latency");
  CHECK(json.latency_of == "half_round_trip_s");
  CHECK(json.size_bytes == 8);
  CHECK(json.depth == 2);
  CHECK(json.connections == 3);
  CHECK(json.count == 100);
  CHECK(json.again == 0);
  CHECK(json.seconds == 2);
  CHECK(json.min_s == Approx(1e-6));
  CHECK(json.p50_s == Approx(2e-6));
  CHECK(json.p90_s == Approx(3e-6));
  CHECK(json.p99_s == Approx(4e-6));
  CHECK(json.p99_9_s == Approx(5e-6));
  CHECK(json.reduction == -1);
  CHECK(bench_json(row_of("rma-read")).latency_of.empty());
}
