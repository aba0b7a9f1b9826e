#include "app/main/bench_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace ccixfer::program {
namespace {

constexpr const char* table_form = "{:<20} {:>9} {:>6} {:>10}  {:<58} {:>14}";

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string microseconds(Duration duration) {
  return fmt::format("{:.2f}", std::chrono::duration<double, std::micro>(duration).count());
}

std::string latency_words(const bench::Row& row) {
  if (row.latency_of.empty()) return "";
  const bench::Percentiles& p = row.latency;
  return fmt::format("min {} 50% {} 90% {} 99% {} 99.9% {} us", microseconds(p.min), microseconds(p.p50), microseconds(p.p90),
                     microseconds(p.p99), microseconds(p.p99_9));
}

std::string rate_words(const bench::Row& row) {
  if (!row.latency_of.empty() || row.took.count() <= 0) return "";
  const double per_s = static_cast<double>(row.count) / seconds_of(row.took);
  if (row.test == to_string(bench::Test::message_rate)) return fmt::format("{:.0f} /s", per_s);
  return format_rate(per_s * static_cast<double>(row.size_bytes));
}

}  // namespace

std::string bench_head() {
  return fmt::format(table_form, "test", "bytes", "depth", "count", "half round trip (connect, empty-turn: each)", "rate");
}

std::vector<std::string> bench_lines(const bench::Row& row) {
  const bool many = row.test == to_string(bench::Test::empty_turn);
  std::vector<std::string> lines{fmt::format(table_form, many ? fmt::format("{} {}", row.test, row.connections) : row.test,
                                             row.size_bytes == 0 ? "" : fmt::format("{}", row.size_bytes), row.depth, row.count,
                                             latency_words(row), rate_words(row))};
  if (row.reduction_paper > 0) {
    lines.push_back(fmt::format(
        "  a put takes {:.1f} % less than a write with its completion message (RVMA paper: 65.8 % over verbs, 45.8 % over UCX)",
        row.reduction * 100));
  } else if (row.test == "completion-exchange") {
    lines.push_back(fmt::format("  a put takes {:.1f} % less than with an address exchange first", row.reduction * 100));
  }
  if (row.again > 0) lines.push_back(fmt::format("  {} puts found no buffer and went out again", row.again));
  return lines;
}

report::BenchRow bench_json(const bench::Row& row) {
  report::BenchRow out;
  out.test = row.test;
  if (!row.latency_of.empty()) {
    out.latency_of = row.latency_of + "_s";
    std::replace(out.latency_of.begin(), out.latency_of.end(), ' ', '_');
  }
  out.size_bytes = row.size_bytes;
  out.depth = row.depth;
  out.connections = row.connections;
  out.count = row.count;
  out.again = row.again;
  out.seconds = seconds_of(row.took);
  out.min_s = seconds_of(row.latency.min);
  out.p50_s = seconds_of(row.latency.p50);
  out.p90_s = seconds_of(row.latency.p90);
  out.p99_s = seconds_of(row.latency.p99);
  out.p99_9_s = seconds_of(row.latency.p99_9);
  if (row.reduction_paper > 0 || row.test == "completion-exchange") out.reduction = std::max(row.reduction, 0.0);
  out.reduction_paper = row.reduction_paper;
  return out;
}

}  // namespace ccixfer::program
