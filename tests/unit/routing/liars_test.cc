// What a peer says of itself, and lies: where a request comes from, how far it came, who a router is.
#include <algorithm>
#include <memory>

#include "core/base/log.h"
#include "routing/router/bad_peers.h"
#include "routing/transport/messages.h"
#include "tests/unit/routing/three_as.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t dedicated = 104;

// AS3: r1 (3:1, public WAN), r2 (3:1, a link of its own to AS4), both on its LAN; AS4: r5 at the end of that link, and 4:7.
void dedicated_link(Site& site) {
  site.add_router("r1", {{"lan", "10.1.0.1", {3, 1}, {}}, {"wan", "192.0.2.3", {3, wan}, {}, true}});
  site.add_router("r2",
                  {{"lan", "10.1.0.2", {3, 1}, {"sim://10.1.0.1:7000"}}, {"link", "198.51.100.3", {3, dedicated}, {}, true, {4}}});
  site.add_router(
      "r5", {{"link", "198.51.100.4", {4, dedicated}, {"sim://198.51.100.3:7000"}, true, {3}}, {"far", "10.0.0.1", {4, 7}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "lan", "10.1.0.9", SubnetId{3, 1},
                                    std::vector<std::string>{"sim://10.1.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "far", "10.0.0.2", SubnetId{4, 7},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.settle();
  site.world.run_for(seconds(3));
}

}  // namespace

// The source of a request is its asker's own word.
TEST_CASE("router_policy__a_stranger_on_the_wan_says_our_as__crosses_neither_lan_nor_link") {
  Site site;
  dedicated_link(site);
  REQUIRE(site.connect_event(*site.left, site.right->uri()).status == Status::success);
  RouterNode& r1 = *site.routers[0];
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  const uint64_t over_link = site.routers[1]->counters.get(Counter::routed_connections);
  const uint32_t said = GENERATE(wan, 1u, 7u);  // the WAN itself, the LAN, a subnet that nobody has
  App stranger(site.world, site.fabric, "wan", "192.0.2.66", {3, said}, {"sim://192.0.2.3:7000"});
  uint64_t before = r1.counters.get(Counter::routed_rejected);
  for (int i = 0; i < 3; ++i) {
    const cci::Event event = site.connect_event(stranger, site.right->uri());
    CHECK(event.status == Status::refused);
    const char* why =
        said == wan ? "nothing that comes over its WAN leaves it again" : "no router is crossed and this is subnet 3:100";
    CHECK(event.reason.find(why) != std::string::npos);
  }
  CHECK(r1.counters.get(Counter::routed_rejected) == before + 3);
  CHECK(lines.size() == 1);  // and who it was, by its address
  CHECK(lines[0].find("192.0.2.66 on device wan") != std::string::npos);
  CHECK(site.routers[1]->counters.get(Counter::routed_connections) == over_link);
  // To AS3 itself he may come as anybody, from where he is; but not as somebody from within it.
  const cci::Event inside = site.connect_event(stranger, site.left->uri());
  CHECK(inside.status == (said == wan ? Status::success : Status::refused));
}

TEST_CASE("router_policy__every_word_of_a_connect_request__is_held_against_where_it_arrived") {
  Site site;
  dedicated_link(site);
  struct Case {
    const char* what;
    const char* network;
    const char* router;
    SubnetId source;
    uint8_t crossed;
    std::string to;
    Status status;
  };
  const std::string inside = site.left->uri(), outside = site.right->uri();
  const auto row = GENERATE_COPY(from_range(std::vector<Case>{
      {"on the LAN, as it is", "lan", "10.1.0.1", {3, 1}, 0, outside, Status::success},
      {"another subnet", "lan", "10.1.0.1", {3, 2}, 0, outside, Status::refused},
      {"another AS, no router crossed", "lan", "10.1.0.1", {4, 7}, 0, inside, Status::refused},
      {"a router that takes it from inside", "lan", "10.1.0.1", {3, 2}, 1, outside, Status::success},
      {"more routers than there may be", "lan", "10.1.0.1", {3, 2}, 8, outside, Status::no_route},
      {"from AS5 through AS3 to AS4", "lan", "10.1.0.2", {5, 1}, 2, outside, Status::refused},
      {"from our WAN to AS4", "lan", "10.1.0.2", {3, wan}, 1, outside, Status::refused},
      {"from AS5 to us, which the public WAN serves", "lan", "10.1.0.1", {5, 1}, 2, inside, Status::success},
      {"over the WAN from AS5 to us", "wan", "192.0.2.3", {5, 1}, 1, inside, Status::success},
      {"over the WAN from AS5 to AS4", "wan", "192.0.2.3", {5, 1}, 1, outside, Status::refused},
      {"over the WAN from inside", "wan", "192.0.2.3", {3, 1}, 1, inside, Status::refused},
      {"over the WAN, another subnet, no router crossed", "wan", "192.0.2.3", {5, 1}, 0, inside, Status::refused},
      {"over the link of AS4 from AS5", "link", "198.51.100.3", {5, 1}, 1, inside, Status::refused},
      {"over the link of AS4 from AS4", "link", "198.51.100.3", {4, 7}, 1, inside, Status::success},
      {"on a subnet with no other router, and says that it crossed one", "far", "10.0.0.1", {4, 1}, 1, inside, Status::no_route},
      {"to the router itself", "lan", "10.1.0.1", {3, 1}, 0, "cci://3:1:10.1.0.1:7000", Status::refused},
  }));
  INFO(row.what);
  RawPeer peer(site.world, site.fabric, row.network, "10.66.0.66");
  REQUIRE(peer.connect(std::string("sim://") + row.router + ":7000", ports::Role::hop));
  ConnectRequest request = RawPeer::usual_request(row.to);
  request.source = row.source;
  request.crossed = row.crossed;
  peer.say(request);
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_reply).has_value(); }, seconds(10)));
  const auto reply = decode_connect_reply(*peer.last(MessageKind::connect_reply));
  REQUIRE(reply);
  INFO(reply->reason);
  CHECK(reply->status == row.status);
}

// Higher classes are served first and have a buffer of their own, so who says a higher one would go before the others.
TEST_CASE("router_policy__a_class_that_the_connect_did_not_tell__answered_never_pulled") {
  Site site;
  site.chain(2);
  RawPeer liar(site.world, site.fabric, "lan1", "10.0.0.66");
  const auto source = pattern(1000, 1);
  std::vector<std::byte> target(source.size());
  const auto remote = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  REQUIRE(liar.open("sim://10.0.0.1:7000", site.right->uri()));
  const auto answer_to = [&](uint8_t data_class) {
    liar.received.clear();
    FragmentMessage offer;
    offer.length_bytes = 1000;
    offer.data_class = data_class;
    offer.cookie = data_class;
    offer.exposed = liar.memory->register_region(Bytes(source));
    offer.remote.handle = remote;
    liar.say(offer);
    REQUIRE(liar.run([&] { return liar.last(MessageKind::fragment_ack).has_value(); }, seconds(5)));
    return decode_fragment_ack(*liar.last(MessageKind::fragment_ack))->ending.status;
  };
  for (const uint8_t said : {uint8_t{1}, uint8_t{2}, uint8_t{7}}) CHECK(answer_to(said) == Status::range);
  CHECK(site.routers[0]->counters.get(Counter::routed_rejected) == 3);
  CHECK(site.routers[0]->counters.get(Counter::routed_fragments) == 0);
  CHECK(answer_to(0) == Status::success);
  CHECK(target == source);
}

// The count of routers beyond is the class of what comes back from there, and so is told by routers only.
TEST_CASE("router_policy__an_end_that_tells_of_routers_beyond_it__is_refused") {
  Site site;
  site.chain(1);
  const size_t hops = GENERATE(size_t{0}, size_t{1}, size_t{7});
  RawPeer initiator(site.world, site.fabric, "lan1", "10.0.0.66"), end(site.world, site.fabric, "lan2", "10.0.0.67");
  end.accepts = true;
  REQUIRE(initiator.connect("sim://10.0.0.1:7000", ports::Role::hop));
  initiator.say(RawPeer::usual_request("cci://1:2:10.0.0.67:7000"));
  REQUIRE(initiator.run([&] { return end.last(MessageKind::connect_request).has_value(); }, seconds(10)));
  ConnectReply reply{Status::success, {}, 1392, 1u << 16, {}, 0};
  for (size_t i = 0; i < hops; ++i) reply.hops.push_back({"sim", "nobody", 1, 3, milliseconds(1), 0});
  end.say(reply);
  const auto answered = [&] { return initiator.last(MessageKind::connect_reply) || initiator.last(MessageKind::bye); };
  REQUIRE(initiator.run(answered, seconds(10)));
  REQUIRE(initiator.last(MessageKind::connect_reply).has_value() == (hops == 0));
  CHECK(site.routers[0]->counters.get(Counter::routed_rejected) == (hops == 0 ? 0 : 1));
  if (hops == 0) return;
  CHECK(decode_bye(*initiator.last(MessageKind::bye))->reason == "an end that tells of routers beyond it");
  CHECK(initiator.run([&] { return site.routers[0]->router->connections_open() == 0; }, seconds(30)));
}

// Who is cut off is known by where it comes from. What a peer calls itself it may change, and may take from others.
TEST_CASE("router_records__cut_off__stays_so_under_another_name_and_nobody_else_is") {
  Site site;
  three_as(site);
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9"), honest(site.world, site.fabric, "wan", "192.0.2.10");
  const auto greet = [&](RawPeer& peer, uint64_t id, uint32_t as, const std::string& uri) {
    REQUIRE(peer.connect("sim://192.0.2.3:7000", ports::Role::router));
    peer.say(RouterHello{id, {as, wan}, uri});
    site.world.run_for(milliseconds(50));
  };
  greet(rogue, 99, 9, "sim://192.0.2.10:7000");  // as if it were the other one
  for (int i = 0; i < 100 && !rogue.gone; ++i) rogue.tell(border(98, 1, 8));
  REQUIRE(site.run([&] { return rogue.gone; }, seconds(5)));
  greet(honest, 97, 7, "sim://192.0.2.10:7000");
  CHECK_FALSE(honest.gone);
  for (const char* name : {"sim://192.0.2.9:7000", "sim://192.0.2.77:7000"}) {
    greet(rogue, 96, 6, name);
    CHECK(site.run([&] { return rogue.gone; }, seconds(5)));
  }
}

// A site of three AS, and peers of the border router that say what they like.
struct Borders {
  Borders() { three_as(site); }
  Site site;

  // A router of an AS of its own, greeted over the WAN. false: it is not let in.
  bool greet(RawPeer& peer, uint64_t id) {
    REQUIRE(peer.connect("sim://192.0.2.3:7000", ports::Role::router));
    peer.say(RouterHello{id, {9, wan}, "sim://192.0.2." + std::to_string(id) + ":7000"});
    site.world.run_for(milliseconds(50));
    return !peer.gone;
  }
  void tell_bad_ones(RawPeer& peer, int count) {
    for (int i = 0; i < count && !peer.gone; ++i) peer.tell(border(98, 1, 8));
    site.world.run_for(milliseconds(50));
  }
};

TEST_CASE("router_records__cut_off_with_a_proved_identity__is_out_from_any_address") {
  Borders met;
  auto& [site] = met;
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9", {}, {.identity = "cx1rogue"});
  RawPeer elsewhere(site.world, site.fabric, "wan", "192.0.2.77", {}, {.identity = "cx1rogue"});
  RawPeer beside(site.world, site.fabric, "wan", "192.0.2.9", {}, {.identity = "cx1honest", .node = rogue.node(), .port = 7001});
  RawPeer unproved(site.world, site.fabric, "wan", "192.0.2.9", {}, {.node = rogue.node(), .port = 7002});
  REQUIRE(met.greet(rogue, 91));
  REQUIRE(met.greet(elsewhere, 92));
  met.tell_bad_ones(rogue, 100);
  CHECK(rogue.gone);
  CHECK(elsewhere.gone);  // its other links end as well
  CHECK_FALSE(met.greet(elsewhere, 93));
  CHECK(met.greet(beside, 94));  // another peer on the same host
  CHECK(met.greet(unproved, 95));
}

TEST_CASE("router_records__cut_off_without_a_proof__the_whole_host_is_out") {
  Borders met;
  auto& [site] = met;
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9");
  RawPeer beside(site.world, site.fabric, "wan", "192.0.2.9", {}, {.node = rogue.node(), .port = 7001});
  RawPeer proved(site.world, site.fabric, "wan", "192.0.2.9", {},
                 {.identity = "192.0.2.9 on device wan", .node = rogue.node(), .port = 7002});
  REQUIRE(met.greet(rogue, 91));
  met.tell_bad_ones(rogue, 100);
  REQUIRE(rogue.gone);
  CHECK_FALSE(met.greet(beside, 92));
  CHECK(met.greet(proved, 93));  // no name that is proved is taken for an address
}

TEST_CASE("router_records__bad_ones_over_several_connections__are_counted_together") {
  Borders met;
  auto& [site] = met;
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9");
  REQUIRE(met.greet(rogue, 91));
  met.tell_bad_ones(rogue, peer_offences_max);
  REQUIRE_FALSE(rogue.gone);
  rogue.endpoint->disconnect(rogue.connection);
  rogue.wake();
  site.world.run_for(milliseconds(50));
  REQUIRE(met.greet(rogue, 92));
  met.tell_bad_ones(rogue, 1);
  CHECK(rogue.gone);
}

TEST_CASE("router_admin__out_of_order__logged_once_a_peer_by_who_it_is") {
  Site site;
  site.chain(1);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  RawPeer one(site.world, site.fabric, "lan1", "10.0.0.66", {}, {.identity = "cx1one"}),
      two(site.world, site.fabric, "lan1", "10.0.0.67");
  for (RawPeer* peer : {&one, &one, &two}) {
    REQUIRE(peer->connect("sim://10.0.0.1:7000", ports::Role::admin));
    peer->say_plain(MessageKind::keepalive);
    REQUIRE(site.run([&] { return peer->gone; }, seconds(5)));
  }
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("administrator cx1one (proved)") != std::string::npos);
  CHECK(lines[1].find("administrator 10.0.0.67 on device") != std::string::npos);
}

TEST_CASE("router_records__more_cut_off_than_are_remembered__the_last_ones_stay_out") {
  Site site;
  three_as(site);
  std::vector<std::unique_ptr<RawPeer>> rogues;
  const auto cut_off = [&](size_t i) {
    rogues.push_back(std::make_unique<RawPeer>(site.world, site.fabric, "wan",
                                               "198.18." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250)));
    RawPeer& rogue = *rogues.back();
    REQUIRE(rogue.connect("sim://192.0.2.3:7000", ports::Role::router));
    rogue.say(RouterHello{1000 + i, {9, wan}, rogue.endpoint->uri()});
    std::vector<std::byte> message;
    encode_record_message(MessageKind::record, as_bytes("too short"), message);
    for (int k = 0; k < 40; ++k) rogue.send(message);
    REQUIRE(site.run([&] { return rogue.gone; }, seconds(5)));
  };
  constexpr size_t remembered = 1024;
  for (size_t i = 0; i <= remembered; ++i) cut_off(i);
  const auto is_out = [&](size_t i) {
    REQUIRE(rogues[i]->connect("sim://192.0.2.3:7000", ports::Role::router));
    rogues[i]->say(RouterHello{1000 + i, {9, wan}, rogues[i]->endpoint->uri()});
    site.world.run_for(milliseconds(50));
    return rogues[i]->gone;
  };
  CHECK(is_out(remembered));
  CHECK(is_out(remembered - 1));
  CHECK(is_out(1));
}

// Two links between the same devices are one too many, but who says that it is another's end does not take that one's place.
TEST_CASE("router_links__a_peer_that_says_it_is_another__takes_no_link_from_it") {
  Site site;
  site.chain(2);
  site.world.run_for(seconds(2));
  RawPeer asker(site.world, site.fabric, "lan1", "10.0.0.200");
  std::vector<uint64_t> ids;
  for (const RouterRecord& record : ask(asker, "sim://10.0.0.1:7000")) ids.push_back(record.router);
  const size_t links = site.routers[0]->router->links_open() + site.routers[1]->router->links_open();
  int host = 50;
  for (const uint64_t id : ids) {
    for (const char* router : {"sim://10.9.0.1:7000", "sim://10.9.0.2:7000"}) {
      for (const char* uri : {"sim://10.9.0.1:7000", "sim://10.9.0.2:7000", "sim://0:1", "sim://z:1"}) {
        RawPeer liar(site.world, site.fabric, "mid1", "10.9.0." + std::to_string(++host));
        REQUIRE(liar.connect(router, ports::Role::router));
        liar.say(RouterHello{id, {1, 11}, uri});
        site.world.run_for(milliseconds(50));
        const size_t with_liar = site.routers[0]->router->links_open() + site.routers[1]->router->links_open();
        CHECK(with_liar == links + (liar.gone ? 0 : 1));
        liar.endpoint->disconnect(liar.connection);
        liar.wake();
        site.world.run_for(milliseconds(50));
        CHECK(site.routers[0]->router->links_open() + site.routers[1]->router->links_open() == links);
      }
    }
  }
}

// Whoever is on the WAN may give any number for its own. When its link ends, only what its AS told of that number is withdrawn.
TEST_CASE("router_links__a_link_of_another_as_in_the_name_of_ours__its_end_withdraws_nobody") {
  Site site;
  three_as(site);
  RawPeer asker(site.world, site.fabric, "lan", "10.1.0.200");
  const auto ours = [&] {
    std::vector<uint64_t> ids;
    for (const RouterRecord& record : ask(asker, "sim://10.1.0.1:7000")) {
      if (record.devices.at(0).subnet.as == 3) ids.push_back(record.router);
    }
    return ids;
  };
  const std::vector<uint64_t> before = ours();
  REQUIRE(before.size() == 2);
  const uint64_t own = site.routers[1]->router->view().router;
  const uint64_t inner = before[0] == own ? before[1] : before[0];
  const auto instance_of_inner = [&] {
    for (const RouterRecord& record : ask(asker, "sim://10.1.0.1:7000")) {
      if (record.router == inner && record.devices.at(0).subnet.as == 3) return record.instance;
    }
    return uint64_t{0};
  };
  const uint64_t instance = instance_of_inner();
  RawPeer liar(site.world, site.fabric, "wan", "192.0.2.66");
  // It must not hide either that the true one has gone.
  REQUIRE(liar.greet("sim://192.0.2.3:7000", inner, {9, wan}));
  REQUIRE_FALSE(liar.gone);
  liar.endpoint->disconnect(liar.connection);
  liar.wake();
  site.world.run_for(milliseconds(50));
  CHECK(ours() == before);
  CHECK(instance_of_inner() == instance);  // it had not to answer for itself
  REQUIRE(liar.greet("sim://192.0.2.3:7000", inner, {9, wan}));
  site.fabric.cut("lan", "10.1.0.4");
  site.world.run_for(seconds(30));
  CHECK(ours() == std::vector<uint64_t>{own});
}
