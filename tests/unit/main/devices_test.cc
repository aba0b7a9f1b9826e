// What the host says of an address, and what is made of it.
#include "app/main/devices.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

Interface interface(const std::string& name, const std::vector<std::string>& addresses, bool up) {
  Interface made;
  made.name = name;
  made.addresses = addresses;
  made.up = up;
  return made;
}

}  // namespace

TEST_CASE("address_watch__interface_goes_down_or_loses_its_address__does_not_work_until_it_is_back") {
  AddressWatch watch("10.0.0.1");
  const Interface other = interface("lo", {"127.0.0.1"}, true);
  CHECK(watch.works({other, interface("a", {"10.0.0.1"}, true)}));
  CHECK_FALSE(watch.works({other, interface("a", {"10.0.0.1"}, false)}));
  CHECK_FALSE(watch.works({other, interface("a", {}, true)}));
  CHECK_FALSE(watch.works({other}));
  CHECK(watch.works({other, interface("b", {"10.0.0.9", "10.0.0.1"}, true)}));
  CHECK(watch.works({interface("a", {"10.0.0.1"}, false), interface("b", {"10.0.0.1"}, true)}));
  CHECK(watch.works({interface("b", {"10.0.0.1"}, true), interface("a", {"10.0.0.1"}, false)}));
}

TEST_CASE("address_watch__address_that_no_interface_ever_had__is_taken_to_work") {
  AddressWatch watch("127.0.0.2");
  CHECK(watch.works({interface("lo", {"127.0.0.1"}, true)}));
  CHECK(watch.works({}));
}

TEST_CASE("address_watch__interface_is_down_from_the_beginning__does_not_work") {
  AddressWatch watch("10.0.0.1");
  CHECK_FALSE(watch.works({interface("a", {"10.0.0.1"}, false)}));
}
