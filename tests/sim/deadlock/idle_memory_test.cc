// What an idle relayed connection costs a router, with the two connections of its devices that it
// consists of.
#include <catch2/catch.hpp>
#include <cstdio>

#include "routing/router/relayed_connection.h"
#include "routing/router/router.h"
#include "tests/sim/deadlock/idle_process.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

constexpr size_t own_bytes_max = 1000;    // of the router's own record of one connection
constexpr size_t whole_bytes_max = 3072;  // and of its two ends at the router

// A router in the middle.
struct Relayed : Three {
  Relayed() {
    const HeapScope counted(&middle.account);
    std::vector<RouterDevice> devices(2);
    for (uint32_t i = 0; i < 2; ++i) {
      devices[i].name = "d" + std::to_string(i);
      devices[i].subnet = {1, i + 1};
      devices[i].scheme = "mem";
      devices[i].endpoint = middle.listen(hub, "10." + std::to_string(i + 1) + ".0.1:7000");
    }
    RouterOptions options;
    options.fragment_bytes = fragment_bytes;
    options.memory_bytes = 16u * fragment_bytes;
    router = std::move(*Router::create(options, std::move(devices), middle.memory, middle.entropy, middle.counters));
    turn = [this](Instant at) { router->turn(at); };
  }
  ~Relayed() { router.reset(); }
  void open(size_t more) {
    open_left(more);
    rest();
  }
  void use_all() {
    for (size_t i = 0; i < left.connections.size(); ++i) {
      std::vector<std::byte> message;
      encode_message_header(i, message);
      message.resize(message.size() + 100);
      left.say(left.connections[i], message);
      FragmentMessage fragment;
      fragment.cookie = i;
      fragment.length_bytes = fragment_bytes;
      fragment.exposed = left.region;
      fragment.remote.handle = right.region;
      std::vector<std::byte> offer;
      encode(fragment, offer);
      left.say(left.connections[i], offer);
      REQUIRE(run([&] { return left.acks == i + 1 && right.messages == i + 1; }));
    }
    rest();
  }
  std::unique_ptr<Router> router;
};

}  // namespace

TEST_CASE("router_idle__a_relayed_connection__costs_the_router_little_beside_its_two_ends") {
  Relayed relayed;
  const size_t whole = bytes_of_one(relayed, [&](size_t more) { relayed.open(more); });
  REQUIRE(relayed.router->connections_open() == idle_count + 100);
  Plain plain;
  const size_t ends = bytes_of_one(plain, [&](size_t more) { plain.open(more); });
  REQUIRE(whole > ends);
  const size_t before = relayed.middle.account.bytes();
  relayed.use_all();
  CHECK(relayed.left.lost == 0);
  const auto kept = static_cast<long>(relayed.middle.account.bytes()) - static_cast<long>(before);
  std::printf(
      "an idle relayed connection: %zu bytes of the router: %zu its own (a record of %zu), and %zu its two ends; a message and a "
      "fragment later %ld bytes more\n",
      whole, whole - ends, sizeof(RelayedConnection), ends, kept / static_cast<long>(idle_count));
  CHECK(whole - ends <= own_bytes_max);
  CHECK(whole <= whole_bytes_max);
}
