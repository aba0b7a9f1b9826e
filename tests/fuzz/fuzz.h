// What the fuzz targets share: the entry point, an assertion that is always on, and checks made good again (a fuzzer cannot find a
// hash by mutation: each target tries its input as it is, and once more with the checks that it would need).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/ports/entropy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ccixfer::fuzz {

inline void must(bool condition) {
  if (!condition) std::abort();
}

inline Bytes bytes_of(const uint8_t* data, size_t size) { return std::as_bytes(std::span(data, size)); }

// The same numbers in each run.
class Entropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_ = 1;
};

// Writes the low `width` bytes of XXH3-64 over all bytes before `at` to `at`.
inline void make_check_good(std::vector<std::byte>& bytes, size_t at, size_t width) {
  const uint64_t check = xxh3_64(Bytes(bytes).first(at));
  for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(check >> (8 * i));
}

}  // namespace ccixfer::fuzz
