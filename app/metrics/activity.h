// What the sessions of a process come to, for its metrics: the protocol thread counts, and any thread may read.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/histogram.h"
#include "core/base/result.h"

namespace ccixfer::metrics {

class Activity {
 public:
  static constexpr size_t kinds = static_cast<size_t>(ErrorKind::bug) + 1;

  void session_opened() { add(sessions_opened_, 1); }
  // How it ended, and how long it was open. What was delivered counts once, when a transfer has come to its end.
  void session_ended(ErrorKind kind, double seconds) {
    add(ended_[static_cast<size_t>(kind)], 1);
    durations_.observe(seconds);
  }
  void session_refused(ErrorKind why) { add(refused_[static_cast<size_t>(why)], 1); }  // before it was opened
  void delivered(uint64_t files, uint64_t unchanged, uint64_t failed, uint64_t bytes) {
    add(files_, files);
    add(files_unchanged_, unchanged);
    add(files_failed_, failed);
    add(bytes_, bytes);
  }

  [[nodiscard]] uint64_t opened() const { return get(sessions_opened_); }
  [[nodiscard]] uint64_t ended(ErrorKind kind) const { return get(ended_[static_cast<size_t>(kind)]); }
  [[nodiscard]] uint64_t ended() const {
    uint64_t all = 0;
    for (const auto& one : ended_) all += get(one);
    return all;
  }
  [[nodiscard]] uint64_t refused(ErrorKind why) const { return get(refused_[static_cast<size_t>(why)]); }
  using Durations = Histogram<8>;
  [[nodiscard]] const Durations& durations() const { return durations_; }  // seconds
  [[nodiscard]] uint64_t files() const { return get(files_); }
  [[nodiscard]] uint64_t files_unchanged() const { return get(files_unchanged_); }
  [[nodiscard]] uint64_t files_failed() const { return get(files_failed_); }
  [[nodiscard]] uint64_t bytes() const { return get(bytes_); }

 private:
  using Count = std::atomic<uint64_t>;
  static void add(Count& count, uint64_t amount) { count.fetch_add(amount, std::memory_order_relaxed); }
  static uint64_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
  Count sessions_opened_{0};
  std::array<Count, kinds> ended_{}, refused_{};
  Durations durations_{{0.1, 1, 10, 60, 600, 3600, 21600, 86400}};
  Count files_{0}, files_unchanged_{0}, files_failed_{0}, bytes_{0};
};

}  // namespace ccixfer::metrics
