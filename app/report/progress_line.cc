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

std::string progress_line(const Progress& progress, bool total_known, unsigned width) {
  std::vector<std::string> fields;
  const uint64_t total = std::max(progress.bytes_total, progress.bytes);
  fields.push_back(fmt::format("{} of {}{}", format_bytes(progress.bytes), format_bytes(total), total_known ? "" : "+"));
  if (total_known && total > 0) {
    fields.push_back(
        fmt::format("{}%", static_cast<unsigned>(static_cast<double>(progress.bytes) * 100 / static_cast<double>(total))));
  }
  if (progress.stalled_s > 0) {
    const std::string end = progress.gives_up_s < 0 ? "" : fmt::format(", gives up at {:.0f} s", progress.gives_up_s);
    fields.push_back(fmt::format("no progress for {:.0f} s{}", std::floor(progress.stalled_s), end));
  } else {
    fields.push_back(format_rate(progress.bytes_per_s));
    if (progress.eta_s >= 0) fields.push_back(format_seconds(progress.eta_s));
  }
  fields.push_back(fmt::format("{} file{}", progress.files, progress.files == 1 ? "" : "s"));
  std::string line;
  for (const std::string& field : fields) {
    const size_t gap = line.empty() ? 0 : 2;
    if (line.size() + gap + field.size() > width) break;
    line.append(gap, ' ').append(field);
  }
  return line;
}

std::string summary_line(const Done& done) {
  // Nothing to be proud of, and no rate of it.
  if (done.kind != ErrorKind::ok && done.counts.files + done.counts.files_unchanged + done.counts.bytes == 0) {
    std::string line = fmt::format("failed after {:.1f} s", done.seconds);
    if (done.counts.files_failed > 0) line += fmt::format(", {} failed", done.counts.files_failed);
    return line;
  }
  const double rate = done.seconds > 0 ? static_cast<double>(done.counts.bytes) / done.seconds : 0;
  std::string line = fmt::format("{} file{}, {} in {:.1f} s ({})", done.counts.files, done.counts.files == 1 ? "" : "s",
                                 format_bytes(done.counts.bytes), done.seconds, format_rate(rate));
  if (done.counts.files_unchanged > 0) line += fmt::format(", {} unchanged", done.counts.files_unchanged);
  if (done.counts.files_failed > 0) line += fmt::format(", {} failed", done.counts.files_failed);
  if (done.counts.segments_resent > 0) line += fmt::format(", {} segments sent again", done.counts.segments_resent);
  return line;
}

std::string ended_line(const Ended& ended) {
  const std::string path = ended.path.empty() ? std::string("the root") : printable(ended.path);
  const std::string peer = printable(ended.peer);
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
  rate_ = rate_ == 0 ? current : rate_ + weight * (current - rate_);
  at_ = now;
  bytes_ = bytes;
}

}  // namespace ccixfer::report
