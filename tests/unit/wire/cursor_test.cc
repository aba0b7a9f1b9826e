// Reading and writing bytes within their bounds.
#include "core/wire/cursor.h"

#include <array>
#include <catch2/catch.hpp>

namespace ccixfer::wire {
namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

TEST_CASE("cursor__every_width__little_endian_bytes_by_hand") {
  std::vector<std::byte> out;
  Writer w(out);
  w.u8(0x01);
  w.u16(0x0203);
  w.u32(0x04050607);
  w.u64(0x08090a0b0c0d0e0f);
  w.text16("ab");
  REQUIRE(w.ok());
  REQUIRE(out == raw({1, 3, 2, 7, 6, 5, 4, 0xf, 0xe, 0xd, 0xc, 0xb, 0xa, 9, 8, 2, 0, 'a', 'b'}));

  Reader r(out);
  REQUIRE(r.u8() == 0x01);
  REQUIRE(r.u16() == 0x0203);
  REQUIRE(r.u32() == 0x04050607);
  REQUIRE(r.u64() == 0x08090a0b0c0d0e0f);
  REQUIRE(r.text16() == "ab");
  REQUIRE(r.done());
}

TEST_CASE("cursor__read_past_the_end__fails_for_good") {
  const auto bytes = raw({1, 2, 3});
  Reader r(bytes);
  REQUIRE(r.u16() == 0x0201);
  REQUIRE(r.u32() == 0);
  REQUIRE_FALSE(r.ok());
  REQUIRE(r.u8() == 0);  // the third byte is there, but the input is bad
  REQUIRE(r.rest().empty());
  REQUIRE_FALSE(r.done());
}

TEST_CASE("cursor__counted_bytes_over_their_bound__fail") {
  const auto bytes = raw({4, 0, 'a', 'b', 'c', 'd'});
  Reader bounded(bytes);
  REQUIRE(bounded.bytes16(3).empty());
  REQUIRE_FALSE(bounded.ok());
  const auto lying = raw({0xff, 0xff, 0xff, 0xff, 1});
  Reader r(lying);
  REQUIRE(r.bytes32(SIZE_MAX).empty());
  REQUIRE_FALSE(r.ok());
}

TEST_CASE("cursor__left_over_bytes__not_done") {
  const auto bytes = raw({1, 2});
  Reader r(bytes);
  REQUIRE(r.u8() == 1);
  REQUIRE(r.ok());
  REQUIRE_FALSE(r.done());
  r.require(false);
  REQUIRE_FALSE(r.ok());
}

TEST_CASE("cursor__span_too_small__writes_nothing_more") {
  std::array<std::byte, 5> memory{};
  Writer w(memory);
  w.u32(0x01020304);
  w.u16(0xffff);
  REQUIRE_FALSE(w.ok());
  REQUIRE(memory[4] == std::byte{0});
  w.u8(9);
  REQUIRE(memory[4] == std::byte{0});
  REQUIRE(w.position() == 4);
}

TEST_CASE("cursor__patch__overwrites_only_what_was_written") {
  std::vector<std::byte> out = raw({9});
  Writer w(out);
  const size_t at = w.position();
  REQUIRE(at == 1);
  w.u16(0);
  w.u8(7);
  w.patch_u16(at, 0x0102);
  REQUIRE(out == raw({9, 2, 1, 7}));
  w.patch_u32(at, 1);
  REQUIRE_FALSE(w.ok());
}

}  // namespace
}  // namespace ccixfer::wire
