// Scenarios as a user writes them: every key gets where it belongs, and every mistake its one line, whole.
#include "app/simulate/scenario.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

using namespace ccixfer;
using namespace ccixfer::simulate;

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string small_world = R"([link.lan]
[node.a]
links = ["lan"]
[node.b]
links = ["lan"]
)";
const std::string transfer = R"([[transfer]]
from = "a"
to = "b"
entries = 1
)";
// Two AS on a WAN, each with a campus and a router.
const std::string two_sites = R"([link.wan]
wan = true
subnet = 9
[link.east]
as = 1
subnet = 1
[link.west]
as = 2
subnet = 1
[node.a]
links = ["east"]
[node.b]
links = ["west"]
[router.r1]
links = ["east", "wan"]
[router.r2]
links = ["west", "wan"]
)";

std::string said(const std::string& text) {
  const auto scenario = parse_scenario("w.toml", text);
  if (scenario) return "";
  CHECK(scenario.error().kind == ErrorKind::usage);
  return scenario.error().message;
}

Scenario parsed(const std::string& text) {
  const auto scenario = parse_scenario("w.toml", text);
  INFO((scenario ? "" : scenario.error().message));
  REQUIRE(scenario);
  return *scenario;
}

// The first world with one line put behind the table's head.
std::string in_link(const std::string& line) { return "[link.lan]\n" + line + small_world.substr(10) + transfer; }
std::string in_node(const std::string& line) { return small_world + line + "\n" + transfer; }
std::string in_transfer(const std::string& line) { return small_world + transfer + line; }
std::string fault(const std::string& lines) { return two_sites + transfer + "[[fault]]\n" + lines; }

}  // namespace

TEST_CASE("scenario__least__defaults") {
  const Scenario world = parsed(small_world + transfer);
  CHECK(world.file == "w.toml");
  CHECK(world.seed == 1);
  CHECK(world.time_max == std::chrono::hours(1));
  CHECK(world.events_max == 20'000'000);
  CHECK(world.faults.empty());
  REQUIRE(world.links.size() == 1);
  CHECK_FALSE(world.links[0].subnet);
  CHECK_FALSE(world.links[0].wan);
  CHECK(world.links[0].options.rate_bytes_per_s == sim::LinkOptions{}.rate_bytes_per_s);
  REQUIRE(world.nodes.size() == 2);
  CHECK(world.nodes[0].address == "10.0.0.1");
  CHECK(world.nodes[1].address == "10.0.0.2");
  CHECK(world.nodes[0].buffers == 8);
  CHECK(world.nodes[0].disk_bytes == uint64_t{1} << 40);
  REQUIRE(world.transfers.size() == 1);
  const ScenarioTransfer& one = world.transfers[0];
  CHECK(one.name == "transfer1");
  CHECK_FALSE(one.routed);
  CHECK(one.start == Duration(0));
  CHECK(one.archive);
  CHECK(one.lanes == 2);
  CHECK(one.timeout == seconds(60));
  CHECK(one.tree.entries_min == 1);
  CHECK(one.tree.entries_max == 1);
  CHECK(one.tree.large_chance == 0);
  CHECK_FALSE(one.tree.links);
  CHECK_FALSE(one.tree.odd_names);
}

TEST_CASE("scenario__every_key__gets_where_it_belongs") {
  const Scenario world = parsed(R"(seed = 0
time_max = "90s"
events_max = 1
[link.lan]
as = 0
subnet = 4294967295
delay = ["0s", "2ms"]
rate = "16Mb/s"
window = "1"
reset_mean = "1.5min"
dial_failure = 0
half_open = 1
corruption = 0.25
[link.other]
as = 0
subnet = 7
delay = "30us"
[link.wan]
wan = true
subnet = 3
between = [0, 5]
[node.a]
links = ["lan", "other"]
address = "10.0.0.2"
buffers = 4
disk = "64KiB"
[node.b]
links = ["lan"]
buffers = 256
[router.r]
links = ["other", "wan"]
fragment = "4096"
memory = "64KiB"
metric = ["hops", "latency"]
[[transfer]]
name = "nightly.run-4_2"
from = "a"
to = "b"
routed = true
start = "1h"
entries = 100000
entry_size = "1"
large = "2MiB"
odd_names = true
archive = false
lanes = 1
timeout = "1ms"
[[transfer]]
from = "b"
to = "a"
large = "1"
[[fault]]
at = "0s"
kind = "crash"
node = "a"
for = "3s"
[[fault]]
at = "1s"
kind = "reset"
link = "lan"
[[fault]]
at = "2s"
kind = "partition"
link = "lan"
node = "b"
for = "0s"
[[fault]]
at = "2s"
kind = "stop"
node = "r"
[[fault]]
at = "2s"
kind = "reset"
node = "r"
)");
  CHECK(world.seed == 0);
  CHECK(world.time_max == seconds(90));
  CHECK(world.events_max == 1);
  REQUIRE(world.links.size() == 3);
  const ScenarioLink& lan = world.links[0];
  CHECK(lan.name == "lan");
  CHECK(lan.subnet == routing::SubnetId{0, UINT32_MAX});
  CHECK(lan.options.delay_min == Duration(0));
  CHECK(lan.options.delay_max == milliseconds(2));
  CHECK(lan.options.rate_bytes_per_s == 2'000'000);
  CHECK(lan.options.window_bytes == 1);
  CHECK(lan.options.reset_mean == seconds(90));
  CHECK(lan.options.dial_failure_chance == 0);
  CHECK(lan.options.half_open_chance == 1);
  CHECK(lan.options.corrupt_chance == 0.25);
  CHECK_FALSE(lan.wan);
  CHECK(world.links[1].options.delay_min == microseconds(30));
  CHECK(world.links[1].options.delay_max == microseconds(30));
  CHECK(world.links[2].wan);
  CHECK(world.links[2].wan_subnet == 3);
  CHECK_FALSE(world.links[2].subnet);
  CHECK(world.links[2].between == std::vector<uint32_t>{0, 5});

  REQUIRE(world.nodes.size() == 3);
  const ScenarioNode& a = world.nodes[0];
  CHECK(a.links == std::vector<std::string>{"lan", "other"});
  CHECK(a.address == "10.0.0.2");
  CHECK(a.buffers == 4);
  CHECK(a.disk_bytes == 64u << 10);
  CHECK_FALSE(a.is_router);
  CHECK(world.nodes[1].address == "10.0.0.1");
  CHECK(world.nodes[1].buffers == 256);
  const ScenarioNode& r = world.nodes[2];
  CHECK(r.address == "10.0.0.3");  // .2 is a's
  CHECK(r.is_router);
  CHECK(r.as == 0);
  CHECK(r.fragment_bytes == 4096);
  CHECK(r.memory_bytes == 64u << 10);
  CHECK(r.metric == std::vector<std::string>{"hops", "latency"});

  REQUIRE(world.transfers.size() == 2);
  const ScenarioTransfer& one = world.transfers[0];
  CHECK(one.name == "nightly.run-4_2");
  CHECK(one.from == "a");
  CHECK(one.to == "b");
  CHECK(one.routed);
  CHECK(one.start == std::chrono::hours(1));
  CHECK(one.tree.entries_min == 100'000);
  CHECK(one.tree.entries_max == 100'000);
  CHECK(one.tree.file_bytes_max == 1);
  CHECK(one.tree.large_bytes_min == 2u << 20);
  CHECK(one.tree.large_bytes_max == 2u << 20);
  CHECK(one.tree.large_chance == 1);
  CHECK(one.tree.odd_names);
  CHECK_FALSE(one.archive);
  CHECK(one.lanes == 1);
  CHECK(one.timeout == milliseconds(1));
  CHECK(world.transfers[1].name == "transfer2");
  CHECK_FALSE(world.transfers[1].routed);  // both are on `lan`
  CHECK(world.transfers[1].tree.entries_min == 0);
  CHECK(world.transfers[1].tree.entries_max == 0);
  CHECK(world.transfers[1].tree.large_bytes_min == 1);

  REQUIRE(world.faults.size() == 5);
  CHECK(world.faults[0].at == Duration(0));
  CHECK(world.faults[0].kind == FaultKind::crash);
  CHECK(world.faults[0].node == "a");
  CHECK(world.faults[0].lasts == Duration(seconds(3)));
  CHECK(world.faults[1].kind == FaultKind::reset);
  CHECK(world.faults[1].link == "lan");
  CHECK(world.faults[1].node.empty());
  CHECK_FALSE(world.faults[1].lasts);
  CHECK(world.faults[2].kind == FaultKind::partition);
  CHECK(world.faults[2].link == "lan");
  CHECK(world.faults[2].node == "b");
  CHECK(world.faults[2].lasts == Duration(0));
  CHECK(world.faults[3].kind == FaultKind::stop);
  CHECK(world.faults[4].kind == FaultKind::reset);
  CHECK(world.faults[4].node == "r");
  CHECK(std::string(fault_name(FaultKind::crash)) == "crash");
  CHECK(std::string(fault_name(FaultKind::reset)) == "reset");
  CHECK(std::string(fault_name(FaultKind::partition)) == "partition");
  CHECK(std::string(fault_name(FaultKind::stop)) == "stop");
}

TEST_CASE("scenario__two_sites__routers_are_of_their_as_and_transfers_are_routed") {
  const Scenario world = parsed(two_sites + transfer);
  REQUIRE(world.nodes.size() == 4);
  CHECK(world.nodes[2].as == 1);
  CHECK(world.nodes[3].as == 2);
  CHECK(world.nodes[3].metric == std::vector<std::string>{"bandwidth", "hops"});
  CHECK(world.transfers[0].routed);  // as they share no link
}

TEST_CASE("scenario__mistakes_at_the_top__one_line_each") {
  const std::string rest = small_world + transfer;
  CHECK(said("size = 1\n" + rest) ==
        "w.toml:1: size: unknown key: seed, time_max, events_max, link, node, router, transfer and fault are known");
  CHECK(said("seed = -1\n" + rest) == "w.toml:1: seed: bad value: give a whole number from 0 to 9223372036854775807");
  CHECK(said("seed = \"1\"\n" + rest) == "w.toml:1: seed: bad value: give a whole number from 0 to 9223372036854775807");
  CHECK(said("\nevents_max = 0\n" + rest) == "w.toml:2: events_max: bad value: give a whole number from 1 to 9223372036854775807");
  const std::string times = "time_max: bad value: give a time such as \"50us\", \"20ms\" or \"2s\"";
  CHECK(said("time_max = \"2\"\n" + rest) == "w.toml:1: " + times);
  CHECK(said("time_max = \"8761h\"\n" + rest) == "w.toml:1: " + times);  // more than a year
  CHECK(said("time_max = \"8760h\"\n" + rest).empty());
  CHECK(said("time_max = 2\n" + rest) == "w.toml:1: time_max: is not a string: write time_max = \"20ms\"");
  CHECK(said("time_max = \"\"\n" + rest) == "w.toml:1: time_max: is empty: write time_max = \"20ms\"");
  CHECK(said("link = 1\n") == "w.toml:1: link: is not a table: write [link]");
  CHECK(said("seed = 1\n") == "w.toml:1: link: is missing: a world has at least one [link.NAME]");
  CHECK(said(small_world) == "w.toml:1: transfer: is missing: write at least one [[transfer]]");
  CHECK(said("transfer = 1\n" + small_world) == "w.toml:1: transfer: is not a list: write transfer = [...]");
  CHECK(said("transfer = []\n" + small_world) == "w.toml:1: transfer: is empty: name at least one");
  CHECK(said("fault = 1\n" + rest) == "w.toml:1: fault: is not a list: write fault = [...]");
  CHECK(said("router = 1\n" + rest) == "w.toml:1: router: is not a table: write [router]");
  std::string many = small_world;
  for (size_t i = 0; i < scenario_transfers_max; ++i) many += transfer;
  CHECK(said(many).empty());
  CHECK(said(many + transfer) == "w.toml:6: transfer: is too long: at most 1000 are allowed");
}

TEST_CASE("scenario__mistakes_in_a_link__one_line_each") {
  CHECK(said(in_link("as = -1")) == "w.toml:2: link.lan.as: bad value: give a whole number from 0 to 4294967295");
  CHECK(said(in_link("subnet = 4294967296")) == "w.toml:2: link.lan.subnet: bad value: give a whole number from 0 to 4294967295");
  CHECK(said(in_link("wan = 1")) == "w.toml:2: link.lan.wan: is not true or false: write link.lan.wan = true");
  CHECK(said(in_link("between = 1")) == "w.toml:2: link.lan.between: is not a list: write link.lan.between = [...]");
  CHECK(said(in_link("between = [1, -1]")) == "w.toml:2: link.lan.between: bad value: give a whole number from 0 to 4294967295");
  CHECK(said(in_link("delay = [\"1s\"]")) == "w.toml:2: link.lan.delay: bad value: give one time, or the least and the most");
  CHECK(said(in_link("delay = [\"2s\", \"1s\"]")) ==
        "w.toml:2: link.lan.delay: the least is more than the most: give [least, most]");
  CHECK(said(in_link("delay = [\"1s\", \"1s\"]")).empty());
  const std::string rates = "w.toml:2: link.lan.rate: bad value: give a rate with its unit, such as \"10Gb/s\"";
  CHECK(said(in_link("rate = \"100\"")) == rates);
  CHECK(said(in_link("rate = \"7b/s\"")) == rates);
  CHECK(parsed(in_link("rate = \"8b/s\"")).links[0].options.rate_bytes_per_s == 1);
  const std::string sizes = "w.toml:2: link.lan.window: bad value: give a size such as \"64KiB\", from 1 to 1073741824 bytes";
  CHECK(said(in_link("window = \"0\"")) == sizes);
  CHECK(said(in_link("window = \"1073741825\"")) == sizes);
  CHECK(said(in_link("window = \"x\"")) == sizes);
  CHECK(parsed(in_link("window = \"1GiB\"")).links[0].options.window_bytes == 1u << 30);
  const std::string mean = "w.toml:2: link.lan.reset_mean: bad value: give a time such as \"50us\", \"20ms\" or \"2s\"";
  CHECK(said(in_link("reset_mean = \"0s\"")) == mean);
  CHECK(said(in_link("reset_mean = \"1ns\"")).empty());
  for (const char* key : {"dial_failure", "half_open", "corruption"}) {
    const std::string line = fmt::format("w.toml:2: link.lan.{}: bad value: give a chance from 0 to 1", key);
    CHECK(said(in_link(fmt::format("{} = 1.01", key))) == line);
    CHECK(said(in_link(fmt::format("{} = -0.01", key))) == line);
    CHECK(said(in_link(fmt::format("{} = nan", key))) == line);
    CHECK(said(in_link(fmt::format("{} = \"0\"", key))) == line);
    CHECK(said(in_link(fmt::format("{} = 2", key))) == line);
  }
  CHECK(said(in_link("speed = 1")) ==
        "w.toml:2: link.lan.speed: unknown key: as, subnet, wan, between, delay, rate, window, reset_mean, dial_failure, half_open "
        "and "
        "corruption are known");
  const std::string of_wan = "link.lan.wan: a WAN is of no AS, and each numbers it so: give subnet and no as";
  CHECK(said(in_link("wan = true")).find(of_wan) != std::string::npos);
  CHECK(said(in_link("wan = true\nas = 1\nsubnet = 1")).find(of_wan) != std::string::npos);
  CHECK(said(in_link("wan = true\nsubnet = 1")).empty());
  CHECK(said(in_link("as = 1")) == "w.toml:1: link.lan: as and subnet go together: give both or none");
  CHECK(said(in_link("subnet = 1")) == "w.toml:1: link.lan: as and subnet go together: give both or none");
  CHECK(said(in_link("between = [1]")) == "w.toml:1: link.lan.between: only a WAN lies between AS: write wan = true");
  CHECK(said("link.lan = 1\n" + transfer) == "w.toml:1: link.lan: is not a table: write [link.lan]");
}

TEST_CASE("scenario__names__what_is_one") {
  const auto link_named = [](const std::string& name) { return said("[link.\"" + name + "\"]\n" + small_world + transfer); };
  const std::string what_to_do = "use at most 64 letters, digits, '-', '_' and '.'";
  CHECK(link_named("A-z_0.9").empty());
  CHECK(link_named(std::string(64, 'x')).empty());
  const std::string long_name(65, 'x');
  CHECK(link_named(long_name) == fmt::format("w.toml:1: link.{}: '{}' is no name: {}", long_name, long_name, what_to_do));
  CHECK(link_named("") == "w.toml:1: link.: '' is no name: " + what_to_do);
  CHECK(link_named(".a") == "w.toml:1: link..a: '.a' is no name: " + what_to_do);
  CHECK(link_named("a/b") == "w.toml:1: link.a/b: 'a/b' is no name: " + what_to_do);
  CHECK(said(small_world + "[node.\"a b\"]\nlinks = [\"lan\"]\n" + transfer) ==
        "w.toml:6: node.a b: 'a b' is no name: " + what_to_do);
  CHECK(said(in_transfer("name = \"a b\"")) == "w.toml:10: transfer.name: 'a b' is no name: " + what_to_do);
}

TEST_CASE("scenario__links_with_one_number__refused_with_both_names") {
  const auto both = [](const std::string& one, const std::string& other) {
    return said("[link.x]\n" + one + "\n[link.y]\n" + other + "\n" + small_world + transfer);
  };
  const std::string taken = "link x has it too: number one anew";
  CHECK(both("as = 1\nsubnet = 2", "as = 1\nsubnet = 2") == "w.toml:4: link.y.subnet: " + taken);
  CHECK(both("as = 1\nsubnet = 2", "as = 2\nsubnet = 2").empty());
  CHECK(both("as = 1\nsubnet = 2", "as = 1\nsubnet = 3").empty());
  CHECK(both("wan = true\nsubnet = 2", "wan = true\nsubnet = 2") == "w.toml:4: link.y.subnet: " + taken);
  CHECK(both("wan = true\nsubnet = 2", "wan = true\nsubnet = 3").empty());
  // In each AS a WAN has its number, so that no subnet of any may have it.
  CHECK(both("wan = true\nsubnet = 2", "as = 5\nsubnet = 2") == "w.toml:4: link.y.subnet: " + taken);
  CHECK(both("as = 5\nsubnet = 2", "wan = true\nsubnet = 2") == "w.toml:4: link.y.subnet: " + taken);
  CHECK(both("wan = true\nsubnet = 2", "as = 5\nsubnet = 3").empty());
  CHECK(both("as = 5\nsubnet = 0", "wan = true\nsubnet = 1").empty());
  CHECK(both("", "wan = true\nsubnet = 0").empty());  // a link of no subnet has not the number 0
  CHECK(both("wan = true\nsubnet = 0", "").empty());
  CHECK(both("", "as = 1\nsubnet = 0").empty());
}

TEST_CASE("scenario__mistakes_in_a_node__one_line_each") {
  CHECK(said("[node]\nc = 1\n" + small_world.substr(0, 11) + transfer) == "w.toml:2: node.c: is not a table: write [node.c]");
  const std::string none = "[link.lan]\n[node.a]\nlinks = []\n";
  CHECK(said(none + transfer) == "w.toml:3: node.a.links: is empty: name at least one");
  CHECK(said("[link.lan]\n[node.a]\n" + transfer) == "w.toml:2: node.a.links: is missing or too short: name the link it is on");
  CHECK(said("[link.lan]\n[node.a]\nlinks = [\"wan\"]\n" + transfer) ==
        "w.toml:3: node.a.links: there is no link 'wan': define [link.NAME]");
  CHECK(said("[link.lan]\n[node.a]\nlinks = [\"lan\", \"lan\"]\n" + transfer) ==
        "w.toml:3: node.a.links: named twice: name each once");
  CHECK(said(in_node("address = \"here\"")) == "w.toml:6: node.b.address: is no IPv4 address: write for instance \"10.0.0.2\"");
  CHECK(said(in_node("address = \"10.0.0.7\"")).empty());
  const std::string buffers = "w.toml:6: node.b.buffers: bad value: give a whole number from 4 to 256";
  CHECK(said(in_node("buffers = 3")) == buffers);
  CHECK(said(in_node("buffers = 257")) == buffers);
  CHECK(said(in_node("disk = \"65535\"")) ==
        "w.toml:6: node.b.disk: bad value: give a size such as \"64KiB\", from 65536 to 1099511627776 bytes");
  CHECK(said(in_node("disk = \"1TiB\"")).empty());
  CHECK(said(in_node("disk = \"2TiB\"")) ==
        "w.toml:6: node.b.disk: bad value: give a size such as \"64KiB\", from 65536 to 1099511627776 bytes");
  const std::string of_node = "unknown key: links, address, buffers and disk are known";
  for (const char* key : {"fragment = \"64KiB\"", "memory = \"1MiB\"", "metric = [\"hops\"]", "mtu = 1"}) {
    const std::string name(key, std::string(key).find(' '));
    CHECK(said(in_node(key)) == fmt::format("w.toml:6: node.b.{}: {}", name, of_node));
  }
  const auto in_router = [](const std::string& line) { return said(two_sites + line + "\n" + transfer); };
  const std::string of_router = "unknown key: links, address, fragment, memory and metric are known";
  CHECK(in_router("buffers = 8") == "w.toml:18: router.r2.buffers: " + of_router);
  CHECK(in_router("disk = \"1MiB\"") == "w.toml:18: router.r2.disk: " + of_router);
  CHECK(in_router("fragment = \"4095\"") ==
        "w.toml:18: router.r2.fragment: bad value: give a size such as \"64KiB\", from 4096 to 4194304 bytes");
  CHECK(in_router("fragment = \"4MiB\"").empty());
  CHECK(in_router("fragment = \"5MiB\"") ==
        "w.toml:18: router.r2.fragment: bad value: give a size such as \"64KiB\", from 4096 to 4194304 bytes");
  CHECK(in_router("memory = \"65535\"") ==
        "w.toml:18: router.r2.memory: bad value: give a size such as \"64KiB\", from 65536 to 1073741824 bytes");
  CHECK(in_router("memory = \"1GiB\"").empty());
  CHECK(in_router("memory = \"2GiB\"") ==
        "w.toml:18: router.r2.memory: bad value: give a size such as \"64KiB\", from 65536 to 1073741824 bytes");
  CHECK(in_router("metric = [\"speed\"]") ==
        "w.toml:18: router.r2.metric: unknown value 'speed': give one of bandwidth, capabilities, latency, hops");
  CHECK(in_router("metric = [\"hops\", \"hops\"]") == "w.toml:18: router.r2.metric: named twice: name each once");
  CHECK(in_router("metric = [\"hops\", \"latency\", \"bandwidth\", \"capabilities\"]").empty());
  CHECK(in_router("metric = [\"hops\", \"latency\", \"bandwidth\", \"capabilities\", \"hops\"]") ==
        "w.toml:18: router.r2.metric: is too long: at most 4 are allowed");
  CHECK(said(small_world + "[router.a]\nlinks = [\"lan\"]\n" + transfer) ==
        "w.toml:6: router.a: a node has this name: name it otherwise");
}

TEST_CASE("scenario__routers__are_of_one_as") {
  const auto router_on = [](const std::string& links) {
    return said(two_sites + "[link.plain]\n[link.public]\nwan = true\nsubnet = 8\nbetween = [2, 3]\n[router.x]\nlinks = [" + links +
                "]\n" + transfer);
  };
  CHECK(router_on("\"east\"") == "w.toml:23: router.x.links: is missing or too short: a router is on two links or more");
  CHECK(router_on("\"east\", \"plain\"") == "w.toml:23: router.x.links: link plain has no subnet: give it as and subnet");
  CHECK(router_on("\"east\", \"west\"") ==
        "w.toml:23: router.x.links: link west is of AS 2, another is of AS 1: between two AS put two routers and a link with wan = "
        "true");
  CHECK(router_on("\"wan\", \"public\"") ==
        "w.toml:23: router.x.links: only WANs: the router is of no AS: put it on a link of its AS too");
  CHECK(router_on("\"east\", \"public\"") ==
        "w.toml:23: router.x.links: link public is not for AS 1: leave it out, or add the AS to between");
  CHECK(router_on("\"west\", \"public\"").empty());
  CHECK(router_on("\"east\", \"wan\"").empty());
}

TEST_CASE("scenario__addresses__once_a_link") {
  const std::string same = "[link.x]\n[link.y]\n[node.a]\nlinks = [\"x\"]\naddress = \"10.0.0.9\"\n[node.b]\n";
  CHECK(said(same + "links = [\"x\"]\naddress = \"10.0.0.9\"\n" + transfer) ==
        "w.toml:6: b.address: a has it too on link x: give another");
  // On another link it may be there again; but then a dialler that is on both would meet the wrong one.
  const std::string twice = same + "links = [\"y\"]\naddress = \"10.0.0.9\"\n[node.c]\nlinks = [\"x\", \"y\"]\n";
  CHECK(said(twice + "[[transfer]]\nfrom = \"c\"\nto = \"a\"\nentries = 1\n").empty());
  CHECK(said(twice + "[[transfer]]\nfrom = \"c\"\nto = \"b\"\nentries = 1\n") ==
        "w.toml:11: transfer.to: a has its address too on link x: give one of them another address");
  std::string many = small_world;
  for (size_t i = 0; i < scenario_places_max - 3; ++i) many += fmt::format("[node.n{}]\nlinks = [\"lan\"]\n", i);
  const Scenario world = parsed(many + transfer);
  CHECK(world.nodes.back().address == fmt::format("10.0.0.{}", scenario_places_max - 1));
  CHECK(said(many + "[node.more]\nlinks = [\"lan\"]\n" + transfer) ==
        "w.toml:1: node: more than 200 links, nodes and routers: describe a smaller world");
}

TEST_CASE("scenario__mistakes_in_a_transfer__one_line_each") {
  CHECK(said("transfer = [1]\n" + small_world) == "w.toml:1: transfer: is not a table: write [transfer]");
  CHECK(said(in_transfer("size = 1")) ==
        "w.toml:10: transfer.size: unknown key: name, from, to, routed, start, entries, entry_size, large, odd_names, archive, "
        "lanes and "
        "timeout are known");
  const std::string one = small_world + "[[transfer]]\n";
  CHECK(said(one + "to = \"b\"\nentries = 1\n") == "w.toml:6: transfer.from: is missing: a transfer goes from a node to a node");
  CHECK(said(one + "from = \"b\"\nentries = 1\n") == "w.toml:6: transfer.to: is missing: a transfer goes from a node to a node");
  CHECK(said(one + "from = \"x\"\nto = \"b\"\nentries = 1\n") ==
        "w.toml:7: transfer.from: there is no node 'x': define [node.NAME]");
  CHECK(said(one + "from = \"a\"\nto = \"a\"\nentries = 1\n") ==
        "w.toml:8: transfer.to: is where it comes from: name another node");
  CHECK(said(one + "from = \"a\"\nto = \"b\"\n") ==
        "w.toml:6: transfer.entries: is missing: say what is sent: entries = N, large = SIZE, or both");
  CHECK(said(two_sites + "[[transfer]]\nfrom = \"r1\"\nto = \"b\"\nentries = 1\n") ==
        "w.toml:19: transfer.from: 'r1' is a router: name a node");
  CHECK(said(small_world + transfer.substr(0, transfer.rfind("entries")) + "entries = 100001") ==
        "w.toml:9: transfer.entries: bad value: give a whole number from 0 to 100000");
  CHECK(said(small_world + transfer.substr(0, transfer.rfind("entries")) + "entries = 0").empty());
  const auto sized = [](const std::string& key, const std::string& most) {
    return fmt::format("w.toml:10: transfer.{}: bad value: give a size such as \"64KiB\", from 1 to {} bytes", key, most);
  };
  CHECK(said(in_transfer("entry_size = \"0\"")) == sized("entry_size", "4194304"));
  CHECK(said(in_transfer("entry_size = \"4MiB\"")).empty());
  CHECK(said(in_transfer("entry_size = \"5MiB\"")) == sized("entry_size", "4194304"));
  CHECK(said(in_transfer("large = \"0\"")) == sized("large", "1073741824"));
  CHECK(said(in_transfer("large = \"1GiB\"")).empty());
  CHECK(said(in_transfer("large = \"2GiB\"")) == sized("large", "1073741824"));
  CHECK(said(in_transfer("lanes = 0")) == "w.toml:10: transfer.lanes: bad value: give a whole number from 1 to 1024");
  CHECK(said(in_transfer("lanes = 1024")).empty());
  CHECK(said(in_transfer("lanes = 1025")) == "w.toml:10: transfer.lanes: bad value: give a whole number from 1 to 1024");
  CHECK(said(in_transfer("timeout = \"0.5ms\"")) ==
        "w.toml:10: transfer.timeout: bad value: give a time such as \"50us\", \"20ms\" or \"2s\"");
  CHECK(said(in_transfer("start = \"x\"")) ==
        "w.toml:10: transfer.start: bad value: give a time such as \"50us\", \"20ms\" or \"2s\"");
  CHECK(said(in_transfer("archive = 1")) == "w.toml:10: transfer.archive: is not true or false: write transfer.archive = true");
  CHECK(said(in_transfer("odd_names = 1")) ==
        "w.toml:10: transfer.odd_names: is not true or false: write transfer.odd_names = true");
  CHECK(said(in_transfer("name = \"x\"\n" + transfer + "name = \"x\"")) ==
        "w.toml:11: transfer.name: another transfer has this name: name it otherwise");
  CHECK(said(two_sites + transfer + "routed = false") ==
        "w.toml:18: transfer.routed: the nodes share no link: leave it out, or put both on one link");
  CHECK(said(in_transfer("routed = true")) ==
        "w.toml:6: transfer.routed: link lan, the first of a, has no subnet: give it as and subnet");
  const std::string half = "[link.x]\nas = 1\nsubnet = 1\n[link.y]\n[node.a]\nlinks = [\"x\"]\n[node.b]\nlinks = [\"y\", \"x\"]\n";
  CHECK(said(half + transfer + "routed = true") ==
        "w.toml:9: transfer.routed: link y, the first of b, has no subnet: give it as and subnet");
  CHECK(said(half + transfer).empty());
}

TEST_CASE("scenario__mistakes_in_a_fault__one_line_each") {
  CHECK(said(fault("at = \"1s\"\nkind = \"crash\"\nnode = \"a\"\nwhy = 1")) ==
        "w.toml:26: fault.why: unknown key: at, kind, node, link and for are known");
  CHECK(said(fault("kind = \"crash\"\nnode = \"a\"")) == "w.toml:22: fault.at: is missing: a fault has at and kind");
  CHECK(said(fault("at = \"1s\"\nnode = \"a\"")) == "w.toml:22: fault.kind: is missing: a fault has at and kind");
  CHECK(said(fault("at = \"1s\"\nkind = \"fire\"\nnode = \"a\"")) ==
        "w.toml:24: fault.kind: unknown value 'fire': give one of crash, reset, partition, stop");
  CHECK(said(fault("at = \"x\"\nkind = \"crash\"\nnode = \"a\"")) ==
        "w.toml:23: fault.at: bad value: give a time such as \"50us\", \"20ms\" or \"2s\"");
  CHECK(said(fault("at = \"1s\"\nkind = \"crash\"\nnode = \"z\"")) ==
        "w.toml:25: fault.node: there is no node 'z': define [node.NAME]");
  for (const char* kind : {"crash", "stop", "reset", "partition"}) {
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"", kind))) ==
          "w.toml:22: fault.node: is missing: name what it happens to");
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"\nnode = \"r1\"", kind))).empty());
  }
  for (const char* kind : {"crash", "stop"}) {
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"\nlink = \"east\"", kind))) ==
          "w.toml:22: fault.node: is missing: name what it happens to");
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"\nnode = \"r1\"\nlink = \"east\"", kind))) ==
          "w.toml:26: fault.link: a link does not crash or stop: leave it out");
  }
  for (const char* kind : {"reset", "partition"})
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"\nlink = \"east\"", kind))).empty());
  CHECK(said(fault("at = \"1s\"\nkind = \"stop\"\nnode = \"a\"")) ==
        "w.toml:25: fault.node: is no router: routers are stopped as planned: write kind = \"crash\", or name a router");
  CHECK(said(fault("at = \"1s\"\nkind = \"crash\"\nnode = \"a\"")).empty());
  CHECK(said(fault("at = \"1s\"\nkind = \"reset\"\nnode = \"a\"\nfor = \"1s\"")) ==
        "w.toml:26: fault.for: a reset does not last: leave it out");
  CHECK(said(fault("at = \"1s\"\nkind = \"reset\"\nnode = \"a\"\nlink = \"east\"")) ==
        "w.toml:26: fault.link: a reset is of a node or of a link: leave one out");
  CHECK(said(fault("at = \"1s\"\nkind = \"partition\"\nnode = \"a\"\nlink = \"west\"")) ==
        "w.toml:26: fault.link: a is not on it: name a link of the node");
  CHECK(said(fault("at = \"1s\"\nkind = \"partition\"\nnode = \"a\"\nlink = \"east\"")).empty());
  for (const char* kind : {"crash", "stop", "partition"})
    CHECK(said(fault(fmt::format("at = \"1s\"\nkind = \"{}\"\nnode = \"r1\"\nfor = \"1s\"", kind))).empty());
}

TEST_CASE("scenario__durations__every_unit_and_nothing_else") {
  CHECK(parse_duration("7ns") == Duration(7));
  CHECK(parse_duration("50us") == Duration(microseconds(50)));
  CHECK(parse_duration("1.5ms") == Duration(microseconds(1500)));
  CHECK(parse_duration("2s") == Duration(seconds(2)));
  CHECK(parse_duration("3min") == Duration(seconds(180)));
  CHECK(parse_duration("1h") == Duration(seconds(3600)));
  CHECK(parse_duration("0h") == Duration(0));
  CHECK(parse_duration("0.6ns") == Duration(1));
  CHECK(parse_duration("2499999h") == Duration(std::chrono::hours(2'499'999)));
  for (const char* text : {"", "s", "1", "1 s", "-1s", "1S", "1sec", "inf s", "infs", "nans", "1e300s", "2500001h", "1s "}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("scenario__files__read_whole_or_refused") {
  char name[] = "/tmp/ccixfer-scenario-XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  close(fd);
  const auto write = [&](const std::string& text) { std::ofstream(name, std::ios::binary) << text; };
  write(small_world + transfer);
  const auto scenario = load_scenario(name);
  REQUIRE(scenario);
  CHECK(scenario->file == name);
  CHECK(scenario->transfers.size() == 1);
  const std::string text = small_world + transfer + "#";
  write(text + std::string(scenario_bytes_max - text.size(), 'x'));
  CHECK(load_scenario(name));
  write(text + std::string(scenario_bytes_max - text.size() + 1, 'x'));
  REQUIRE_FALSE(load_scenario(name));
  CHECK(load_scenario(name).error().message == fmt::format("cannot read the scenario: {}: it is too large: give a scenario", name));
  CHECK(load_scenario(name).error().kind == ErrorKind::usage);
  std::remove(name);
  REQUIRE_FALSE(load_scenario(name));
  CHECK(load_scenario(name).error().message ==
        fmt::format("cannot read the scenario: {}: give a file that exists and is readable", name));
  REQUIRE_FALSE(load_scenario("/"));
  CHECK(load_scenario("/").error().message == "cannot read the scenario: /: give a regular file");
}
