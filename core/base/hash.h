// XXH3-128 of bytes: the check of segments and pieces. 128 bits as two words, low first, little-endian on the wire.
// A file's digest is XXH3-128 over the concatenated 16-byte hashes of its 4 MiB pieces.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/bytes.h"

namespace ccixfer {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

[[nodiscard]] Hash128 xxh3_128(Bytes bytes);
[[nodiscard]] uint64_t xxh3_64(Bytes bytes, uint64_t seed = 0);

}  // namespace ccixfer
