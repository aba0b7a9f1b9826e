// What a router passed on counts for the devices on both sides.
#include "routing/router/traffic.h"

#include <catch2/catch.hpp>

using namespace ccixfer::routing;

TEST_CASE("traffic__what_is_passed_on__counts_for_the_device_it_came_on_and_the_one_it_goes_on") {
  Traffic traffic;
  CHECK(traffic.devices() == 0);
  traffic.add_device("lan");
  traffic.add_device("wan");
  REQUIRE(traffic.devices() == 2);
  CHECK(traffic.name(1) == "wan");
  traffic.add(0, 1, 10);
  traffic.add(1, 0, 3);
  CHECK(traffic.received_bytes(0) == 10);
  CHECK(traffic.sent_bytes(0) == 3);
  CHECK(traffic.received_bytes(1) == 3);
  CHECK(traffic.sent_bytes(1) == 10);
  traffic.add_fragment(0, 5);
  traffic.add_fragment(200, 7);  // none crosses so many
  CHECK(traffic.fragment_bytes(0) == 5);
  CHECK(traffic.fragment_bytes(classes_max - 1) == 7);
  for (size_t more = 0; more < 2 * devices_max; ++more) traffic.add_device("more");
  CHECK(traffic.devices() == devices_max);
  traffic.add(devices_max, devices_max, 1);  // no such device
}
