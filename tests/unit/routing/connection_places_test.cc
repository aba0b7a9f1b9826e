// Who gets a place among a router's connections, so that one peer leaves some for others.
#include "routing/router/connection_places.h"

#include <list>

#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::seconds;

namespace {

constexpr uint32_t some = 16;

// As a router does it with each connect of that peer, until it has to refuse one.
uint32_t take_all(ConnectionPlaces& places, const std::string& name, bool is_end) {
  for (uint32_t count = 0;; ++count) {
    if (!places.has_room(name)) return count;
    ConnectionPlaces::Peer& peer = places.take(name);
    const bool too_many = places.has_too_many(peer, is_end);
    places.is_set_up(peer);
    if (!too_many) continue;
    places.give(peer);
    return count;
  }
}

void give(ConnectionPlaces& places, const std::string& name, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ConnectionPlaces::Peer& peer = places.take(name);  // one more, to have the peer
    places.is_set_up(peer);
    places.give(peer);
    places.give(peer);
  }
}

}  // namespace

TEST_CASE("connection_places__one_end__has_half_and_later_ones_a_quarter") {
  ConnectionPlaces places(some);
  CHECK(take_all(places, "a", true) == some / 2);
  CHECK(take_all(places, "b", true) == some / 4);
  CHECK(take_all(places, "a", true) == 0);
  CHECK(take_all(places, "c", true) == some / 4);
  CHECK_FALSE(places.has_room("d"));
}

TEST_CASE("connection_places__a_router__has_three_quarters_and_an_end_finds_room_yet") {
  ConnectionPlaces places(some);
  CHECK(take_all(places, "r", false) == some / 4 * 3);
  CHECK(take_all(places, "a", true) == some / 4);
}

TEST_CASE("connection_places__connections_that_end__make_room_again") {
  ConnectionPlaces places(some);
  REQUIRE(take_all(places, "a", true) == some / 2);
  REQUIRE(take_all(places, "b", true) == some / 4);
  give(places, "a", some / 4);
  CHECK(take_all(places, "b", true) == 0);
  CHECK(take_all(places, "c", true) == some / 4);
  give(places, "a", some / 4);
  CHECK(take_all(places, "a", true) == some / 4);
}

// In a router, over connections that are open.
TEST_CASE("connection_places__one_client_opens_all_it_can__another_one_finds_room") {
  Site site;
  site.options.connections_max = some;
  site.chain(1);
  std::list<RawPeer> clients;
  std::vector<cci::Connection> of_first;
  const auto open_all = [&](const std::string& address) {
    RawPeer& client = clients.emplace_back(site.world, site.fabric, "lan1", address);
    size_t opened = 0;
    for (; client.open("sim://10.0.0.1:7000", site.right->uri()); ++opened) {
      if (clients.size() == 1) of_first.push_back(client.connection);
    }
    if (const auto reply = client.last(MessageKind::connect_reply)) {
      CHECK(decode_connect_reply(*reply)->status == Status::no_route);  // there may be other routers
      CHECK(decode_connect_reply(*reply)->reason == "router sim://10.0.0.1:7000 has too many connections, and of this peer");
    }
    site.world.run_for(seconds(1));
    return opened;
  };
  CHECK(open_all("10.0.0.66") == some / 2);
  CHECK(open_all("10.0.0.67") == some / 4);
  CHECK(open_all("10.0.0.68") == some / 4);
  CHECK(open_all("10.0.0.69") == 0);
  CHECK(site.routers[0]->router->connections_open() == some);
  for (const cci::Connection& connection : of_first) clients.front().endpoint->disconnect(connection);
  clients.front().wake();
  REQUIRE(site.run([&] { return site.routers[0]->router->connections_open() == some / 2; }, seconds(60)));
  CHECK(open_all("10.0.0.70") == some / 4);
}
