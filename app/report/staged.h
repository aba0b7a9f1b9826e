// What `ccixfer status` says: of files that stand staged, and of transfers that have ended, which a receiver noted as
// transfer_result (events.h) makes it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ccixfer::report {

struct Staged {
  std::string path;
  uint64_t bytes = 0;        // durable
  uint64_t bytes_total = 0;  // 0: not known
  std::string peer;          // "": not known
  int64_t since_s = 0;       // since 1970; 0: not known
  int64_t active_s = 0;
};
[[nodiscard]] std::string staged_event(double t, const Staged& staged);
[[nodiscard]] std::string staged_line(const Staged& staged, int64_t now_s);  // for people

struct HistoryLine {
  std::string event;  // the JSON event `transfer`
  std::string text;   // for people
};
// Nothing: it is no line of a history, such as one that a crash cut off.
[[nodiscard]] std::optional<HistoryLine> history_line(double t, std::string_view line);

// UTC, as 2026-11-25 04:30:00Z; times far away are a number.
[[nodiscard]] std::string time_text(int64_t seconds);
[[nodiscard]] std::string age_text(int64_t seconds);  // 12 s, 5 min, 3 h, 2 days

}  // namespace ccixfer::report
