// The devices of a router: which of them its record has while the host loses them and finds them
// again.
#include "routing/router/devices.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);

Devices two() {
  std::vector<RouterDevice> all(2);
  all[0].name = "a";
  all[1].name = "b";
  return Devices(std::move(all));
}

}  // namespace

TEST_CASE("devices__lost_and_back__told_when_either_has_lasted") {
  Devices devices = two();
  CHECK(devices.set_works("b", false));
  CHECK_FALSE(devices.set_works("b", false));
  CHECK_FALSE(devices.set_works("c", false));
  CHECK_FALSE(devices.follow(start));
  CHECK(devices.next_deadline() == start + device_lost_after);
  CHECK_FALSE(devices.follow(start + device_lost_after - Duration(1)));
  CHECK(devices[1].told);
  CHECK(devices.follow(start + device_lost_after));
  CHECK_FALSE(devices[1].told);
  CHECK(devices[0].told);
  CHECK(devices.next_deadline() == never);
  const Instant back = start + seconds(50);
  CHECK(devices.set_works("b", true));
  CHECK_FALSE(devices.follow(back));
  CHECK_FALSE(devices.follow(back + device_back_after - Duration(1)));
  CHECK(devices.follow(back + device_back_after));
  CHECK(devices[1].told);
}

TEST_CASE("devices__a_short_break__is_told_to_nobody") {
  Devices devices = two();
  CHECK(devices.set_works("b", false));
  CHECK_FALSE(devices.follow(start));
  CHECK(devices.set_works("b", true));
  CHECK_FALSE(devices.follow(start + seconds(1)));
  CHECK(devices.set_works("b", false));
  CHECK_FALSE(devices.follow(start + device_lost_after));  // it counts from here
  CHECK(devices.next_deadline() == start + device_lost_after + device_lost_after);
}

TEST_CASE("devices__changed__keep_their_name_their_subnet_and_what_was_measured") {
  Devices devices = two();
  devices.set_latency(1, 7);
  RouterDevice settings;
  settings.name = "other";
  settings.subnet = {5, 5};
  settings.rate_bits_per_s = 9;
  settings.capabilities = 3;
  settings.transit = false;
  settings.wan = true;
  settings.wan_to = {4};
  devices.change(1, std::move(settings));
  CHECK(devices[1].name == "b");
  CHECK(devices[1].subnet == SubnetId{});
  CHECK(devices[1].rate_bits_per_s == 9);
  CHECK(devices[1].capabilities == 3);
  CHECK_FALSE(devices[1].transit);
  CHECK(devices[1].wan);
  CHECK(devices[1].wan_to == std::vector<uint32_t>{4});
  CHECK(devices[1].latency_ns == 7);
  devices.forget_latencies();
  CHECK(devices[1].latency_ns == 0);
}
