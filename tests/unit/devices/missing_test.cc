// What `ccixfer devices` says that a host lacks for each transport.
#include "app/devices/missing.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

// A host to which nothing is missing.
TransportFacts whole() {
  TransportFacts facts;
  Interface lan;
  lan.name = "eth0";
  lan.addresses = {"10.0.0.1"};
  lan.up = true;
  lan.mac = "02:00:00:00:00:01";
  facts.interfaces = {lan};
  facts.cards = {{"rxe0", "active", {"10.0.0.1"}}};
  return facts;
}

std::vector<std::string> words(const TransportFacts& facts) {
  std::vector<std::string> all;
  for (const Missing& each : missing_of(facts)) {
    CHECK_FALSE(each.remedy.empty());
    all.push_back(each.transport + (each.usable ? " limited: " : ": ") + each.what);
  }
  return all;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("missing__whole_host__nothing") { CHECK(words(whole()) == Words{}); }

TEST_CASE("missing__no_address_that_works__tcp_and_udp") {
  const Words both = {"tcp: no interface that is up has an address", "udp: no interface that is up has an address"};
  TransportFacts facts = whole();
  facts.interfaces[0].addresses.clear();
  CHECK(words(facts) == both);
  facts = whole();
  Interface down = facts.interfaces[0];
  down.up = false;
  facts.interfaces[0].addresses.clear();
  facts.interfaces.push_back(down);
  CHECK(words(facts) == both);
  facts.interfaces[1].up = true;
  CHECK(words(facts) == Words{});
}

TEST_CASE("missing__small_socket_buffers__udp_is_limited") {
  TransportFacts facts = whole();
  facts.receive_buffer_bytes = (8u << 20) - 1;
  CHECK(words(facts) == Words{"udp limited: receive buffer of 8388607 bytes instead of 8388608"});
  CHECK(missing_of(facts)[0].remedy == "sysctl -w net.core.rmem_max=8388608");
  facts.receive_buffer_bytes = 8u << 20;
  facts.send_buffer_bytes = 212992;
  CHECK(words(facts) == Words{"udp limited: send buffer of 212992 bytes instead of 8388608"});
  CHECK(missing_of(facts)[0].remedy == "sysctl -w net.core.wmem_max=8388608");
}

TEST_CASE("missing__verbs__not_built_in_or_no_card") {
  TransportFacts facts = whole();
  facts.cards.clear();
  CHECK(words(facts) == Words{"verbs: no RDMA device"});
  CHECK(missing_of(facts)[0].remedy.find("rdma link add rxe0 type rxe netdev INTERFACE") != std::string::npos);
  facts.has_verbs = false;  // then nobody knows of cards
  CHECK(words(facts) == Words{"verbs: this program was built without verbs"});
}

TEST_CASE("missing__verbs__what_each_card_lacks_and_whether_another_one_works") {
  TransportFacts facts = whole();
  facts.cards = {{"a", "down", {"10.0.0.1"}}, {"b", "active", {}}, {"c", "cannot be opened", {}}};
  CHECK(words(facts) == Words{"verbs: RDMA device a: its port is down", "verbs: RDMA device b: no address",
                              "verbs: RDMA device c: cannot be opened"});
  facts.cards.push_back({"d", "active", {"10.0.0.2"}});
  CHECK(words(facts) == Words{"verbs limited: RDMA device a: its port is down", "verbs limited: RDMA device b: no address",
                              "verbs limited: RDMA device c: cannot be opened"});
}

TEST_CASE("missing__eth__no_right_and_no_ethernet") {
  TransportFacts facts = whole();
  facts.may_use_raw_ethernet = false;
  CHECK(words(facts) == Words{"eth: no right to raw Ethernet (CAP_NET_RAW)"});
  facts.may_use_raw_ethernet = true;
  facts.interfaces[0].loopback = true;
  CHECK(words(facts) == Words{"eth: no Ethernet interface that is up"});
  facts = whole();
  facts.interfaces[0].mac.clear();
  CHECK(words(facts) == Words{"eth: no Ethernet interface that is up"});
  facts = whole();
  Interface down = facts.interfaces[0];
  down.up = false;
  facts.interfaces[0].mac.clear();
  facts.interfaces.push_back(down);
  CHECK(words(facts) == Words{"eth: no Ethernet interface that is up"});
}

TEST_CASE("missing__shm__no_memory_to_share") {
  TransportFacts facts = whole();
  facts.no_shared_memory = "no shared memory: Too many open files";
  CHECK(words(facts) == Words{"shm: no shared memory: Too many open files"});
}

TEST_CASE("missing__facts_of_this_host__are_found") {
  const TransportFacts facts = transport_facts(whole().interfaces);
  CHECK(facts.interfaces.size() == 1);
  CHECK(facts.has_verbs == verbs::is_built_in());
  CHECK(facts.receive_buffer_bytes > 0);
  CHECK(facts.receive_buffer_bytes <= 8u << 20);
  CHECK(facts.send_buffer_bytes > 0);
  CHECK(facts.send_buffer_bytes <= 8u << 20);
  CHECK_FALSE(facts.no_shared_memory);
}
