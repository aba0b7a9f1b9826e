// XXH3-128 of bytes: the check of segments and pieces. 128 bits as two words, low first, little-endian on the wire.
// A file's digest is XXH3-128 over the concatenated 16-byte hashes of its 4 MiB pieces.
#pragma once
#include <cstdint>
#include <memory>

#include "core/base/bytes.h"

namespace ccixfer {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// Bytes are hashed right after they were read, or right before they are written, in blocks of this size: in the cache of the core
// that moves them. A pass of its own over a whole segment comes from memory again.
inline constexpr size_t hash_block_bytes = 64u << 10;

[[nodiscard]] Hash128 xxh3_128(Bytes bytes);

// XXH3-128 of a sequence of blocks: the same value as of all of them at once.
class Xxh3Blocks {
 public:
  Xxh3Blocks();
  ~Xxh3Blocks();
  Xxh3Blocks(const Xxh3Blocks&) = delete;
  Xxh3Blocks& operator=(const Xxh3Blocks&) = delete;
  void update(Bytes block);
  [[nodiscard]] Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of headers and small messages, in place; of more than a few hundred bytes by xxh3_64_long, which has the widest vectors and costs
// a call through a table. The same value.
[[nodiscard]] uint64_t xxh3_64(Bytes bytes, uint64_t seed = 0);
[[nodiscard]] uint64_t xxh3_64_long(Bytes bytes, uint64_t seed = 0);

}  // namespace ccixfer
