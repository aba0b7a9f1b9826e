// How often one router may say something new: `burst` times in a row, and then once in every `gap`.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::routing {

struct RecordBucket {
  static constexpr uint32_t burst = 16;
  static constexpr Duration gap = std::chrono::seconds(1);
  uint32_t left = burst;
  Instant next{};  // when another one is earned
  bool take(Instant now);
};

}  // namespace ccixfer::routing
