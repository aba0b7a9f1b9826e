// The record that a router tells of itself.
#include "routing/router/own_record.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

ToldDevice told(uint32_t device) {
  return {device, {{1, device + 1}, 1'000'000'000, 0, true, true, {}, "sim://10.0.0." + std::to_string(device) + ":7", 0}};
}
std::vector<uint32_t> nothing(const DeviceRecord&) { return {}; }

}  // namespace

TEST_CASE("own_record__made__has_the_devices_that_are_told_and_knows_which_they_are") {
  OwnRecord own(55);
  own.make({told(0), told(2)}, false, [](const DeviceRecord& device) { return std::vector<uint32_t>{device.subnet.subnet}; });
  const auto decoded = decode_record(own.raw());
  REQUIRE(decoded);
  CHECK(*decoded == own.record());
  CHECK(decoded->router == 55);
  CHECK(decoded->instance == 1);
  REQUIRE(decoded->devices.size() == 2);
  CHECK(decoded->devices[1].reaches == std::vector<uint32_t>{3});
  CHECK(own.device_of(0) == 0);
  CHECK(own.device_of(1) == 2);
}

TEST_CASE("own_record__withdrawn_or_without_a_device__says_that_the_router_goes") {
  OwnRecord own(55);
  own.make({}, false, nothing);
  CHECK(own.record().withdrawn);
  own.make({told(0)}, false, nothing);
  CHECK_FALSE(own.record().withdrawn);
  own.make({told(0)}, true, nothing);
  CHECK(own.record().withdrawn);
  CHECK(own.record().devices.empty());
}

TEST_CASE("own_record__too_many_other_as__leaves_some_of_the_longest_list_out") {
  OwnRecord own(55);
  std::vector<uint32_t> many;
  for (uint32_t as = 1; as <= reaches_max; ++as) many.push_back(as);
  std::vector<ToldDevice> devices;
  for (uint32_t i = 0; i < devices_max; ++i) devices.push_back(told(i));
  own.make(std::move(devices), false, [&](const DeviceRecord&) { return many; });
  CHECK(own.raw().size() <= record_bytes_max);
  REQUIRE(own.record().devices.size() == devices_max);
  size_t least = reaches_max, most = 0;
  for (const DeviceRecord& device : own.record().devices) {
    least = std::min(least, device.reaches.size());
    most = std::max(most, device.reaches.size());
  }
  CHECK(most < reaches_max);
  CHECK(most - least <= 1);
}

TEST_CASE("own_record__another_one_in_our_name__is_gone_past") {
  OwnRecord own(55);
  own.make({told(0)}, false, nothing);
  RouterRecord heard = own.record();
  CHECK_FALSE(own.is_contradicted_by(heard));
  heard.withdrawn = true;
  CHECK(own.is_contradicted_by(heard));
  heard.instance = 0;
  CHECK_FALSE(own.is_contradicted_by(heard));  // older
  heard = own.record();
  heard.instance = 9;
  CHECK(own.is_contradicted_by(heard));
  own.go_past(heard);
  own.next_instance();
  own.make({told(0)}, false, nothing);
  CHECK(own.record().instance == 10);
}
