// The bytes of a router's record, and what is refused.
#include "routing/map/record.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

RouterRecord example() {
  RouterRecord record{0x1122334455667788, 5, false, {}};
  record.devices.push_back({{3, 1}, 10'000'000'000, 3, true, false, {}, "tcp://10.0.0.1:7000", 0});
  record.devices.push_back({{3, 9}, 100'000'000'000, 0, false, true, {4, 5}, "tcp://192.0.2.1:7000", 42});
  return record;
}

std::vector<std::byte> encoded(const RouterRecord& record) {
  std::vector<std::byte> bytes;
  REQUIRE(encode_record(record, bytes));
  return bytes;
}

}  // namespace

TEST_CASE("record__encode_decode__round_trips") {
  CHECK(decode_record(encoded(example())) == example());
  const RouterRecord gone{7, 9, true, {}};
  CHECK(decode_record(encoded(gone)) == gone);
}

TEST_CASE("record__bytes__are_those_written_down_by_hand") {
  const RouterRecord record{0x0102, 3, false, {{{1, 2}, 5, 3, true, true, {9}, "t://a:1", 0}}};
  const uint8_t expected[] = {1, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0,   0,   0,   0,   0,   0,   0,   1, 0, 0, 0, 2, 0, 0,
                              0, 5, 0, 0, 0, 0, 0, 0, 0, 3, 3, 7, 1, 't', ':', '/', '/', 'a', ':', '1', 9, 0, 0, 0, 0, 0};
  const auto bytes = encoded(record);
  REQUIRE(bytes.size() == sizeof expected);
  for (size_t i = 0; i < bytes.size(); ++i) CHECK(std::to_integer<uint8_t>(bytes[i]) == expected[i]);
}

TEST_CASE("record__truncated_or_extended__is_refused") {
  const auto bytes = encoded(example());
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(decode_record(Bytes(bytes).first(size)));
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode_record(longer));
}

TEST_CASE("record__any_single_byte_changed__never_crashes") {
  const auto good = encoded(example());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      auto bytes = good;
      bytes[i] = static_cast<std::byte>(value);
      const auto record = decode_record(bytes);
      if (record) CHECK(record->devices.size() <= devices_max);
    }
  }
}

TEST_CASE("record__unknown_options__optional_skipped_mandatory_refused") {
  const RouterRecord record{1, 1, false, {{{1, 2}, 5, 3, true, false, {}, "t://a:1", 0}}};
  auto bytes = encoded(record);
  const auto with_option = [&](uint8_t type_high) {
    auto changed = bytes;
    changed[changed.size() - 2] = std::byte{5};
    for (const uint8_t b : {uint8_t{0x77}, type_high, uint8_t{1}, uint8_t{0}, uint8_t{9}}) changed.push_back(std::byte{b});
    return changed;
  };
  CHECK(decode_record(with_option(0x00)) == record);
  CHECK_FALSE(decode_record(with_option(0x80)));
}

TEST_CASE("record__over_its_bounds__is_not_encoded") {
  std::vector<std::byte> bytes;
  RouterRecord record = example();
  record.devices[0].uri = "tcp://" + std::string(300, 'a');
  CHECK_FALSE(encode_record(record, bytes));
  record = example();
  record.devices.assign(devices_max + 1, record.devices[0]);
  CHECK_FALSE(encode_record(record, bytes));
  record.devices.assign(devices_max, record.devices[0]);
  for (auto& device : record.devices) device.uri = "tcp://" + std::string(200, 'a') + ":1";
  bytes.clear();
  CHECK_FALSE(encode_record(record, bytes));
}
