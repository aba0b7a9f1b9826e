// What a lane bears at most, and what asks for a lane that is not there.
#include <catch2/catch.hpp>

#include "app/session/limits.h"
#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;

TEST_CASE("link__lane_messages_that_find_no_room__wait_up_to_a_bound_then_end_the_lane") {
  for (const uint32_t more : {0u, 1u}) {
    World world(2);
    REQUIRE(world.run_until_up(2));
    world.net.in_flight_max = 1;
    for (uint64_t i = 0; i < 1 + lane_messages_queued_max + more; ++i) world.link->post_on_lane(1, LaneOpen{i, 6, 7, stripes});
    CHECK(world.link->live_lanes() == (more == 0 ? std::vector<LaneIndex>{0, 1} : std::vector<LaneIndex>{0}));
    if (more > 0) continue;
    const auto& got = world.acceptor->user.lane_messages;
    REQUIRE(world.run([&] { return got.size() == 1 + lane_messages_queued_max; }, 2000));
    for (uint64_t i = 0; i < got.size(); ++i) CHECK(std::get<LaneOpen>(got[i].second).lane_session == i);
  }
}

TEST_CASE("link__credit_behind_another_lane_message__replaces_no_credit_before_it") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  world.net.in_flight_max = 1;
  world.link->post_on_lane(1, LaneOpen{1, 6, 7, stripes});  // goes out
  world.link->post_on_lane(1, Credit{10});
  world.link->post_on_lane(1, Credit{20});
  world.link->post_on_lane(1, LaneOpen{2, 6, 7, stripes});
  world.link->post_on_lane(1, Credit{30});
  world.link->post_on_lane(1, Credit{40});
  const auto& got = world.acceptor->user.lane_messages;
  REQUIRE(world.run([&] { return got.size() >= 4 && world.link->next_deadline() == never; }, 2000));
  REQUIRE(got.size() == 4);
  CHECK(std::get<LaneOpen>(got[0].second).lane_session == 1);
  CHECK(std::get<Credit>(got[1].second).limit == 20);
  CHECK(std::get<LaneOpen>(got[2].second).lane_session == 2);
  CHECK(std::get<Credit>(got[3].second).limit == 40);
}

TEST_CASE("link__a_lane_that_is_not_there__takes_nothing_and_has_no_way") {
  World world;
  REQUIRE(world.run_until_up(1));
  const std::vector<std::byte> bytes(10);
  const ports::Handle region = world.near.memory->register_region(Bytes(bytes));
  CHECK(world.link->put(3, region, 0, 10, 55, 66, 0, 1) == Status::disconnected);
  CHECK_FALSE(world.link->has_lane(3));
  CHECK_FALSE(world.link->must_move(3));
  CHECK(world.link->hops(3).empty());
  world.link->close_lane(3);
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0});
}

TEST_CASE("dialler__fewer_lanes_while_they_are_dialled__those_dials_end_at_once") {
  World world(4);
  REQUIRE(world.run([&] { return world.link->session() != 0; }));
  world.near.hub->turn(world.now);  // the far side takes no turn
  REQUIRE(world.net.dials == 4);
  world.dialler->set_lanes(1);
  world.near.hub->turn(world.now);
  CHECK(world.near.transport->connections() == 1);
  for (int i = 0; i < 50; ++i) world.turn();
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0});
  CHECK(world.acceptor->link->live_lanes() == std::vector<LaneIndex>{0});
}

TEST_CASE("dialler__destroyed_while_its_peer_is_stopped__its_connection_does_not_wait") {
  World world;
  world.near.hub->turn(world.now);  // the far side takes no turn
  REQUIRE(world.near.transport->connections() == 1);
  world.near.hub->remove_dialler(world.dialler.get());
  world.dialler.reset();
  world.near.hub->turn(world.now);
  CHECK(world.near.transport->connections() == 0);
}

TEST_CASE("dialler__a_lane_that_was_up_dies__is_dialled_again_after_a_pause") {
  World world;
  REQUIRE(world.run_until_up(1));
  const size_t dials = world.net.dials;
  const Instant cut = world.now;
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.net.dials == dials + 1; }));
  CHECK(world.now >= cut + std::chrono::milliseconds(25));  // half of the first pause, at the least
  REQUIRE(world.run_until_up(1));
}

TEST_CASE("dialler__a_connection_that_it_did_not_ask_for__is_not_its_own") {
  World world;
  world.near.hub->turn(world.now);
  cci::Event foreign;
  foreign.type = cci::EventType::connect;
  foreign.context = 1u << 20;
  CHECK_FALSE(world.dialler->handle_connect(foreign));
  CHECK(world.run_until_up(1));
}

// One attempt is made without any patience; when it went well, none is made for a lane that is lost.
TEST_CASE("dialler__no_patience_and_its_lane_is_lost__gives_up_without_another_attempt") {
  World world;
  world.dialler->set_patience(Duration::zero());
  REQUIRE(world.run_until_up(1));
  CHECK(world.dialler->failure() == nullptr);
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 1000));
  CHECK(world.net.dials == 1);
  // Nobody was dialled, so nobody has failed to answer.
  CHECK(world.dialler->failure()->kind == ErrorKind::network);
  CHECK(world.dialler->failure()->message == "fake://far: the connection was lost");
  CHECK(world.dialler->next_deadline() == never);
}

// Between half and the whole of a pause that doubles, from 50 ms to 5 s.
TEST_CASE("dialler__nobody_there__the_pauses_double_and_each_is_drawn_from_its_half") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::unreachable; };
  world.dialler->set_patience(std::chrono::seconds(60));
  Duration pause = std::chrono::milliseconds(50);
  size_t dials = 0;
  while (dials < 15) {
    const Instant at = world.near.hub->next_deadline();
    world.now = std::max(world.now, at);
    const size_t before = world.net.dials;
    world.near.hub->turn(world.now);
    if (world.net.dials == before) continue;
    ++dials;
    const Instant dialled = world.now;
    world.near.hub->turn(world.now);  // it fails at once
    const Duration waits = world.near.hub->next_deadline() - dialled;
    CHECK(waits >= pause / 2);
    CHECK(waits <= pause);
    pause = std::min<Duration>(pause * 2, std::chrono::seconds(5));
  }
}
