// Every routing message with each of its bytes changed in turn, from either end and from a neighbour: whatever field it is, a peer
// that lies in it harms nobody but itself. The fields are listed in README.md beside this file.
#include "tests/unit/routing/kinds.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Town {
  Site site{5};
  std::unique_ptr<RawPeer> liar;
  cci::Connection good;
  std::vector<std::byte> data = pattern(100'000, 2), target = std::vector<std::byte>(100'000);

  Town() {
    site.chain(2);
    liar = std::make_unique<RawPeer>(site.world, site.fabric, "lan1", "10.0.0.66");
    liar->accepts = true;
    good = site.connect(*site.left, *site.right);
  }
  void others_go_on() {
    CHECK(site.send(*site.left, good, "still fine") == Status::success);
    std::fill(target.begin(), target.end(), std::byte{});
    cci::RmaOptions rma;
    rma.local = site.left->memory->register_region(Bytes(data));
    rma.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
    rma.length_bytes = data.size();
    CHECK(site.rma(*site.left, good, rma) == Status::success);
    CHECK((target == data));
    CHECK(site.left->memory->deregister_region(rma.local) == Status::success);
    CHECK(site.right->memory->deregister_region(rma.remote.handle) == Status::success);
    site.right->events.clear();
  }
  void nothing_is_left() {
    site.left->endpoint->disconnect(good);
    site.left->wake();
    for (const auto& router : site.routers) {
      CHECK(site.run([&] { return router->router->connections_open() == 0; }, seconds(60)));
      CHECK(router->router->fragments_in_use() == 0);
    }
  }
  // Each byte of it as it is not: the next one, all bits, none.
  template <typename Meet>
  void lie(const std::vector<std::byte>& honest, const Meet& meet) {
    for (size_t at = 1; at < honest.size(); ++at) {
      for (const std::byte value : {honest[at] ^ std::byte{1}, std::byte{0xff}, std::byte{0}}) {
        if (value == honest[at]) continue;
        std::vector<std::byte> lie = honest;
        lie[at] = value;
        meet();
        liar->send(lie);
        site.world.run_for(milliseconds(2));
        if (!liar->gone) liar->endpoint->disconnect(liar->connection);
        liar->wake();
      }
    }
  }
};

}  // namespace

TEST_CASE("routing_lies__each_byte_of_each_message_of_an_open_connection__others_go_on") {
  Town town;
  for (uint8_t number = 0; number < 60; ++number) {
    if (!kind_with(number)) continue;
    INFO("kind " << int{number});
    town.lie(message_with(number, town.site.right->uri(), {1, 1}),
             [&] { REQUIRE(town.liar->open("sim://10.0.0.1:7000", town.site.right->uri())); });
    town.others_go_on();
  }
  town.nothing_is_left();
}

TEST_CASE("routing_lies__each_byte_of_a_connect_request__others_go_on") {
  Town town;
  std::vector<std::byte> request;
  encode(RawPeer::usual_request(town.site.right->uri()), request);
  town.lie(request, [&] { REQUIRE(town.liar->connect("sim://10.0.0.1:7000", ports::Role::hop)); });
  town.others_go_on();
  town.nothing_is_left();
}

TEST_CASE("routing_lies__each_byte_of_a_hello_and_of_a_record__others_go_on") {
  Town town;
  for (const MessageKind kind : {MessageKind::router_hello, MessageKind::record}) {
    town.lie(message_with(static_cast<uint8_t>(kind), "", {1, 1}), [&] {
      REQUIRE(town.liar->connect("sim://10.0.0.1:7000", ports::Role::router));
      if (kind == MessageKind::record) town.liar->say(RouterHello{99, {1, 1}, "sim://10.0.0.66:7000"});
      town.site.world.run_for(milliseconds(2));
    });
    town.site.world.run_for(seconds(70));  // the instances that were not believed count for nothing later
  }
  town.others_go_on();
  town.nothing_is_left();
}
