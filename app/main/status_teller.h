// What this process tells the status page, when somebody asks (app/metrics/board): the figures that every role has, and how fast
// they grow. The words are made in the other thread, of copies. The protocol thread only.
// Bounds: rates of as many things as were asked about at the last time; ended_max transfers that have ended.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/main/commands.h"
#include "app/main/job_runs.h"
#include "app/metrics/board.h"
#include "app/report/status.h"

namespace ccixfer::program {

inline constexpr size_t transfers_shown_max = 100;
inline constexpr size_t ended_shown_max = 50;

// How fast counts grow from one snapshot to the next.
class Rates {
 public:
  void begin(Instant now);  // a snapshot. What was not asked about at the last one is forgotten
  // Bytes per second over the last few seconds; < 0: the last snapshot did not have it, or is long ago.
  [[nodiscard]] double of(const std::string& what, uint64_t bytes);

 private:
  struct Seen {
    uint64_t bytes = 0;
    uint64_t round = 0;
    double rate = -1;  // as it was told last
  };
  std::unordered_map<std::string, Seen> seen_;
  uint64_t round_ = 0;
  Instant now_{};
  double passed_s_ = 0;  // since the last one; 0: it is too long ago
};

class StatusTeller {
 public:
  explicit StatusTeller(const Process& process);
  [[nodiscard]] bool is_asked() const { return process_.board != nullptr && process_.board->is_asked(); }
  [[nodiscard]] report::Status begin(Instant now);
  [[nodiscard]] double rate(const std::string& what, uint64_t bytes) { return rates_.of(what, bytes); }
  // After begin(). `complete`: what takes time, and is therefore done in the other thread; may be empty.
  void tell(report::Status status, std::function<void(report::Status&)> complete = {});

 private:
  const Process& process_;
  const Instant began_;
  Rates rates_;
  const std::shared_ptr<JobRuns> runs_;  // the other thread's; nullptr: there is no history
};

// The transfers that ended lately, as lines of report::transfer_result.
class EndedTransfers {
 public:
  // Reads the last lines of a file of recv/history. If there is no such file, there are no lines.
  void read(int directory, const std::string& name);
  void add(std::string line);
  [[nodiscard]] std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  std::deque<std::string> lines_;
};

}  // namespace ccixfer::program
