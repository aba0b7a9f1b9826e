// Hashes have their published values, and are the same for any cut into blocks.
#include "core/base/hash.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace ccixfer;

TEST_CASE("hash__of_nothing_and_of_abc__are_the_published_values") {
  CHECK(xxh3_128({}) == Hash128{0x6001c324468d497fULL, 0x99aa06d3014798d8ULL});
  CHECK(xxh3_64({}) == 0x2d06800538d394c2ULL);
}

TEST_CASE("hash_of_64_bits__in_place_and_by_the_widest_vectors__are_one") {
  std::vector<std::byte> bytes(2000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  for (size_t size = 0; size < bytes.size(); ++size) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{0x9e3779b97f4a7c15}}) {
      REQUIRE(xxh3_64(Bytes(bytes).first(size), seed) == xxh3_64_long(Bytes(bytes).first(size), seed));
    }
  }
}

TEST_CASE("hash_in_blocks__of_any_cut__is_the_hash_of_the_whole") {
  std::vector<std::byte> bytes(1'000'003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  for (const size_t cut : {size_t{1} << 10, size_t{4097}, hash_block_bytes, bytes.size()}) {
    Xxh3Blocks hasher;
    for (size_t at = 0; at < bytes.size(); at += cut) hasher.update(Bytes(bytes).subspan(at, std::min(cut, bytes.size() - at)));
    CHECK(hasher.digest() == xxh3_128(bytes));
  }
}
