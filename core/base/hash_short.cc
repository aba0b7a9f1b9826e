#define XXH_INLINE_ALL  // not together with the dispatching header of hash.cc, which has the same names
#include <xxhash.h>

#include "core/base/hash.h"

namespace ccixfer {

uint64_t xxh3_64(Bytes bytes, uint64_t seed) {
  if (bytes.size() > XXH3_MIDSIZE_MAX) return xxh3_64_long(bytes, seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace ccixfer
