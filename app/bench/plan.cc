#include "app/bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/units.h"

namespace ccixfer::bench {
namespace {

constexpr std::array<std::string_view, 8> names{"message-latency", "message-rate", "rma-write", "rma-read",
                                                "rvma-put",        "completion",   "connect",   "empty-turn"};

constexpr uint64_t plot_bytes_first = 4u << 10, plot_bytes_last = 4u << 20;  // each power of two

tl::unexpected<Error> bad(std::string_view option, std::string_view text, std::string_view what_to_do) {
  return fail(ErrorKind::usage, fmt::format("bad value: {} {}: {}", option, printable(text), what_to_do));
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t comma = list.find(',');
    parts.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

Result<void> number(std::string_view option, std::string_view text, uint32_t low, uint32_t high, uint32_t& out) {
  if (text.empty()) return {};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem == std::errc() && end == text.data() + text.size() && out >= low && out <= high) return {};
  return bad(option, text, fmt::format("give a whole number from {} to {}", low, high));
}

Result<void> seconds(std::string_view option, std::string_view text, double high, Duration& out) {
  if (text.empty()) return {};
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !(value >= 0.001 && value <= high)) {
    return bad(option, text, fmt::format("give seconds from 0.001 to {}", high));
  }
  out = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  return {};
}

Result<uint64_t> size(std::string_view option, std::string_view text, uint64_t high) {
  const auto bytes = parse_size_bytes(text);
  if (bytes && *bytes >= 1 && *bytes <= high) return *bytes;
  return bad(option, text, fmt::format("give a size from 1 to {} bytes, such as 64KiB", high));
}

Result<void> tests_of(std::string_view text, std::vector<Test>& out) {
  if (text.empty()) return {};
  out.clear();
  for (const std::string_view part : parts_of(text)) {
    size_t index = 0;
    while (index < names.size() && names[index] != part) ++index;
    if (index == names.size()) return bad("--tests", part, fmt::format("name some of {}", test_names()));
    out.push_back(static_cast<Test>(index));
  }
  return {};
}

Result<void> sizes_of(std::string_view text, std::vector<uint64_t>& out) {
  if (text.empty()) return {};
  out.clear();
  for (const std::string_view part : parts_of(text)) {
    const auto bytes = size("--sizes", part, size_bytes_max);
    if (!bytes) return tl::unexpected(bytes.error());
    out.push_back(*bytes);
  }
  if (out.size() > sizes_max) return bad("--sizes", text, fmt::format("give at most {}", sizes_max));
  return {};
}

}  // namespace

std::string_view to_string(Test test) { return names[static_cast<size_t>(test)]; }
std::string_view to_string(Wait wait) { return wait == Wait::spin ? "spin" : "poll"; }

std::string test_names() { return fmt::format("{}", fmt::join(names, ",")); }

Result<Wait> parse_wait(std::string_view text) {
  if (text.empty() || text == "poll") return Wait::poll;
  if (text == "spin") return Wait::spin;
  return bad("--wait", text, "give spin or poll");
}

bool has_bytes_a_second(Test test) { return test == Test::rma_write || test == Test::rma_read || test == Test::rvma_put; }

Result<Plan> make_plan(const PlanText& text) {
  Plan plan;
  if (text.plots) {
    plan.tests = {Test::message_latency, Test::rma_write, Test::rma_read, Test::rvma_put};
    plan.sizes_bytes.clear();
    for (uint64_t bytes = plot_bytes_first; bytes <= plot_bytes_last; bytes *= 2) plan.sizes_bytes.push_back(bytes);
    plan.sweeps_messages = true;
  }
  Result<void> fine = tests_of(text.tests, plan.tests);
  if (fine) fine = sizes_of(text.sizes, plan.sizes_bytes);
  if (fine) fine = number("--depth", text.depth, 1, depth_max, plan.depth);
  if (fine) fine = number("--count", text.count, 1, samples_max, plan.count);
  if (fine) fine = number("--connections", text.connections, 1, connections_max, plan.connections);
  if (fine) fine = seconds("--seconds", text.seconds, 3600, plan.row_time);
  if (fine) fine = seconds("--timeout", text.timeout, 86400, plan.timeout);
  if (!fine) return tl::unexpected(fine.error());
  if (!text.message_size.empty()) {
    const auto bytes = size("--message-size", text.message_size, size_bytes_max);
    if (!bytes) return tl::unexpected(bytes.error());
    plan.message_bytes = static_cast<uint32_t>(*bytes);
  }
  const auto is_drawn = [](Test test) { return test == Test::message_latency || has_bytes_a_second(test); };
  if (text.plots && std::none_of(plan.tests.begin(), plan.tests.end(), is_drawn))
    return bad("--tests", text.tests, "name one that --plot draws: message-latency,rma-write,rma-read,rvma-put");
  return plan;
}

}  // namespace ccixfer::bench
