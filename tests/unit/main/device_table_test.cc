// The table of `ccixfer devices`.
#include "app/main/device_table.h"

#include <catch2/catch.hpp>

#include "transports/verbs/verbs.h"

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

TEST_CASE("devices__described__every_column_as_it_is_configured_or_found") {
  const auto config = parse_config("f.toml",
                                   "[device.a]\nip = \"10.0.0.1\"\nport = 7\nas = 3\nsubnet = 4\nrouter = []\npriority = 60\n"
                                   "[device.bb]\ninterface = \"down\"\nrate = \"10Gb/s\"\npriority = 1\n"
                                   "[device.c]\nip = \"10.9.9.9\"\n"
                                   "[device.d]\n"
                                   "[device.e]\ntransport = \"verbs\"\nip = \"10.0.0.1\"\n"
                                   "[device.g]\ntransport = \"udp\"\nip = \"10.0.0.1\"\n"
                                   "[device.f]\ninterface = \"none\"\n");
  REQUIRE(config);
  Interface up = interface("eth0", {"10.0.0.1"}, true);
  up.rate_bits_per_s = 1'000'000'000;
  const std::string no_card = verbs::is_built_in() ? "no RDMA device" : "built without verbs";  // has this address
  CHECK(device_table(describe_devices(*config, {up, interface("down", {"10.0.1.1"}, false)})) ==
        std::vector<std::string>{
            "DEVICE  TRANSPORT  INTERFACE  ADDRESS     RATE    SUBNET  PRIORITY  STATE",
            "a*      tcp        eth0       10.0.0.1:7  1Gb/s   3:4     60        up",
            "bb      tcp        down       10.0.1.1    10Gb/s  -       1         down",
            "c       tcp                   10.9.9.9    ?       -       50        absent",
            "d       tcp                               ?       -       50        up",
            "e       verbs      eth0       10.0.0.1    1Gb/s   -       50        " + no_card,
            "f       tcp        none                   ?       -       50        absent",
            "g       udp        eth0       10.0.0.1    1Gb/s   -       50        up",
        });
}

TEST_CASE("devices__described__where_its_address_is_and_which_one_is_taken") {
  const auto lines = [](const std::string& text, const std::vector<Interface>& host) {
    return describe_devices(parse_config("f.toml", text).value(), host);
  };
  const std::vector<Interface> host = {interface("eth0", {"10.0.0.1"}, true), interface("eth1", {"10.0.0.2"}, false)};
  const auto found = lines(
      "[device.a]\nip = \"10.0.0.2\"\n[device.b]\nport = 7\n[device.c]\ninterface = \"eth1\"\nport = 9\n"
      "[device.d]\ndefault = true\n",
      host);
  REQUIRE(found.size() == 4);
  const auto of = [&](size_t i) { return found[i].interface + " " + found[i].address + " " + found[i].state; };
  CHECK(of(0) == "eth1 10.0.0.2 down");
  CHECK(of(1) == " :7 up");  // every address of this host, at that port
  CHECK(of(2) == "eth1 10.0.0.2:9 down");
  for (size_t i = 0; i < 4; ++i) CHECK(found[i].is_default == (i == 3));
  for (const auto& line : found) CHECK(line.subnet.empty());
  // Nothing is configured: the interfaces themselves; and a host without any has none.
  const auto own = describe_devices({}, host);
  REQUIRE(own.size() == 1);
  CHECK(own[0].name == "eth0");
  CHECK(own[0].transport == "tcp");
  CHECK(own[0].address == "10.0.0.1");
  CHECK(own[0].is_default);
  CHECK(describe_devices({}, {}).empty());
  CHECK(device_table({}) == std::vector<std::string>{"DEVICE  TRANSPORT  INTERFACE  ADDRESS  RATE  SUBNET  PRIORITY  STATE"});
  report::DeviceLine odd;
  odd.name = "new\nline";
  odd.interface = "\x1b";
  CHECK(device_table({odd})[1].rfind("new%0Aline             %1B        ", 0) == 0);
}

TEST_CASE("devices__what_is_missing__a_line_each_below_the_table") {
  CHECK(missing_lines(describe_missing({})).empty());
  CHECK(missing_lines(
            describe_missing({{"verbs", false, "no RDMA device", "load its driver"}, {"udp", true, "small\nbuffer", "sysctl"}})) ==
        std::vector<std::string>{"", "verbs cannot be used: no RDMA device: load its driver",
                                 "udp is limited: small%0Abuffer: sysctl"});
}
