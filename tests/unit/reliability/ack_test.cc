// The bytes of an acknowledgement.
#include "core/reliability/ack.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Ack;
using reliability::Range;

namespace {

Ack ack_of(std::vector<Range> descending, Duration delay = 0us) {
  Ack ack;
  ack.delay = delay;
  for (const Range& range : descending) ack.list[ack.count++] = range;
  return ack;
}

std::vector<std::byte> encoded(const Ack& ack, size_t bytes_max = 1000) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  reliability::encode(out, ack, bytes_max);
  return bytes;
}

std::vector<std::byte> raw(std::vector<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

TEST_CASE("ack__written_by_hand__decodes_and_encodes_to_the_same_bytes") {
  // largest 20, delay 7 us, 2 ranges: 18-20, then 4 missing (14-17), then 10-13.
  const auto bytes = raw({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0});
  wire::Reader in(bytes);
  const auto ack = reliability::decode_ack(in);
  REQUIRE(ack);
  REQUIRE(in.done());
  REQUIRE(ack->delay == 7us);
  REQUIRE(ack->count == 2);
  REQUIRE(ack->list[0] == Range{18, 20});
  REQUIRE(ack->list[1] == Range{10, 13});
  REQUIRE(ack->contains(10));
  REQUIRE_FALSE(ack->contains(14));
  REQUIRE(encoded(*ack) == bytes);
}

TEST_CASE("ack__no_room_for_all_ranges__the_newest_go_out") {
  const Ack ack = ack_of({{100, 100}, {90, 95}, {1, 5}});
  const auto bytes = encoded(ack, reliability::ack_bytes(2) + 7);
  REQUIRE(bytes.size() == reliability::ack_bytes(2));
  wire::Reader in(bytes);
  const auto back = reliability::decode_ack(in);
  REQUIRE(back);
  REQUIRE(back->count == 2);
  REQUIRE(back->list[1] == Range{90, 95});
}

TEST_CASE("ack__malformed__refused") {
  const auto refused = [](std::vector<int> values) {
    const auto bytes = raw(values);
    wire::Reader in(bytes);
    return !reliability::decode_ack(in);
  };
  REQUIRE(refused({}));
  REQUIRE(refused({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}));                                       // no range
  REQUIRE(refused({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 33, 2, 0, 0, 0}));                          // too many
  REQUIRE(refused({2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 3, 0, 0, 0}));                            // below 0
  REQUIRE(refused({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}));   // a gap of nothing
  REQUIRE(refused({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0}));  // a gap below 0
  REQUIRE(refused({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 4, 0, 0, 0}));               // cut off
}

TEST_CASE("ack__a_gap_down_to_packet_0__decodes") {
  const auto bytes = raw({20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0});
  wire::Reader in(bytes);
  const auto ack = reliability::decode_ack(in);
  REQUIRE(ack);
  REQUIRE(ack->list[1] == Range{0, 0});
  REQUIRE(encoded(*ack) == bytes);
}

TEST_CASE("ack__as_many_ranges_as_fit__to_the_byte_and_each_contains_its_ends") {
  const Ack ack = ack_of({{100, 100}, {90, 95}, {1, 5}});
  for (const size_t count : {1u, 2u, 3u}) {
    const size_t room = reliability::ack_bytes(static_cast<uint8_t>(count));
    REQUIRE(encoded(ack, room).size() == room);
    if (count < 3) REQUIRE(encoded(ack, room + 7).size() == room);
  }
  for (const uint64_t number : {100u, 90u, 95u, 1u, 5u}) REQUIRE(ack.contains(number));
  for (const uint64_t number : {0u, 6u, 89u, 96u, 99u, 101u}) REQUIRE_FALSE(ack.contains(number));
}

TEST_CASE("ack__more_numbers_than_its_fields_hold__only_what_came_is_acknowledged") {
  constexpr uint64_t held = UINT32_MAX;
  const auto back = [](const Ack& ack) {
    const auto bytes = encoded(ack);
    wire::Reader in(bytes);
    const auto decoded = reliability::decode_ack(in);
    REQUIRE(decoded);
    REQUIRE(in.done());
    const auto ranges = decoded->ranges();
    return std::vector<Range>(ranges.begin(), ranges.end());
  };
  using Ranges = std::vector<Range>;
  const Range old{3, 5};
  CHECK(back(ack_of({{10, 10 + held}, old})) == Ranges{{10, 10 + held}, old});
  // The newest of a longer range, and nothing below it.
  CHECK(back(ack_of({{10, 11 + held}, old})) == Ranges{{11, 11 + held}});
  CHECK(back(ack_of({{3 * held, 3 * held}, {10, 2 * held}, old})) == Ranges{{3 * held, 3 * held}, {held, 2 * held}});
  // So many missing that nobody waits for what is below them.
  CHECK(back(ack_of({{6 + held, 7 + held}, old})) == Ranges{{6 + held, 7 + held}, old});
  CHECK(back(ack_of({{7 + held, 7 + held}, old})) == Ranges{{7 + held, 7 + held}});
}
