// Host names that are dialled over udp: whose turn it is among their addresses, and dials that are given up.
#include "tests/unit/inet/names.h"

#include <poll.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "core/base/counters.h"
#include "core/cci/memory_table.h"
#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "tests/unit/connection/recorder.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/inet/resolver.h"
#include "transports/udp/name_turns.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::udp {
namespace {

std::unique_ptr<UdpNet> net_that_dials() {
  auto made = UdpNet::create({.listen_host = "0.0.0.0", .port = 0, .interface_name = {}, .listen = false});
  REQUIRE(made);
  return std::move(*made);
}

struct Found final : datagram::DatagramEvents {
  void received(std::span<const datagram::Datagram>) override {}
  void resolved(uint64_t query, Status status, const datagram::Address& address, std::string_view) override {
    REQUIRE(status == Status::success);
    found[query] = address.low & 0xff;
  }
  void writable() override {}
  std::map<uint64_t, uint64_t> found;  // the last number of the address
};

TEST_CASE("udp_names__two_names_or_ports_of_two_addresses_in_turn__each_address_is_dialled") {
  inet::testing::Names names;
  names.give("one.test", {"127.0.0.1", "127.0.0.2"});
  names.give("two.test", {"127.0.0.3", "127.0.0.4"});
  const auto net = net_that_dials();
  Found events;
  std::map<std::string, std::set<uint64_t>> dialled;
  const std::string first = "udp://one.test:7000", second = GENERATE("udp://two.test:7000", "udp://one.test:7001");
  for (int round = 0; round < 4; ++round) {
    for (const std::string& name : {first, second}) {
      const auto query = net->resolve(name);
      REQUIRE(query);
      while (!events.found.contains(*query)) {
        pollfd handle{net->os_handle(), POLLIN, 0};
        REQUIRE(::poll(&handle, 1, 60'000) == 1);
        net->poll(host::SystemClock().now(), events);
      }
      dialled[name].insert(events.found[*query]);
    }
  }
  CHECK(dialled[first].size() == 2);
  CHECK(dialled[second].size() == 2);
}

TEST_CASE("name_turns__more_names_than_are_kept__the_others_share_a_count") {
  NameTurns turns;
  for (size_t i = 0; i < NameTurns::names_max; ++i) REQUIRE(turns.next(std::to_string(i)) == 0);
  CHECK(turns.next("x") == 0);
  CHECK(turns.next("y") == 1);
  CHECK(turns.next("7") == 1);
  CHECK(turns.next("x") == 2);
}

// Who dials again and again while the name service does not answer.
TEST_CASE("udp_names__dials_that_were_given_up__ask_nobody_and_leave_room_for_others") {
  inet::testing::Names names;
  names.hang("slow.test");
  Counters counters;
  host::SystemEntropy entropy;
  cci::MemoryTable memory{entropy, counters};
  ccixfer::testing::Recorder sink;
  datagram::DatagramTransport transport({}, net_that_dials(), entropy, counters);
  transport.bind(sink, memory);
  const host::SystemClock clock;
  ports::DialRequest dial;
  dial.uri = "udp://slow.test:7000";
  const size_t asked = names.asked();
  for (size_t i = 0; i < inet::Resolver::threads_max; ++i) REQUIRE(transport.dial(dial));
  names.wait_for_questions(asked + inet::Resolver::threads_max);
  for (size_t i = 0; i < inet::Resolver::lookups_max + 1; ++i) {
    const auto id = transport.dial(dial);
    REQUIRE(id);
    transport.disconnect(*id);
    transport.turn(clock.now());
  }
  REQUIRE(sink.connected.size() == inet::Resolver::lookups_max + 1);
  for (const auto& ended : sink.connected) REQUIRE(ended.status == Status::cancelled);
  REQUIRE(transport.dial(dial));
  transport.turn(clock.now());
  CHECK(sink.connected.size() == inet::Resolver::lookups_max + 1);  // not: too many names to resolve
  names.let_go("slow.test");
}

}  // namespace
}  // namespace ccixfer::udp
