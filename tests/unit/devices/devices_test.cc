// What the host says of an address, and what is made of it.
#include "app/devices/devices.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>

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

TEST_CASE("address_watch__interface_loses_its_address__does_not_work_until_it_is_back") {
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

TEST_CASE("address_watch__a_mac_address__works_while_its_interface_is_up") {
  AddressWatch watch("02:00:00:00:00:01");
  Interface a = interface("a", {}, true);
  a.mac = "02:00:00:00:00:01";
  const Interface other = interface("lo", {"127.0.0.1"}, true);
  CHECK(watch.works({other, a}));
  a.up = false;
  CHECK_FALSE(watch.works({other, a}));
  CHECK_FALSE(watch.works({other}));
  a.up = true;
  CHECK(watch.works({other, a}));
}

TEST_CASE("devices__of_eth__need_no_ip_address_and_have_a_mac") {
  Interface cable = interface("cable", {}, true);
  cable.mac = "02:00:00:00:00:01";
  const std::vector<Interface> interfaces{cable, interface("tunnel", {"10.0.0.1"}, true)};
  const auto of_eth = devices_of(Config{}, interfaces, "eth");
  REQUIRE(of_eth.size() == 1);
  CHECK(of_eth[0].name == "cable");
  CHECK(of_eth[0].transport == "eth");
  CHECK(address_of_device(of_eth[0], interfaces).value() == "02:00:00:00:00:01");
  const auto of_tcp = devices_of(Config{}, interfaces);
  REQUIRE(of_tcp.size() == 1);
  CHECK(of_tcp[0].name == "tunnel");
  CHECK(of_tcp[0].transport == "tcp");
}

TEST_CASE("address_watch__interface_is_down_from_the_beginning__does_not_work") {
  AddressWatch watch("10.0.0.1");
  CHECK_FALSE(watch.works({interface("a", {"10.0.0.1"}, false)}));
}

// A list that could not be had says nothing of any address.
TEST_CASE("address_watch__host_says_nothing__as_it_was_before") {
  AddressWatch watch("10.0.0.1");
  const Interface other = interface("lo", {"127.0.0.1"}, true);
  CHECK(watch.works({}));
  CHECK(watch.works({other, interface("a", {"10.0.0.1"}, true)}));
  CHECK(watch.works({}));
  CHECK_FALSE(watch.works({other}));
  CHECK_FALSE(watch.works({}));
  CHECK(watch.works({other, interface("a", {"10.0.0.1"}, true)}));
  CHECK(watch.works({}));
}

TEST_CASE("address_works__of_each_interface_that_has_it__one_that_is_up_will_do") {
  const Interface up = interface("a", {"10.0.0.9", "10.0.0.1"}, true), down = interface("b", {"10.0.0.1"}, false);
  CHECK_FALSE(address_works("10.0.0.1", {}).has_value());
  CHECK_FALSE(address_works("10.0.0.2", {up, down}).has_value());
  CHECK(address_works("10.0.0.1", {up, down}) == true);
  CHECK(address_works("10.0.0.1", {down, up}) == true);
  CHECK(address_works("10.0.0.1", {down, down}) == false);
}

TEST_CASE("devices__of_this_host__have_the_loopback_and_its_address") {
  const std::vector<Interface> found = addresses_of_host();
  const auto loopback = std::find_if(found.begin(), found.end(), [](const Interface& each) { return each.loopback; });
  REQUIRE(loopback != found.end());
  CHECK(loopback->name == "lo");
  CHECK(std::count(loopback->addresses.begin(), loopback->addresses.end(), "127.0.0.1") == 1);
  CHECK(address_works("127.0.0.1", found) == true);
  CHECK(interfaces_of_host().size() == found.size());
}

// The kernel's own list: the address in hexadecimal, the interface's number, the prefix, the scope, flags, the name.
TEST_CASE("devices__of_this_host__ipv6_addresses_come_last_and_link_local_ones_not_at_all") {
  std::ifstream list("/proc/net/if_inet6");
  std::map<std::string, std::set<std::string>> expected;
  for (std::string hex, number, prefix, scope, flags, name; list >> hex >> number >> prefix >> scope >> flags >> name;) {
    if (scope == "20") continue;  // of one link
    in6_addr address{};
    for (size_t i = 0; i < sizeof address.s6_addr; ++i) {
      address.s6_addr[i] = static_cast<uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    REQUIRE(inet_ntop(AF_INET6, &address, text.data(), text.size()) != nullptr);
    expected[name].insert(text.data());
  }
  for (const Interface& each : addresses_of_host()) {
    CAPTURE(each.name);
    const auto is_v6 = [](const std::string& address) { return address.find(':') != std::string::npos; };
    const auto first = std::find_if(each.addresses.begin(), each.addresses.end(), is_v6);
    CHECK(std::set<std::string>(first, each.addresses.end()) == expected[each.name]);
  }
}

TEST_CASE("devices__without_a_configuration__are_the_interfaces_that_are_up") {
  const auto devices =
      devices_of({}, {interface("a", {}, true), interface("b", {"10.0.0.1"}, false), interface("c", {"10.0.0.2"}, true)});
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "c");
  CHECK(devices[0].interface == "c");
}

TEST_CASE("devices__address__of_ip_of_the_interface_or_none_and_why") {
  const std::vector<Interface> host = {interface("a", {"10.0.0.1", "10.0.0.2"}, true), interface("bare", {}, true)};
  DeviceConfig device;
  device.name = "x";
  CHECK(address_of_device(device, host).value().empty());
  device.interface = "a";
  CHECK(address_of_device(device, host).value() == "10.0.0.1");
  device.interface = "bare";
  CHECK(address_of_device(device, host).error().message ==
        "interface without an address: bare of device x: give it one, or ip = in the configuration");
  device.interface = "none";
  CHECK(address_of_device(device, host).error().message == "no such interface: none of device x: see ccixfer devices");
  device.ip = "10.9.9.9";
  CHECK(address_of_device(device, host).value() == "10.9.9.9");
  CHECK(choose_device({}, std::nullopt, host).error().message ==
        "no device: this host has no interface with an address: configure a [device.NAME]");
  CHECK(choose_device({device}, "y", host).error().message == "no such device: y: see ccixfer devices");
}

TEST_CASE("devices__choice__of_equal_ones_the_first_but_the_loopback_last") {
  const auto chosen = [](std::vector<Interface> host, size_t loopback) {
    host[loopback].loopback = true;
    const std::vector<DeviceConfig> devices = devices_of({}, host);
    return choose_device(devices, std::nullopt, host).value()->name;
  };
  const Interface a = interface("a", {"10.0.0.1"}, true), b = interface("b", {"10.0.0.2"}, true),
                  c = interface("c", {"10.0.0.3"}, true);
  CHECK(chosen({a, b, c}, 0) == "b");
  CHECK(chosen({a, b, c}, 2) == "a");
  Interface fast = a;
  fast.rate_bits_per_s = 1;
  CHECK(chosen({fast, b, c}, 0) == "b");
  fast.name = "fast";
  CHECK(chosen({a, fast, c}, 2) == "fast");
}

TEST_CASE("devices__choice__default_before_priority_before_what_is_no_loopback_before_rate") {
  Interface slow = interface("slow", {"10.0.0.1"}, true), fast = interface("fast", {"10.0.0.2"}, true),
            loopback = interface("lo", {"127.0.0.1"}, true);
  slow.rate_bits_per_s = 1;
  fast.rate_bits_per_s = 10;
  loopback.rate_bits_per_s = 100;
  loopback.loopback = true;
  const std::vector<Interface> host = {loopback, slow, fast};
  const auto on = [](const std::string& name) {
    DeviceConfig device;
    device.name = device.interface = name;
    return device;
  };
  DeviceConfig a = on("lo"), b = on("slow"), c = on("fast");
  const auto chosen = [&] { return choose_device({a, b, c}, std::nullopt, host).value()->name; };
  CHECK(chosen() == "fast");
  b.rate_bits_per_s = 11;  // what is configured counts, and not what the interface says
  CHECK(chosen() == "slow");
  a.priority = 51;
  CHECK(chosen() == "lo");
  c.is_default = true;
  CHECK(chosen() == "fast");
  b.priority = 99;
  CHECK(chosen() == "fast");
  CHECK(choose_device({a, b, c}, "slow", host).value()->name == "slow");
  CHECK(rate_of_device(a, host) == 100);
  CHECK(rate_of_device(b, host) == 11);
  CHECK(rate_of_device(on("none"), host) == 0);
  CHECK(choose_device({a}, "new\nline", host).error().message == "no such device: new%0Aline: see ccixfer devices");
  // Of a device that is on no interface of this host nobody knows that it is the loopback.
  DeviceConfig elsewhere;
  elsewhere.name = "elsewhere";
  elsewhere.ip = "192.0.2.1";
  a.priority = 50;
  CHECK(choose_device({a, elsewhere}, std::nullopt, host).value()->name == "elsewhere");
}

TEST_CASE("devices__choice__name_then_default_then_priority_then_not_the_loopback") {
  const std::vector<Interface> interfaces = {{"lo", {"127.0.0.1"}, true, true, 0},
                                             {"eth0", {"10.0.0.1"}, true, false, 1'000'000'000},
                                             {"eth1", {"10.0.1.1"}, true, false, 10'000'000'000}};
  const auto none = devices_of({}, interfaces);
  REQUIRE(none.size() == 3);
  CHECK((*choose_device(none, std::nullopt, interfaces))->name == "eth1");
  CHECK((*choose_device(none, "lo", interfaces))->name == "lo");
  CHECK_FALSE(choose_device(none, "wlan9", interfaces));
  const auto ranked = parse_config("f", "[device.a]\nip=\"10.0.0.1\"\npriority=90\n[device.b]\nip=\"10.0.1.1\"\n");
  REQUIRE(ranked);
  CHECK((*choose_device(ranked->devices, std::nullopt, interfaces))->name == "a");
  const auto chosen = parse_config("f", "[device.a]\nip=\"10.0.0.1\"\npriority=90\n[device.b]\nip=\"10.0.1.1\"\ndefault=true\n");
  REQUIRE(chosen);
  CHECK((*choose_device(chosen->devices, std::nullopt, interfaces))->name == "b");
}

TEST_CASE("devices__interface_without_address_or_absent__usage") {
  const std::vector<Interface> interfaces = {{"eth0", {}, true, false, 0}};
  DeviceConfig device;
  device.interface = "eth0";
  CHECK_FALSE(address_of_device(device, interfaces));
  device.interface = "eth7";
  CHECK_FALSE(address_of_device(device, interfaces));
}
