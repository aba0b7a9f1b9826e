#include "app/report/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace ccixfer::report {

std::string format_seconds(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(seconds, 0.0, 3.6e9));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

namespace {

// As much as fits, whole fields from the left.
std::string joined(const std::vector<std::string>& fields, size_t gap_wanted, size_t width, bool& all) {
  std::string line;
  all = true;
  for (const std::string& field : fields) {
    if (field.empty()) continue;
    const size_t gap = line.empty() ? 0 : gap_wanted;
    all = line.size() + gap + field.size() <= width;
    if (!all) break;
    line.append(gap, ' ').append(field);
  }
  return line;
}

struct WaitWords {
  const char* words;
  const char* brief;
};
WaitWords words_of(Waits what) {
  switch (what) {
    case Waits::unknown:
      break;
    case Waits::source_disk:
      return {"source disk", "src"};
    case Waits::network:
      return {"network", "net"};
    case Waits::destination_disk:
      return {"destination disk", "dst"};
    case Waits::source_or_network:
      return {"source or network", "src/net"};
    case Waits::bandwidth_limit:
      return {"--bwlimit", "cap"};
  }
  return {"", ""};
}

}  // namespace

std::string progress_line(const Progress& progress, bool total_known, unsigned width) {
  const uint64_t total = std::max(progress.bytes_total, progress.bytes);
  const std::string amount = fmt::format("{} of {}{}", format_bytes(progress.bytes), format_bytes(total), total_known ? "" : "+");
  std::string part;
  if (total_known && total > 0)
    part = fmt::format("{}%", static_cast<unsigned>(static_cast<double>(progress.bytes) * 100 / static_cast<double>(total)));
  const std::string files = fmt::format("{} file{}", progress.files, progress.files == 1 ? "" : "s");
  bool all = false;
  if (progress.stalled_s > 0) {
    const std::string end = progress.gives_up_s < 0 ? "" : fmt::format(", gives up at {:.0f} s", progress.gives_up_s);
    const std::string stall = fmt::format("no progress for {:.0f} s{}", std::floor(progress.stalled_s), end);
    return joined({amount, part, stall, files}, 2, width, all);
  }
  const std::string rate = format_rate(progress.bytes_per_s);
  const std::string time = progress.eta_s >= 0 ? format_seconds(progress.eta_s) : std::string();
  const WaitWords waits = words_of(progress.waiting.what);
  const std::string slowest = *waits.words == '\0' ? "" : fmt::format("slowest: {}", waits.words);
  const std::string hop = progress.waiting.hop.empty() ? "" : " at " + printable(progress.waiting.hop);
  const std::string brief_amount = part.empty() ? format_bytes(progress.bytes) : part;
  const std::vector<std::vector<std::string>> forms = {
      {amount, part, rate, time, files, slowest + hop},
      {amount, part, rate, time, files, slowest},
      {brief_amount, rate, time, files, slowest},
      {brief_amount, rate, time, files, waits.brief},
      {brief_amount, rate, time, fmt::format("{} f", progress.files), waits.brief}};
  std::string line;
  for (size_t form = 0; form < forms.size() && !all; ++form) line = joined(forms[form], form < 3 ? 2 : 1, width, all);
  return line;
}

std::string summary_line(const Done& done) {
  // Nothing to be proud of, and no rate of it.
  if (done.kind != ErrorKind::ok && done.counts.files + done.counts.files_unchanged + done.counts.bytes == 0) {
    std::string line = fmt::format("failed after {:.1f} s", done.seconds);
    if (done.counts.files_failed > 0) line += fmt::format(", {} failed", done.counts.files_failed);
    return line;
  }
  if (done.counts.helped) {
    return fmt::format("helped: {} sent in {:.1f} s; the process that leads the transfer tells of it",
                       format_bytes(done.counts.bytes_sent), done.seconds);
  }
  const double rate = done.seconds > 0 ? static_cast<double>(done.counts.bytes) / done.seconds : 0;
  std::string line = fmt::format("{} file{}, {} in {:.1f} s ({})", done.counts.files, done.counts.files == 1 ? "" : "s",
                                 format_bytes(done.counts.bytes), done.seconds, format_rate(rate));
  if (done.counts.files_unchanged > 0) line += fmt::format(", {} unchanged", done.counts.files_unchanged);
  if (done.counts.files_failed > 0) line += fmt::format(", {} failed", done.counts.files_failed);
  if (done.others.skipped > 0) line += fmt::format(", {} left out", done.others.skipped);
  if (done.others.deleted > 0) line += fmt::format(", {} deleted", done.others.deleted);
  if (done.counts.segments_resent > 0) line += fmt::format(", {} segments sent again", done.counts.segments_resent);
  return line;
}

std::string ended_line(const Ended& ended) {
  const std::string path = ended.path.empty() ? std::string("the root") : printable(ended.path);
  const std::string peer = printable(ended.name.empty() ? ended.peer : ended.name);
  std::string line =
      ended.serves ? fmt::format("transfer of {} to {}", path, peer) : fmt::format("transfer from {} into {}", peer, path);
  line += ended.kind == ErrorKind::ok ? std::string(" ended well") : fmt::format(" ended: {}", error_row(ended.kind).name);
  if (ended.kind != ErrorKind::ok && !ended.reason.empty()) line += ": " + printable(ended.reason);
  return line + fmt::format(": {} file{} delivered, {} unchanged, {} failed, {}", ended.counts.files,
                            ended.counts.files == 1 ? "" : "s", ended.counts.files_unchanged, ended.counts.files_failed,
                            format_bytes(ended.counts.bytes));
}

void RateMeter::sample(Instant now, uint64_t bytes) {
  constexpr double settle_s = 2.0;  // older samples fade with this time constant
  if (first_ || bytes < bytes_) {
    first_ = false;
    at_ = now;
    bytes_ = bytes;
    return;
  }
  const double elapsed_s = std::chrono::duration<double>(now - at_).count();
  if (elapsed_s < 0.05) return;
  const double current = static_cast<double>(bytes - bytes_) / elapsed_s;
  const double weight = 1 - std::exp(-elapsed_s / settle_s);
  sum_ += weight * (current - sum_);
  weights_ += weight * (1 - weights_);
  at_ = now;
  bytes_ = bytes;
}

}  // namespace ccixfer::report
