// The search for the length that a path carries: over paths of all lengths, with probes lost by chance, and when it changes.
#include "core/reliability/path_mtu.h"

#include <catch2/catch.hpp>
#include <vector>

namespace ccixfer::reliability {
namespace {

using namespace std::chrono_literals;
using Phase = PathMtu::Phase;

constexpr uint32_t base = 1200, most = 8972;

struct Searcher {
  // Sends each probe that is due over a path that carries `bytes`.
  void search(uint32_t bytes) {
    while (const uint32_t probe = machine.probe_due(now)) {
      REQUIRE(probe > machine.packet_bytes());
      REQUIRE(probe <= most);
      machine.probe_sent(probe);
      REQUIRE(machine.probe_due(now) == 0);  // one at a time
      probes.push_back(probe);
      REQUIRE(probes.size() < 100);
      if (probe <= bytes) {
        machine.probe_acked(probe);
      } else {
        machine.probe_lost(probe);
      }
    }
  }
  PathMtu machine{base, most};
  Instant now{1000s};
  std::vector<uint32_t> probes;
};

}  // namespace

TEST_CASE("path_mtu__paths_of_each_length__the_longest_usual_size_that_passes_is_found") {
  for (uint32_t path = base; path <= most + 1; ++path) {
    CAPTURE(path);
    Searcher s;
    REQUIRE(s.machine.packet_bytes() == base);
    s.search(path);
    REQUIRE(s.machine.phase() == Phase::complete);
    REQUIRE(s.machine.packet_bytes() <= path);
    REQUIRE(s.machine.packet_bytes() >= base);
  }
  const auto found = [](uint32_t path) {
    Searcher s;
    s.search(path);
    return s.machine.packet_bytes();
  };
  CHECK(found(1252) == 1252);  // 1,280 less IPv4 and UDP, and less IPv6
  CHECK(found(1232) == 1232);
  CHECK(found(1464) == 1464);  // PPPoE
  CHECK(found(1472) == 1472);
  CHECK(found(1452) == 1452);
  CHECK(found(8952) == 8952);
  CHECK(found(8972) == 8972);
  CHECK(found(65507) == 8972);
}

TEST_CASE("path_mtu__paths_of_1500_and_of_9000__take_few_probes") {
  Searcher jumbo;
  jumbo.search(8972);
  CHECK(jumbo.probes == std::vector<uint32_t>{1472, 8972});
  Searcher usual;
  usual.search(1472);
  CHECK(usual.probes.size() <= 1 + 5 * probes_per_size);
}

TEST_CASE("path_mtu__a_most_below_all_usual_sizes__is_found") {
  PathMtu machine(1200, 1472);
  REQUIRE(machine.probe_due(Instant{1s}) == 1472);
  machine.probe_sent(1472);
  machine.probe_acked(1472);
  CHECK(machine.probe_due(Instant{1s}) == 0);
  CHECK(machine.phase() == Phase::complete);
}

TEST_CASE("path_mtu__two_probes_of_a_size_are_lost_by_chance__it_is_tried_a_third_time") {
  Searcher s;
  for (uint32_t i = 1; i < probes_per_size; ++i) {
    REQUIRE(s.machine.probe_due(s.now) == 1472);
    s.machine.probe_sent(1472);
    s.machine.probe_lost(1472);
  }
  REQUIRE(s.machine.phase() == Phase::base);
  s.search(8972);
  CHECK(s.machine.packet_bytes() == 8972);
}

TEST_CASE("path_mtu__probes_lost_in_a_silence__say_nothing") {
  Searcher s;
  for (uint32_t i = 0; i < 10 * probes_per_size; ++i) {
    REQUIRE(s.machine.probe_due(s.now) == 1472);
    s.machine.probe_sent(1472);
    s.machine.probe_forgotten();
  }
  s.search(8972);
  CHECK(s.machine.packet_bytes() == 8972);
}

TEST_CASE("path_mtu__the_path_became_wider__it_is_found_when_the_raise_timer_has_passed") {
  Searcher s;
  s.search(1472);
  REQUIRE(s.machine.packet_bytes() == 1472);
  s.now += raise_after - 1ns;
  REQUIRE(s.machine.probe_due(s.now) == 0);
  s.now += 1ns;
  s.search(8972);
  CHECK(s.machine.packet_bytes() == 8972);
  s.now += 10 * raise_after;
  CHECK(s.machine.probe_due(s.now) == 0);  // there is nothing more to be found
}

TEST_CASE("path_mtu__long_packets_are_lost_and_short_ones_pass__it_begins_again_at_the_base") {
  Searcher s;
  s.search(8972);
  s.machine.acked(7, 8972);
  for (uint64_t number = 8; number < 8 + black_hole_losses - 1; ++number) s.machine.lost(number, 8972);
  REQUIRE(s.machine.packet_bytes() == 8972);
  s.machine.acked(100, base);  // a short one says nothing of long ones
  s.machine.lost(101, 8972);
  REQUIRE(s.machine.packet_bytes() == base);
  REQUIRE(s.machine.phase() == Phase::base);
  s.search(1472);
  CHECK(s.machine.packet_bytes() == 1472);
  CHECK(s.machine.phase() == Phase::complete);
}

TEST_CASE("path_mtu__losses_that_later_packets_of_that_length_survive__are_no_black_hole") {
  Searcher s;
  s.search(8972);
  s.machine.acked(1000, 8972);
  for (uint64_t number = 0; number <= 1000; ++number) s.machine.lost(number, 8972);
  REQUIRE(s.machine.packet_bytes() == 8972);
  // Some are lost, and then one passes, again and again.
  for (uint64_t number = 1001; number < 2000; ++number) {
    if (number % black_hole_losses == 0) {
      s.machine.acked(number, 8972);
    } else {
      s.machine.lost(number, 8972);
    }
  }
  CHECK(s.machine.packet_bytes() == 8972);
}

TEST_CASE("path_mtu__short_packets_are_lost__says_nothing_of_lengths") {
  Searcher s;
  s.search(8972);
  for (uint64_t number = 0; number < 100; ++number) s.machine.lost(number, base);
  CHECK(s.machine.packet_bytes() == 8972);
}

TEST_CASE("path_mtu__a_probe_that_comes_late_after_a_black_hole__lengthens_only_to_what_passed") {
  Searcher s;
  s.search(1472);
  s.now += raise_after;
  REQUIRE(s.machine.probe_due(s.now) == most);
  s.machine.probe_sent(most);
  for (uint64_t number = 0; number < black_hole_losses; ++number) s.machine.lost(number, 1472);
  REQUIRE(s.machine.packet_bytes() == base);
  REQUIRE(s.machine.probe_due(s.now) == 0);  // that probe is still on its way
  s.machine.probe_lost(most);
  REQUIRE(s.machine.probe_due(s.now) == 1472);
}

}  // namespace ccixfer::reliability
