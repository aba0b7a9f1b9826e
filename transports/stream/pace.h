// How fast a connection's network takes bytes: what it took from one moment to another at which its buffer was full. (What an empty
// buffer takes at once says nothing of the network behind it.)
// Pure; single-threaded.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::stream {

class Pace {
 public:
  void moved(uint64_t bytes, Instant now) {
    bytes_ += bytes;
    if (bytes_ >= beyond_any_buffer_bytes) measure(now);
  }
  // The buffer is full now.
  void level(Instant now) { measure(now); }
  // Bytes that it moves in so long; 0 until it is known.
  [[nodiscard]] uint64_t bytes_in(Duration time) const {
    return static_cast<uint64_t>(bytes_per_s_ * std::chrono::duration<double>(time).count());
  }

 private:
  static constexpr Duration window_min = std::chrono::milliseconds(1);
  static constexpr uint64_t beyond_any_buffer_bytes = 16u << 20;

  void measure(Instant now) {
    const Duration took = began() ? now - since_ : Duration{0};
    if (began() && took < window_min) return;
    if (began()) bytes_per_s_ = static_cast<double>(bytes_) / std::chrono::duration<double>(took).count();
    bytes_ = 0;
    since_ = now;
  }

  [[nodiscard]] bool began() const { return since_ != never; }

  Instant since_ = never;  // never: nothing has been measured
  uint64_t bytes_ = 0;
  double bytes_per_s_ = 0;
};

}  // namespace ccixfer::stream
