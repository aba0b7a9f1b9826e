// What waits at a router behind an end that stood still lately, while a router before it has nothing left for others.
#include <algorithm>

#include "tests/unit/routing/passing.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

// Connections from a router on the left to an end on the right, with a penalty's share of one buffer.
struct Stopped : Passing {
  Stopped() : Passing(true, 1) {
    connections.push_back(left.connection);
    while (connections.size() < 3) connections.push_back(open(true, 1));
    open_target();
  }
  void speak_on(size_t number) { left.connection = connections[number]; }
  void offer_on(size_t number) {
    speak_on(number);
    FragmentMessage fragment = offer(left, MessageKind::write_request, number);
    fragment.data_class = 1;
    left.say(fragment);
    rest();
  }
  // The router on the left says that others wait for what this connection holds there.
  bool cut_when_told(size_t number) {
    speak_on(number);
    left.gone = false;
    left.say_plain(MessageKind::others_wait);
    rest();
    return left.gone && left.lost == connections[number];
  }
  // The end stands still, is cut off for it on its first connection, and is remembered.
  void cut_off_the_first() {
    right.freeze(true);
    offer_on(0);
    REQUIRE(held() == 1);
    left.gone = false;
    for (int i = 0; i < 40 && !left.gone; ++i) {
      left.say_plain(MessageKind::others_wait);
      world.run_for(milliseconds(100));
    }
    REQUIRE(left.gone);
    REQUIRE(left.lost == connections[0]);
    REQUIRE(held() == 0);
  }
  std::vector<cci::Connection> connections;
};

}  // namespace

TEST_CASE("router_standstill__waits_in_vain_behind_a_cut_off_end__goes_when_others_wait") {
  Stopped met;
  met.cut_off_the_first();
  CHECK_FALSE(met.cut_when_told(1));  // it waits for nothing here
  met.offer_on(1);
  CHECK(met.held() == 1);
  CHECK_FALSE(met.cut_when_told(1));  // it has a buffer, and may still move
  met.offer_on(2);
  CHECK(met.held() == 1);
  CHECK(met.cut_when_told(2));
  CHECK(met.known() == 1);
}

TEST_CASE("router_standstill__its_penalty_is_over__has_the_share_of_any_other_again") {
  Stopped met;
  met.cut_off_the_first();
  const bool over = GENERATE(true, false);
  met.right.freeze(false);
  met.world.run_for(over ? penalty_time : penalty_time - seconds(1));
  met.right.freeze(true);
  met.offer_on(1);
  met.offer_on(2);
  CHECK(met.held() == (over ? 2 : 1));
}

TEST_CASE("router_standstill__cut_off_and_has_moved_since__has_the_share_of_any_other_again") {
  Stopped met;
  met.cut_off_the_first();
  met.right.freeze(false);
  for (const size_t number : {size_t{1}, size_t{2}}) {
    met.forget();
    met.offer_on(number);
    REQUIRE(met.run([&] { return met.left.last(MessageKind::fragment_ack).has_value(); }));
  }
  met.right.freeze(true);
  met.offer_on(1);
  met.offer_on(2);
  CHECK(met.held() == 2);
}

// Each would hold up whoever is before it for as long again, and nobody has said of those that others wait.
TEST_CASE("router_standstill__an_end_is_cut_off_once__its_other_waiting_ones_go_at_once") {
  Stopped met;
  met.right.freeze(true);
  for (const size_t number : {size_t{1}, size_t{2}, size_t{0}}) met.offer_on(number);
  REQUIRE(met.held() == 3);
  met.left.gone = false;
  for (int i = 0; i < 40 && !met.left.gone; ++i) {
    met.left.say_plain(MessageKind::others_wait);
    met.world.run_for(milliseconds(100));
  }
  REQUIRE(met.left.gone);
  CHECK(met.known() == 0);
}

// It takes what it is sent, so that its connection moves, and yet what it offered itself has held a buffer for thirty seconds.
TEST_CASE("router_standstill__an_end_takes_and_never_gives_what_it_offered__is_cut_off") {
  Passing met(true);
  met.open_target();
  met.right.say(met.endless(met.right, MessageKind::write_request, 3));
  met.rest();
  REQUIRE(met.held() == 1);
  const Instant begun = met.world.now();
  uint64_t number = 100, acked = 0;
  while (!met.right.gone && met.world.now() < begun + 2 * cut_anyway) {
    met.left.say(met.offer(met.left, MessageKind::write_request, ++number));
    met.world.run_for(milliseconds(100));
    if (met.left.last(MessageKind::fragment_ack)) ++acked;
    met.forget_all_but_bye();
  }
  CHECK(acked > 200);
  CHECK(met.right.gone);
  CHECK(met.world.now() - begun >= cut_anyway);
  CHECK(met.world.now() - begun < cut_anyway + seconds(1));
  REQUIRE(met.left.last(MessageKind::bye));
  const auto bye = decode_bye(*met.left.last(MessageKind::bye));
  REQUIRE(bye);
  CHECK(bye->status == Status::timed_out);
  CHECK(bye->reason.find("stands still: nothing comes of a fragment for 30.") != std::string::npos);
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
}

// Those of its connections that stand still go with it, and no others.
TEST_CASE("router_standstill__an_end_is_cut_off_once__another_that_moves_stays") {
  Passing met(true, 1, 64);
  met.open_target();
  std::vector<cci::Connection> lefts{met.left.connection}, rights{met.right.connection}, lost;
  for (int i = 0; i < 3; ++i) {
    lefts.push_back(met.open(true, 1));
    rights.push_back(met.right.connection);
  }
  const auto offers_and_never_sends = [&](size_t number) {
    met.right.connection = rights[number];
    met.right.say(met.endless(met.right, MessageKind::write_request, 3));
  };
  uint64_t number = 100;
  const auto write_until = [&](Instant end, size_t on = 2) {
    while (met.world.now() < end) {
      for (size_t i = 0; i < on; ++i) {
        met.left.connection = lefts[i];
        FragmentMessage fragment = met.offer(met.left, MessageKind::write_request, ++number);
        fragment.data_class = 1;
        met.left.say(fragment);
        met.world.run_for(milliseconds(50));
        if (std::exchange(met.left.gone, false)) lost.push_back(met.left.lost);
      }
      met.forget();
    }
  };
  const Instant begun = met.world.now();
  offers_and_never_sends(0);
  write_until(begun + seconds(19));
  write_until(begun + seconds(20), 3);
  offers_and_never_sends(1);
  offers_and_never_sends(2);
  write_until(begun + seconds(29));
  CHECK(lost.empty());
  CHECK(met.node->router->connections_open() == 4);
  write_until(begun + seconds(45));
  // The third moved once, but not lately; the fourth has nothing here that could stand still.
  CHECK(met.node->router->connections_open() == 2);
  CHECK(std::count(lost.begin(), lost.end(), lefts[1]) == 0);
  write_until(begun + seconds(52));
  CHECK(lost.back() == lefts[1]);
  CHECK(met.node->router->connections_open() == 1);
}

namespace {

// Another router on the left that knows a way to the subnet on the right.
struct Detour : Stopped {
  Detour() : beside(world, fabric, "left", "10.0.0.77") {
    beside.accepts = true;
    know(beside, "sim://10.0.0.1:7000", 77, {1, 1}, {1, 9});
  }
  // As if the router's host said that its own device there is gone.
  void lose_right() {
    node->router->set_works("right", false);
    world.wake(node->node);
    world.run_for(device_lost_after + milliseconds(200));
  }
  // To the same destination as ever, by way of the other router.
  void open_beside() {
    ConnectRequest request = RawPeer::usual_request("cci://1:9:10.9.0.10:7000");
    request.source = {1, 3};
    request.crossed = 1;
    beside.received.clear();
    REQUIRE(left.connect("sim://10.0.0.1:7000", ports::Role::hop));
    REQUIRE(left.say(request) == Status::success);
    REQUIRE(run([&] { return beside.last(MessageKind::connect_request).has_value(); }));
    ConnectReply reply{Status::success, {}, 1392, 1u << 20, {}, 0};
    reply.hops.push_back({"sim", "beyond", 1, 9, milliseconds(1), 0});
    REQUIRE(beside.say(reply) == Status::success);
    REQUIRE(run([&] { return left.last(MessageKind::connect_reply).has_value(); }));
    left.say_plain(MessageKind::connect_ack);
    rest();
    connections.push_back(left.connection);
  }
  RawPeer beside;
};

}  // namespace

// Only who is next to it can tell that it stands still; of a router beyond, that is that router's matter.
TEST_CASE("router_standstill__the_end_is_behind_another_router_now__nobody_is_cut_off") {
  Detour met;
  met.cut_off_the_first();
  met.lose_right();
  met.connections.clear();
  for (int i = 0; i < 2; ++i) met.open_beside();
  met.offer_on(0);
  CHECK(met.held() == 1);
  met.offer_on(1);
  CHECK(met.held() == 1);  // its share is that of an end that stood still
  CHECK_FALSE(met.cut_when_told(1));
  CHECK_FALSE(met.cut_when_told(0));
  CHECK(met.known() == 2);
}

TEST_CASE("router_standstill__others_wait_for_another_router__it_is_told_once_a_second") {
  Passing met(false, 1);
  FragmentMessage fragment = met.offer(met.left);
  fragment.data_class = 1;
  met.left.say(fragment);
  REQUIRE(met.offered(met.right, MessageKind::write_request));  // and not taken
  REQUIRE(met.held() == 1);
  const auto told = [&] {
    return std::count_if(met.right.received.begin(), met.right.received.end(),
                         [](const auto& message) { return kind_of(Bytes(message)) == MessageKind::others_wait; });
  };
  met.world.run_for(seconds(5));
  CHECK(told() == 0);  // nobody waits
  for (int i = 0; i < 100; ++i) {
    met.left.say_plain(MessageKind::others_wait);
    met.world.run_for(milliseconds(100));
  }
  CHECK(told() >= 9);
  CHECK(told() <= 11);
  CHECK_FALSE(met.left.gone);
  CHECK_FALSE(met.right.gone);
  CHECK(met.held() == 1);
}
