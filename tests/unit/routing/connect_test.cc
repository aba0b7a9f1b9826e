// Connections through 1, 2, 3 routers in a row and 2 in parallel.
#include <set>

#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("routed_connect__1_2_3_routers__succeeds_and_names_each_hop") {
  const size_t routers = GENERATE(1u, 2u, 3u);
  Site site;
  site.chain(routers);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto hops = site.left->endpoint->hops(connection);
  REQUIRE(hops.size() == routers + 1);
  CHECK(hops[0].node == "sim://10.0.0.1:7000");
  CHECK(hops[0].subnet == 1);
  CHECK(hops.back().node == "sim://10.0.0.2:7000");
  CHECK(hops.back().subnet == 2);
  for (size_t i = 0; i < hops.size(); ++i) {
    CHECK(hops[i].transport == "sim");
    CHECK(hops[i].as == 1);
    CHECK(hops[i].round_trip > Duration::zero());
    CHECK(hops[i].rate_bits_per_s == 10'000'000'000);  // as the routers are configured
    CHECK(hops[i].fragment_bytes == Site::small().fragment_bytes);
    if (i > 0) CHECK(hops[i].round_trip < hops[i - 1].round_trip);
  }
  CHECK(site.left->endpoint->max_send_bytes(connection) >= 1024);
  CHECK(site.left->endpoint->max_send_bytes(connection) == site.right->endpoint->max_send_bytes(site.right->accepted));
}

TEST_CASE("routed_connect__rejected__the_reason_travels") {
  Site site;
  site.chain(GENERATE(1u, 2u, 5u));
  site.right->answer = App::Answer::reject;
  const cci::Event event = site.connect_event(*site.left, site.right->uri());
  CHECK(event.status == Status::refused);
  CHECK(event.reason == "not today");
  CHECK_FALSE(event.connection);
}

TEST_CASE("routed_connect__undecided__times_out") {
  Site site;
  site.chain(GENERATE(1u, 2u, 5u));
  site.right->answer = App::Answer::none;
  const Instant start = site.world.now();
  const cci::Event event = site.connect_event(*site.left, site.right->uri(), seconds(3));
  CHECK(event.status == Status::timed_out);
  CHECK(event.reason.find("sim://10.0.0.2:7000 does not answer: it has the request") != std::string::npos);
  CHECK(site.world.now() - start < seconds(4));
  // The request has gone from under the application.
  site.world.run_for(seconds(1));
  auto request = site.right->take(EventType::connect_request);
  REQUIRE(request);
  CHECK(site.right->endpoint->accept(*request, 1) == Status::not_found);
}

TEST_CASE("routed_connect__a_hop_hangs__its_name_is_told") {
  // The client's own router, those behind it, and the destination, as by SIGSTOP: streams to it open, nothing answers.
  for (size_t hung = 0; hung < 4; ++hung) {
    INFO("hung: " << hung);
    Site site;
    site.chain(3);
    site.connect(*site.left, *site.right);
    const sim::NodeId node = hung < 3 ? site.routers[hung]->node : site.right->node;
    sim::Actor* const actor = hung < 3 ? static_cast<sim::Actor*>(site.routers[hung].get()) : site.right.get();
    site.world.remove_actor(node, actor);
    const cci::Event event = site.connect_event(*site.left, site.right->uri(), seconds(4));
    site.world.add_actor(node, actor);
    CHECK(event.status != Status::success);
    INFO(event.reason);
    const std::string address = hung == 0 ? "10.0.0.1" : hung < 3 ? "10.9.0.2" : "10.0.0.2";
    CHECK(event.reason.find("sim://" + address + ":7000") != std::string::npos);
    if (hung > 0) CHECK(event.reason.find("does not answer: no connection to it comes about") != std::string::npos);
  }
}

TEST_CASE("routed_connect__upstream_waits_for_downstream__accepted_late") {
  Site site;
  site.chain(1);
  site.right->answer = App::Answer::none;
  const auto connection = site.left->endpoint->connect(site.right->uri(), {});
  REQUIRE(connection);
  site.left->wake();
  REQUIRE(site.run([&] { return site.right->count(EventType::connect_request) > 0; }));
  site.world.run_for(seconds(20));
  CHECK(site.left->count(EventType::connect) == 0);
  auto request = site.right->take(EventType::connect_request);
  REQUIRE(site.right->endpoint->accept(*request, 1) == Status::success);
  site.right->wake();
  REQUIRE(site.run([&] { return site.left->count(EventType::connect) > 0 && site.right->count(EventType::accept) > 0; }));
  CHECK(site.left->take(EventType::connect)->status == Status::success);
}

TEST_CASE("routed_connect__unknown_subnet__no_route") {
  Site site;
  site.chain(2);
  const cci::Event event = site.connect_event(*site.left, "cci://1:77:10.0.0.2:7000");
  CHECK(event.status == Status::no_route);
  CHECK(event.reason.find("1:77") != std::string::npos);
}

TEST_CASE("routed_connect__no_router_configured__no_route") {
  Site site;
  site.chain(1);
  App alone(site.world, site.fabric, "lan1", "10.0.0.3", {1, 1}, {});
  CHECK(site.connect_event(alone, site.right->uri()).status == Status::no_route);
}

TEST_CASE("routed_connect__every_router_dead__unreachable") {
  Site site;
  site.chain(1);
  site.kill(0);
  const cci::Event event = site.connect_event(*site.left, site.right->uri());
  CHECK(event.status == Status::unreachable);
  CHECK_FALSE(event.reason.empty());
}

TEST_CASE("routed_connect__one_of_two_own_routers_dead__the_other_is_used") {
  Site site;
  site.chain(1);
  for (uint64_t i = 0; i < 8; ++i) {
    App app(site.world, site.fabric, "lan1", "10.0.0." + std::to_string(50 + i), {1, 1},
            {"sim://10.0.0.99:7000", "sim://10.0.0.1:7000"});
    site.connect(app, *site.right);
  }
}

TEST_CASE("routed_connect__two_own_routers__the_first_by_chance_and_then_in_turns") {
  Site site;
  for (const char* last : {"11", "12"}) {
    const std::string address = std::string("10.0.0.") + last;
    site.add_router(last, {{"lan1", address, {1, 1}, {}}, {"lan2", address, {1, 2}, {}}});
  }
  const std::vector<std::string> both = {"sim://10.0.0.11:7000", "sim://10.0.0.12:7000"};
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2}, both);
  site.settle();
  const auto carried = [&](size_t router) { return site.routers[router]->counters.get(Counter::routed_connections); };
  std::set<uint64_t> first_of_a_client;
  for (uint64_t client = 0; client < 16; ++client) {
    App app(site.world, site.fabric, "lan1", "10.0.0." + std::to_string(50 + client), {1, 1}, both);
    const uint64_t before[] = {carried(0), carried(1)};
    site.connect(app, *site.right);
    first_of_a_client.insert(carried(0) - before[0]);
    for (int i = 0; i < 3; ++i) site.connect(app, *site.right);
    CHECK(carried(0) - before[0] == 2);
    CHECK(carried(1) - before[1] == 2);
  }
  CHECK(first_of_a_client == std::set<uint64_t>{0, 1});
}

TEST_CASE("routed_connect__far_router_dead__no_route") {
  Site site;
  site.chain(2);
  site.kill(1);
  const cci::Event event = site.connect_event(*site.left, site.right->uri());
  CHECK(event.status == Status::no_route);
}

TEST_CASE("routed_connect__destination_not_there__refused_or_unreachable") {
  Site site;
  site.chain(2);
  const cci::Event event = site.connect_event(*site.left, "cci://1:2:10.0.0.77:7000");
  CHECK((event.status == Status::unreachable || event.status == Status::refused));
}

TEST_CASE("routed_connect__same_subnet__direct_with_every_router_dead") {
  Site site;
  site.chain(1);
  App neighbour(site.world, site.fabric, "lan1", "10.0.0.3", {1, 1}, {"sim://10.0.0.1:7000"});
  site.kill(0);
  const cci::Event event = site.connect_event(*site.left, neighbour.uri());
  REQUIRE(event.status == Status::success);
  const auto hops = site.left->endpoint->hops(event.connection);
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].node == "sim://10.0.0.3:7000");
  CHECK(hops[0].subnet == 1);
  CHECK(site.send(*site.left, event.connection, "direct") == Status::success);
  // And by its native address.
  CHECK(site.connect_event(*site.left, "sim://10.0.0.3:7000").status == Status::success);
}

TEST_CASE("routed_connect__two_sites_with_the_same_node_names__each_reaches_the_other") {
  Site site;
  site.chain(2);  // 10.0.0.2 on both lans
  CHECK(site.left->uri() == "cci://1:1:10.0.0.2:7000");
  CHECK(site.right->uri() == "cci://1:2:10.0.0.2:7000");
  const cci::Connection there = site.connect(*site.left, *site.right);
  const cci::Connection back = site.connect(*site.right, *site.left);
  CHECK(site.send(*site.left, there, "there") == Status::success);
  CHECK(as_text(site.right->take(EventType::receive)->data()) == "there");
  CHECK(site.send(*site.right, back, "back") == Status::success);
  CHECK(as_text(site.left->take(EventType::receive)->data()) == "back");
}

TEST_CASE("routed_connect__eight_routers__works_and_nine_do_not") {
  {
    Site site;
    site.chain(8);
    site.world.run_for(seconds(5));
    const cci::Connection connection = site.connect(*site.left, *site.right);
    CHECK(site.send(*site.left, connection, "far") == Status::success);
    CHECK(site.left->endpoint->hops(connection).size() == 9);
  }
  Site site;
  site.chain(9);
  site.world.run_for(seconds(5));
  CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::no_route);
}

TEST_CASE("routed_connect__parallel_routers__both_are_used_and_a_dead_one_is_passed_over") {
  Site site;
  site.parallel(2);
  for (int i = 0; i < 24; ++i) site.connect(*site.left, *site.right);
  CHECK(site.routers[1]->counters.get(Counter::routed_connections) > 0);
  CHECK(site.routers[2]->counters.get(Counter::routed_connections) > 0);
  site.kill(1);
  for (int i = 0; i < 8; ++i) {
    const cci::Connection connection = site.connect(*site.left, *site.right);
    CHECK(site.send(*site.left, connection, "by the other") == Status::success);
  }
}

TEST_CASE("routed_connect__wrong_first_router__goes_back_over_the_subnet") {
  // Two routers on lan1; only the second leads to lan2. The client knows only the first.
  Site site;
  site.add_router("a", {{"lan1", "10.0.0.1", {1, 1}, {"sim://10.0.0.9:7000"}}, {"lan3", "10.0.0.1", {1, 3}, {}}});
  site.add_router("b", {{"lan1", "10.0.0.9", {1, 1}, {"sim://10.0.0.1:7000"}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1},
                                    std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.settle();
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.left->endpoint->hops(connection).size() == 3);
}

TEST_CASE("routed_connect__many_at_once__all_end") {
  Site site;
  site.chain(2);
  constexpr size_t count = 300;
  for (size_t i = 0; i < count; ++i) {
    cci::ConnectOptions how;
    how.timeout = seconds(60);
    how.context = i;
    REQUIRE(site.left->endpoint->connect(site.right->uri(), how));
  }
  site.left->wake();
  REQUIRE(site.run([&] { return site.left->count(EventType::connect) == count && site.right->count(EventType::accept) == count; }));
  for (const cci::Event& event : site.left->events) CHECK(event.status == Status::success);
}

TEST_CASE("routed_connect__given_up_by_the_dialler__nothing_is_left") {
  Site site;
  site.chain(2);
  site.right->answer = App::Answer::none;
  const auto connection = site.left->endpoint->connect(site.right->uri(), {});
  REQUIRE(connection);
  site.left->wake();
  REQUIRE(site.run([&] { return site.right->count(EventType::connect_request) > 0; }));
  site.left->endpoint->disconnect(*connection);
  site.left->wake();
  site.world.run_for(seconds(3));
  auto request = site.right->take(EventType::connect_request);
  CHECK(site.right->endpoint->accept(*request, 1) == Status::not_found);
  for (const auto& router : site.routers) router->router->drain();
  CHECK(site.run([&] { return site.routers[0]->router->drained() && site.routers[1]->router->drained(); }, seconds(20)));
}
