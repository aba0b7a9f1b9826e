#include "app/report/statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/report/progress_line.h"
#include "core/base/units.h"

namespace ccixfer::report {
namespace {

constexpr const char* other_reasons = "other reasons";

std::string counted(uint64_t count, const char* noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

void add_reasons(std::vector<std::string>& lines, const FileTally& files, std::string_view status) {
  for (const auto& [reason, count] : files.reasons(status)) lines.push_back(fmt::format("  {}: {}", count, printable(reason)));
}

}  // namespace

void FileTally::count(std::string_view status, std::string_view reason) {
  if (reason.empty()) return;
  auto& reasons = by_status_[std::string(status)];
  const bool fits = reasons.size() < reasons_counted_max || reasons.contains(std::string(reason));
  ++reasons[fits ? std::string(reason) : other_reasons];
}

std::vector<std::pair<std::string, uint64_t>> FileTally::reasons(std::string_view status) const {
  const auto found = by_status_.find(status);
  if (found == by_status_.end()) return {};
  std::vector<std::pair<std::string, uint64_t>> list(found->second.begin(), found->second.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const bool a_other = a.first == other_reasons, b_other = b.first == other_reasons;
    return a_other != b_other ? b_other : a.second > b.second;
  });
  return list;
}

std::vector<std::string> statistics(const Done& done, const FileTally& files) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} delivered, {} unchanged at the receiver, {} failed", counted(done.counts.files, "file"),
                              done.counts.files_unchanged, done.counts.files_failed));
  add_reasons(lines, files, "failed");
  if (const auto skipped = files.reasons("skipped"); !skipped.empty()) {
    uint64_t count = 0;
    for (const auto& [reason, times] : skipped) count += times;
    lines.push_back(fmt::format("{} left out", count));
    add_reasons(lines, files, "skipped");
  }
  const double rate = done.seconds > 0 ? static_cast<double>(done.counts.bytes) / done.seconds : 0;
  lines.push_back(
      fmt::format("{} delivered in {}, {}", format_bytes(done.counts.bytes), format_seconds(done.seconds), format_rate(rate)));
  // What a session repeats of the one before it is not among these: that there were none does not say that nothing went twice.
  const uint64_t resent = done.counts.segments_resent;
  const std::string again = resent == 0 ? "" : fmt::format(", {} of it again", counted(resent, "segment"));
  lines.push_back(fmt::format("{} went over the network{}", format_bytes(done.counts.bytes_sent), again));
  return lines;
}

}  // namespace ccixfer::report
