// The line that people watch, and the summary at the end. Pure: values in, text out, no longer than the terminal is wide.
#pragma once
#include <cstdint>
#include <string>

#include "app/report/events.h"
#include "core/base/time.h"

namespace ccixfer::report {

inline constexpr Duration stall_told_after = std::chrono::seconds(3);  // as long without progress is no stall

// "4.2 GB of 10 GB  42%  812 MB/s  0:07  12 files  slowest: network", in fewer columns "42% 812 MB/s 0:07 12 files net"; or, when
// nothing moves, "4.2 GB of 10 GB  42%  no progress for 8 s, gives up at 60 s". What does not fit into `width` columns even so is
// cut from the right, whole fields at a time. 39 columns hold rate, time, files and the bottleneck of all but the largest
// transfers.
[[nodiscard]] std::string progress_line(const Progress& progress, bool total_known, unsigned width);
[[nodiscard]] std::string summary_line(const Done& done);  // one line, no newline
// Who, where to, how much, how it ended: of a transfer that somebody else began. One line, no newline.
[[nodiscard]] std::string ended_line(const Ended& ended);
[[nodiscard]] std::string format_seconds(double seconds);  // "0:07", "1:02:03"

// Rate over the last few seconds, from samples of a growing count.
class RateMeter {
 public:
  void sample(Instant now, uint64_t bytes);
  // A mean over time: what was slow for a moment at the beginning counts for that moment.
  [[nodiscard]] double bytes_per_s() const { return weights_ > 0 ? sum_ / weights_ : 0; }
  [[nodiscard]] bool is_settled() const { return weights_ >= settled_from; }  // it has seen about a second

 private:
  bool first_ = true;
  Instant at_{};
  uint64_t bytes_ = 0;
  static constexpr double settled_from = 0.35;
  double sum_ = 0, weights_ = 0;  // weights_: how much of sum_ is samples, and not the 0 that it began with
};

}  // namespace ccixfer::report
