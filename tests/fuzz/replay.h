// The targets of fuzz_replay; the table is made by CMakeLists.txt.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ccixfer::fuzz {

struct ReplayTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
[[nodiscard]] std::span<const ReplayTarget> replay_targets();

}  // namespace ccixfer::fuzz
