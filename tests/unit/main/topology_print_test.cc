// The forms of a topology, whole: what people read, and what Graphviz does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "app/main/topology.h"
#include "app/main/transfer_role.h"

namespace ccixfer::program {
namespace {

// AS 1 with two subnets and a WAN; a router that has a name no terminal should see.
Topology some() {
  Topology topology;
  topology.metrics = {"bandwidth", "hops"};
  topology.subnets = {{{1, 9}, "W*", "tcp, 1Gb/s, cost 1000", true},
                      {{1, 1}, "1", "tcp, 10Gb/s, cost 100", false},
                      {{1, 2}, "2", "tcp, 1Gb/s, cost 1000", false}};
  topology.routers = {{"a\"b.toml\x1b", {"lan: subnet 1:1", "wan: subnet 1:9"}, {{1, 1}, {1, 9}}}, {"c", {}, {}}};
  topology.routes = {{"1:1", "1:2", {"1:1", "1:2"}, {100, 2}, true, "the only one"},
                     {"1:1", "1:9", {"1:1", "1:9"}, {7, 1}, true, "7 against 8"},
                     {"1:1", "1:9", {"1:1", "1:2", "1:9"}, {8, 2}, false, ""}};
  topology.notes = {"n"};
  return topology;
}

std::string whole(const std::vector<std::string>& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

}  // namespace

TEST_CASE("topology_print__for_people__each_line") {
  CHECK(whole(topology_text(some())) == R"(router a"b.toml%1B
  lan: subnet 1:1
  wan: subnet 1:9
router c
subnet 1:9 (W*): tcp, 1Gb/s, cost 1000
subnet 1:1: tcp, 10Gb/s, cost 100
subnet 1:2: tcp, 1Gb/s, cost 1000
routes of AS 1
       SN1  SN2  W*
  SN1  -    1,2  1,W*
  SN2  -    -    -
  W*   -    -    -
routes, cheapest first (cost: bandwidth, hops), * is taken
* 1:1 -> 1:2: 1:1 > 1:2 (cost 100, 2): the only one
* 1:1 -> 1:9: 1:1 > 1:9 (cost 7, 1): 7 against 8
  1:1 -> 1:9: 1:1 > 1:2 > 1:9 (cost 8, 2)
note: n
)");
}

TEST_CASE("topology_print__for_graphviz__each_line") {
  CHECK(whole(topology_dot(some())) == R"(graph ccixfer {
  overlap = false;
  node [fontname = "sans-serif"];
  subgraph cluster_0 {
    label = "AS 0";
    "r1" [shape = box, label = "c"];
  }
  subgraph cluster_1 {
    label = "AS 1";
    "s1:9" [shape = ellipse, style = dashed, label = "1:9 W*, tcp, 1Gb/s, cost 1000"];
    "s1:1" [shape = ellipse, style = solid, label = "1:1, tcp, 10Gb/s, cost 100"];
    "s1:2" [shape = ellipse, style = solid, label = "1:2, tcp, 1Gb/s, cost 1000"];
    "r0" [shape = box, label = "a\"b.toml%1B"];
  }
  "r0" -- "s1:1";
  "r0" -- "s1:9";
}
)");
}

TEST_CASE("topology_print__more_than_fits__the_list_alone") {
  Topology wide;
  for (uint32_t i = 1; i <= 40; ++i) wide.subnets.push_back({{1, i}, std::to_string(i), "tcp", false});
  CHECK(whole(topology_table(wide)) == "routes of AS 1\n  40 subnets: too wide for a table; see the list\n");
  CHECK(topology_text(wide).back() == "  none");
}

TEST_CASE("tally__several_transfers__every_count_adds_up") {
  Tally sum;
  Tally one;
  one.files = 1, one.files_unchanged = 2, one.files_failed = 3, one.files_vanished = 4;
  one.bytes = 5, one.bytes_total = 6, one.total_known = true, one.bytes_sent = 7, one.segments_resent = 8;
  add(sum, one);
  add(sum, one);
  CHECK(sum.files == 2);
  CHECK(sum.files_unchanged == 4);
  CHECK(sum.files_failed == 6);
  CHECK(sum.files_vanished == 8);
  CHECK(sum.bytes == 10);
  CHECK(sum.bytes_total == 12);
  CHECK(sum.total_known);
  CHECK(sum.bytes_sent == 14);
  CHECK(sum.segments_resent == 16);
}

}  // namespace ccixfer::program
