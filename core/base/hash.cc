#include "core/base/hash.h"

#include <xxhash.h>

namespace ccixfer {

Hash128 xxh3_128(Bytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

uint64_t xxh3_64(Bytes bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

}  // namespace ccixfer
