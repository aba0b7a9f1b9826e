// How long the calls to the file system take that move or sync data, and how much they move, for the metrics of a process. The
// threads of the work pool count, any thread may read.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/histogram.h"
#include "core/base/time.h"

namespace ccixfer::host {

enum class DiskCall : uint8_t { read, write, sync };

class DiskTimes {
 public:
  static constexpr size_t calls = 3;
  using Seconds = Histogram<8>;

  // `bytes`: that were moved, none by a sync or by a call that failed.
  void observe(DiskCall call, Duration took, uint64_t bytes) {
    One& one = of_[static_cast<size_t>(call)];
    one.seconds.observe(std::chrono::duration<double>(took).count());
    one.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] const Seconds& seconds(DiskCall call) const { return of_[static_cast<size_t>(call)].seconds; }
  [[nodiscard]] uint64_t bytes(DiskCall call) const { return of_[static_cast<size_t>(call)].bytes.load(std::memory_order_relaxed); }

 private:
  struct One {
    Seconds seconds{{0.0001, 0.001, 0.01, 0.1, 1, 5, 30, 120}};
    std::atomic<uint64_t> bytes{0};
  };
  std::array<One, calls> of_{};
};

// What `call` gives, counted into `times`, if there is one.
template <typename Call>
auto timed(DiskTimes* times, DiskCall kind, Call&& call) {
  if (times == nullptr) return call();
  const auto begin = std::chrono::steady_clock::now();
  const auto result = call();
  const bool moves = kind != DiskCall::sync && result > 0;
  times->observe(kind, std::chrono::steady_clock::now() - begin, moves ? static_cast<uint64_t>(result) : 0);
  return result;
}

}  // namespace ccixfer::host
