// What `ccixfer routes` makes of configuration files: Table I's form, the reason of a choice, clashes. The files of conf/ are read
// as they ship.
#include "app/main/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

const std::filesystem::path shipped = "conf";  // tests run at the top of the checkout

Config parsed(const std::string& file, const std::string& text) {
  auto config = parse_config(file, text);
  INFO((config ? "" : config.error().message));
  REQUIRE(config);
  return *config;
}
// One device a subnet: "1:10Gb/s 2:32Gb/s"; a leading w marks a WAN.
Config router(const std::string& name, std::vector<std::string> devices, const std::string& more = "", uint32_t as = 3) {
  std::string text = more;
  for (std::string& device : devices) {
    const bool wan = device[0] == 'w';
    if (wan) device.erase(0, 1);
    const size_t colon = device.find(':');
    const std::string subnet = device.substr(0, colon);
    text += fmt::format("[device.d{}]\nip = \"10.{}.0.{}\"\nport = 7000\nas = {}\nsubnet = {}\nrouter = []\n", subnet,
                        std::stoul(subnet) % 250, 1 + name.size(), as, subnet);
    if (colon != std::string::npos) text += "rate = \"" + device.substr(colon + 1) + "\"\n";
    text += "capabilities = [\"zero-copy\", \"os-bypass\"]\n";
    if (wan) text += "wan = true\ntransit = false\n";
  }
  return parsed(name, text);
}
std::string error_of(const std::vector<Config>& configs) {
  const auto topology = topology_of(configs);
  REQUIRE_FALSE(topology);
  CHECK(topology.error().kind == ErrorKind::usage);
  return topology.error().message;
}
std::vector<Config> of_files(const std::string& prefix) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(shipped / "fig1")) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Config> configs;
  for (const std::string& file : files) {
    auto config = load_config(file);
    INFO((config ? file : config.error().message));
    REQUIRE(config);
    CHECK(config->warnings.empty());
    configs.push_back(std::move(*config));
  }
  return configs;
}
bool has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}
const TopologyRoute* chosen(const Topology& topology, const std::string& from, const std::string& to) {
  for (const TopologyRoute& route : topology.routes) {
    if (route.chosen && route.from == from && route.to == to) return &route;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("topology__as3_of_figure_two__prints_table_one") {
  const auto topology = topology_of(of_files("as3"));
  INFO((topology ? "" : topology.error().message));
  REQUIRE(topology);
  CHECK(topology_table(*topology) == std::vector<std::string>{
                                         "routes of AS 3",
                                         "       SN1   SN2     SN3     W*      W4",
                                         "  SN1  -     1,2     1,3     1,W*    1,W4",
                                         "  SN2  2,1   -       2,3     2,1,W*  2,1,W4",
                                         "  SN3  3,1   3,2     -       3,1,W*  3,1,W4",
                                         "  W*   W*,1  W*,1,2  W*,1,3  -       -",
                                         "  W4   W4,1  W4,1,2  W4,1,3  -       -",
                                     });
}

TEST_CASE("topology__figure_one__the_dedicated_link_is_taken_and_why") {
  const auto topology = topology_of(of_files("as"));
  INFO((topology ? "" : topology.error().message));
  REQUIRE(topology);
  const TopologyRoute* route = chosen(*topology, "3:3", "4:1");
  REQUIRE(route != nullptr);
  CHECK(route->subnets == std::vector<std::string>{"3:3", "3:1", "3:104", "4:1"});
  CHECK(route->cost == std::vector<uint64_t>{125 + 100, 4});
  CHECK(route->reason == "bandwidth 225 against 315");
  // Anyone else takes the public WAN, and nobody goes through a third AS.
  REQUIRE(chosen(*topology, "1:1", "4:4") != nullptr);
  for (const TopologyRoute& each : topology->routes) {
    for (const std::string& subnet : each.subnets) {
      const std::string as = subnet.substr(0, subnet.find(':'));
      CHECK((each.from.rfind(as + ":", 0) == 0 || each.to.rfind(as + ":", 0) == 0));
    }
  }
  const auto dot = topology_dot(*topology);
  CHECK(dot.front() == "graph ccixfer {");
  CHECK(dot.back() == "}");
  CHECK(has(dot, "label = \"AS 4\""));
  CHECK(has(dot, "-- \"s3:104\""));
  CHECK(has(topology_text(*topology), "* 3:3 -> 4:1: 3:3 > 3:1 > 3:104 > 4:1 (cost 225, 4): bandwidth 225 against 315"));
}

TEST_CASE("topology__public_wans__have_their_number_only_where_one_as_has_several") {
  const auto table = [](const std::vector<Config>& configs) { return topology_table(topology_of(configs).value()); };
  const auto apart = table({router("a", {"1:10Gb/s", "w9:1Gb/s"}), router("b", {"2:10Gb/s", "w8:1Gb/s"}, "", 4)});
  CHECK(has(apart, "W*"));
  CHECK_FALSE(has(apart, "W*("));
  const auto together = table({router("a", {"1:10Gb/s", "w9:1Gb/s"}), router("bb", {"1:10Gb/s", "w8:1Gb/s"})});
  CHECK(has(together, "W*(8)"));
  CHECK(has(together, "W*(9)"));
}

TEST_CASE("topology__shipped_borders__are_good") {
  std::vector<Config> configs;
  for (const char* file : {"border-east.toml", "border-west.toml"})
    configs.push_back(load_config((shipped / file).string()).value());
  CHECK(topology_of(configs));
}

TEST_CASE("topology__reasons__static_only_and_equal") {
  const std::vector<Config> configs = {
      router("a", {"1:10Gb/s", "2:10Gb/s", "5:32Gb/s"}, "[[router.static]]\nfrom = 1\nto = 8\nvia = [1, 2]\n"),
      router("bb", {"2:10Gb/s", "8:10Gb/s"}), router("ccc", {"5:32Gb/s", "6:32Gb/s"}), router("dddd", {"6:32Gb/s", "8:10Gb/s"})};
  const auto topology = topology_of(configs);
  REQUIRE(topology);
  CHECK(chosen(*topology, "3:1", "3:8")->reason == "static route");
  CHECK(chosen(*topology, "3:1", "3:8")->cost[0] == 300);
  CHECK(chosen(*topology, "3:8", "3:1")->reason == "bandwidth 262 against 300");
  CHECK(chosen(*topology, "3:1", "3:2")->reason == "the only one");
  const auto equal = topology_of({router("a", {"1:10Gb/s", "2:10Gb/s", "3:10Gb/s"}), router("bb", {"2:10Gb/s", "9:10Gb/s"}),
                                  router("ccc", {"3:10Gb/s", "9:10Gb/s"})});
  REQUIRE(equal);
  CHECK(chosen(*equal, "3:1", "3:9")->reason == "as cheap as 1 other: they share");
}

TEST_CASE("topology__a_static_route_over_a_subnet_that_no_router_has__is_an_error_of_its_file") {
  const Config a = router("a", {"1:10Gb/s", "2:10Gb/s"}, "[[router.static]]\nfrom = 1\nto = 8\nvia = [77]\n");
  CHECK(error_of({a, router("bb", {"2:10Gb/s", "8:10Gb/s"})}) ==
        "a: router.static.via: no router is on subnet 3:77, so 3:1 does not reach 3:8: name others");
  CHECK(topology_of({a}));  // the rest of the network has it, perhaps
}

TEST_CASE("topology__clashes__are_errors_that_name_file_and_remedy") {
  const std::string rates = error_of({router("a", {"1:10Gb/s", "2:10Gb/s"}), router("bb", {"2:1Gb/s", "3:10Gb/s"})});
  CHECK(rates ==
        "bb: device.d2.rate: subnet 3:2 is 1Gb/s here and 10Gb/s in a: give the same rate in both, or number one of them anew");
  CHECK(error_of({router("a", {"1:10Gb/s", "2:10Gb/s"}), router("bb", {"2:10Gb/s"})}) ==
        "bb: device: it is on subnet 3:2 only: a router joins two subnets or more");
  CHECK(error_of({router("a", {"1:10Gb/s", "2:10Gb/s"}), router("bb", {"5:10Gb/s", "6:10Gb/s"})}) ==
        "AS 3: subnets 3:1 and 3:5 cannot reach one another: join them by a router");
  // A rate that one file does not give is no clash.
  CHECK(topology_of({router("a", {"1:10Gb/s", "2:10Gb/s"}), router("bb", {"2", "3:10Gb/s"})}));
  CHECK(error_of({router("a", {"1:10Gb/s", "2:10Gb/s"}), router("b", {"2:10Gb/s", "3:10Gb/s"})}) ==
        "b: device.d2: tcp://10.2.0.2:7000 of subnet 3:2 stands in a too: give each router its own address");
}

// The address of all interfaces, which each router has: it tells its own once it runs.
TEST_CASE("topology__routers_that_listen_on_every_address__are_no_clash") {
  for (const std::string any : {"0.0.0.0", "::", "0::0"}) {
    const auto listening = [&](const std::string& name, const std::string& outer) {
      std::string text;
      for (const std::string& subnet : {outer, std::string("2")})
        text += fmt::format("[device.d{}]\ntransport = \"tcp\"\nip = \"{}\"\nport = 700{}\nas = 3\nsubnet = {}\nrouter = []\n",
                            subnet, any, subnet, subnet);
      return parsed(name, text);
    };
    CHECK(topology_of({listening("a", "1"), listening("b", "3")}));
  }
}

TEST_CASE("topology__wan_connected_subnets_apart_inside__an_error_that_names_the_remedy") {
  const std::string words = error_of({router("a", {"1:10Gb/s", "w100:10Gb/s"}), router("bb", {"5:10Gb/s", "w101:10Gb/s"})});
  CHECK(words.find("3:1 and 3:5 both lead to the WAN and cannot reach one another inside") != std::string::npos);
  CHECK(words.find("different AS numbers") != std::string::npos);
  // The remedy helps.
  CHECK(topology_of({router("a", {"1:10Gb/s", "w100:10Gb/s"}), router("bb", {"5:10Gb/s", "w101:10Gb/s"}, "", 4)}));
  CHECK(topology_of({router("a", {"1:10Gb/s", "w100:10Gb/s"}), router("bb", {"5:10Gb/s", "w101:10Gb/s"}),
                     router("ccc", {"1:10Gb/s", "5:10Gb/s"})}));
}

TEST_CASE("topology__records_of_a_running_router__problems_are_told_and_the_rest_is_shown") {
  const auto device = [](uint32_t subnet, const char* uri) {
    return routing::DeviceRecord{{3, subnet}, 10'000'000'000, 3, true, false, {}, uri, 0};
  };
  std::vector<routing::RouterRecord> records = {{1, 1, false, {device(1, "tcp://a:1"), device(2, "tcp://a:2")}},
                                                {2, 1, false, {device(5, "tcp://b:1"), device(6, "tcp://b:2")}},
                                                {3, 9, true, {}}};
  const auto topology = topology_of_records(records, {"bandwidth", "hops"});
  REQUIRE(topology);
  CHECK(topology->routers.size() == 2);
  CHECK(has(topology->problems, "3:1 and 3:5 cannot reach one another"));
  REQUIRE(chosen(*topology, "3:1", "3:2") != nullptr);
}

TEST_CASE("topology__records__a_line_for_each_device_with_all_that_is_known_of_it") {
  routing::DeviceRecord plain, wan;
  plain.subnet = {3, 1};
  plain.uri = "tcp://a:1";
  plain.rate_bits_per_s = 10'000'000'000;
  plain.transit = true;
  wan = plain;
  wan.subnet = {3, 9};
  wan.uri = "tcp://a:2";
  wan.wan = true;
  wan.transit = false;
  wan.latency_ns = 5'000;
  wan.reaches = {4, 5};
  auto topology = topology_of_records({{0x1F, 1, false, {plain, wan}}}, {"bandwidth", "hops"});
  REQUIRE(topology);
  REQUIRE(topology->routers.size() == 1);
  CHECK(topology->routers[0].name == "000000000000001f");
  CHECK(topology->routers[0].devices ==
        std::vector<std::string>{"subnet 3:1, tcp://a:1, 10Gb/s",
                                 "subnet 3:9, tcp://a:2, 10Gb/s, wan, no transit, 5us, reaches AS 4, 5"});
  CHECK(topology->routers[0].subnets == std::vector<routing::SubnetId>{{3, 1}, {3, 9}});
  topology->notes = {"the list is cut"};
  CHECK(topology_text(*topology).back() == "note: the list is cut");
  topology->routes.clear();
  CHECK(has(topology_text(*topology), "  none"));
}

TEST_CASE("topology__two_borders__routes_both_ways_over_the_wan") {
  const auto west = parse_config(
      "west.toml",
      "[device.lan]\nip=\"10.0.0.1\"\nport=7000\nas=1\nsubnet=1\nrouter=[]\nrate=\"10Gb/s\"\n"
      "[device.wan]\nip=\"192.0.2.1\"\nport=7000\nas=1\nsubnet=9\nrouter=[\"tcp://192.0.2.2:7000\"]\nrate=\"1Gb/s\"\n");
  const auto east = parse_config(
      "east.toml",
      "[device.lan]\nip=\"10.0.0.1\"\nport=7000\nas=1\nsubnet=2\nrouter=[]\nrate=\"10Gb/s\"\n"
      "[device.wan]\nip=\"192.0.2.2\"\nport=7000\nas=1\nsubnet=9\nrouter=[\"tcp://192.0.2.1:7000\"]\nrate=\"1Gb/s\"\n");
  REQUIRE(west);
  REQUIRE(east);
  const auto topology = topology_of({*west, *east});
  REQUIRE(topology);
  CHECK(topology->routers.size() == 2);
  bool there = false, back = false;
  for (const TopologyRoute& route : topology->routes) {
    there = there || (route.from == "1:1" && route.to == "1:2" && route.subnets == std::vector<std::string>{"1:1", "1:9", "1:2"});
    back = back || (route.from == "1:2" && route.to == "1:1");
  }
  CHECK(there);
  CHECK(back);
  CHECK_FALSE(topology_text(*topology).empty());
}

TEST_CASE("topology__two_files_that_disagree_on_a_subnet__usage") {
  const auto a = parse_config("a.toml", "[device.x]\nas=1\nsubnet=1\nrouter=[]\n");
  const auto b = parse_config("b.toml", "[device.x]\ntransport=\"udp\"\nas=1\nsubnet=1\nrouter=[]\n");
  REQUIRE(a);
  REQUIRE(b);
  CHECK_FALSE(topology_of({*a, *b}));
}

namespace {

// A border of an AS of its own: its WAN at 192.0.2.AS, and what `router` of that says.
Config border(uint32_t as, const std::string& names, const std::string& wan = "wan = true\n", const std::string& at = "ip") {
  return parsed(fmt::format("as{}.toml", as),
                fmt::format("[device.lan]\nip = \"10.{0}.0.1\"\nport = 7000\nas = {0}\nsubnet = 1\nrouter = []\n"
                            "[device.wan]\n{3}\nport = 7000\nas = {0}\nsubnet = 9\nrouter = [{1}]\n{2}",
                            as, names, wan, at == "ip" ? fmt::format("ip = \"192.0.2.{}\"", as) : at));
}

}  // namespace

TEST_CASE("topology__routers_that_no_list_joins__are_told_with_the_device_and_the_address") {
  const auto told = [](const std::vector<Config>& configs) { return topology_of(configs).value().warnings; };
  const std::string stranger = "as1.toml: device.wan.router: it leads to nobody of as2.toml";
  for (const char* names : {"", "\"tcp://192.0.2.77:7000\""}) {
    const auto warnings = told({border(1, names), border(2, "")});
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(stranger) == 0);
    CHECK(warnings[0].find("name tcp://192.0.2.2:7000 in it") != std::string::npos);
  }
  CHECK(told({border(1, "\"tcp://192.0.2.2:7000\""), border(2, "")}).empty());
  CHECK(told({border(1, ""), border(2, "\"tcp://192.0.2.1:7000\"")}).empty());
  // By way of the third one.
  CHECK(told({border(1, "\"tcp://192.0.2.3:7000\""), border(2, "\"tcp://192.0.2.3:7000\""), border(3, "")}).empty());
  CHECK(told({border(1, "\"tcp://192.0.2.2:7000\""), border(2, ""), border(3, "")}).size() == 1);
  // What the files do not say may be so.
  CHECK(told({border(1, "\"tcp://two.example:7000\""), border(2, "")}).empty());
  CHECK(told({border(1, "\"tcp://192.0.2.77:7000\""), border(2, "", "wan = true\n", "interface = \"eth0\"")}).empty());
  CHECK(told({border(1, ""), border(2, "", "wan = true\n", "interface = \"eth0\"")}).size() == 1);
  // Within an AS.
  CHECK(told({router("a", {"1", "2"}), router("bb", {"2", "3"})}).size() == 1);
}

TEST_CASE("topology__an_as_without_a_wan__is_told_beside_others") {
  const auto warnings = topology_of({border(1, "", ""), border(2, "", "")}).value().warnings;
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] == "AS 1: no route leads to another AS: give its border router a device with wan = true");
  CHECK(topology_of({border(1, "", "")}).value().warnings.empty());
}

TEST_CASE("topology__shipped_files__have_nothing_to_warn_of") {
  CHECK(topology_of(of_files("as")).value().warnings == std::vector<std::string>{});
  CHECK(topology_of(of_files("as3")).value().warnings == std::vector<std::string>{});
  const std::vector<Config> borders = {load_config((shipped / "border-east.toml").string()).value(),
                                       load_config((shipped / "border-west.toml").string()).value()};
  CHECK(topology_of(borders).value().warnings == std::vector<std::string>{});
}
