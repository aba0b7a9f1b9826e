// Links over lanes that die: control messages once and in order, puts reported once, lane notices in order, bad peers refused.
#include "app/session/link.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;

namespace {

std::vector<uint64_t> numbers(uint64_t count) {
  std::vector<uint64_t> all;
  for (uint64_t i = 1; i <= count; ++i) all.push_back(i);
  return all;
}

// Both ends post `count` messages, a few a turn; true when all were delivered and both ends know it.
bool talk(World& world, uint64_t count, size_t turns = 20000) {
  uint64_t near_posted = 0;
  uint64_t far_posted = 0;
  return world.run(
      [&] {
        for (int i = 0; i < 3; ++i) {
          if (near_posted < count) world.link->post(End{++near_posted});
          if (world.acceptor->link != nullptr && far_posted < count) world.acceptor->link->post(End{++far_posted});
        }
        return near_posted == count && far_posted == count && world.link->messages_delivered() &&
               world.acceptor->link->messages_delivered() && world.user.messages.size() >= count &&
               world.acceptor->user.messages.size() >= count;
      },
      turns);
}

}  // namespace

TEST_CASE("link__two_lanes__messages_arrive_once_and_in_order_both_ways") {
  World world(2);
  REQUIRE(talk(world, 300));
  CHECK(world.user.messages == numbers(300));
  CHECK(world.acceptor->user.messages == numbers(300));
  REQUIRE(world.run_until_up(2));
  CHECK(world.user.lanes == std::vector<std::string>{"up 0", "up 1"});
  CHECK(world.acceptor->sessions == 1);
}

TEST_CASE("link__a_lane_dies_at_any_step__messages_arrive_once_and_in_order") {
  constexpr uint64_t count = 25;
  size_t steps = 0;
  {
    World world(2);
    REQUIRE(world.run_until_up(2));
    REQUIRE(talk(world, count));
    steps = world.net.steps;
  }
  for (const Fault fault : {Fault::cut_before, Fault::cut_after, Fault::half_before, Fault::half_after}) {
    for (size_t at = 0; at <= steps; ++at) {
      INFO("fault " << static_cast<int>(fault) << " at step " << at);
      World world(2);
      REQUIRE(world.run_until_up(2));
      const size_t first = world.net.steps;
      world.net.fault = [&](size_t step, FrameKind) { return step == first + at ? fault : Fault::none; };
      static_cast<void>(talk(world, count, 400));  // an end that does not notice may wait for ever
      world.net.notice_half_open = true;
      REQUIRE(world.run([&] {
        return world.link->messages_delivered() && world.acceptor->link->messages_delivered() &&
               world.user.messages.size() >= count && world.acceptor->user.messages.size() >= count;
      }));
      REQUIRE(world.user.messages == numbers(count));
      REQUIRE(world.acceptor->user.messages == numbers(count));
      REQUIRE(world.acceptor->sessions == 1);
      REQUIRE(world.run_until_up(2));
    }
  }
}

TEST_CASE("link__lanes_die_again_and_again__messages_arrive_once_and_in_order") {
  for (const uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    INFO("seed " << seed);
    World world(3);
    REQUIRE(world.run_until_up(3));
    CountingEntropy random(seed);
    uint64_t countdown = 20;
    world.net.notice_half_open = true;
    world.net.fault = [&](size_t, FrameKind) {
      if (--countdown > 0) return Fault::none;
      const uint64_t value = random.next_u64() >> 40;
      countdown = 5 + value % 60;
      return static_cast<Fault>(1 + value / 60 % 4);
    };
    REQUIRE(talk(world, 400));
    CHECK(world.user.messages == numbers(400));
    CHECK(world.acceptor->user.messages == numbers(400));
    CHECK(world.acceptor->sessions == 1);
  }
}

TEST_CASE("link__both_lanes_cut_in_mid_burst__session_goes_on_after_a_redial") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  for (uint64_t i = 1; i <= 200; ++i) world.link->post(End{i});
  world.turn();
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 200 && world.link->messages_delivered(); }));
  CHECK(world.acceptor->user.messages == numbers(200));
  REQUIRE(world.run_until_up(2));
  CHECK(world.user.lost == nullptr);
  std::vector<std::string>& lanes = world.acceptor->user.lanes;
  std::sort(lanes.end() - 2, lanes.end());  // who is dialled first again is the jitter's affair
  CHECK(lanes == std::vector<std::string>{"up 0", "up 1", "down 0", "down 1", "up 0", "up 1"});
}

TEST_CASE("link__control_queue__tells_its_room_and_ends_the_session_when_overrun") {
  World world;
  for (size_t i = 0; i < control_messages_queued_max; ++i) {
    REQUIRE(world.link->control_queue_room() == control_messages_queued_max - i);
    world.link->post(End{i});
  }
  CHECK(world.link->control_queue_room() == 0);
  for (size_t i = 0; i < control_messages_reserve; ++i) world.link->post(End{i});
  world.turn();
  CHECK(world.user.lost == nullptr);
  for (size_t i = 0; i < control_messages_queued_max; ++i) world.link->post(End{i});
  REQUIRE(world.run([&] { return world.user.lost != nullptr; }, 1000));
  CHECK(world.user.lost->kind == ErrorKind::bug);
}

TEST_CASE("link__lane_messages__go_on_their_lane_and_only_the_newest_waiting_credit_counts") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  world.net.in_flight_max = 1;
  world.link->post_on_lane(1, LaneOpen{5, 6, 7, stripes});
  for (uint64_t limit = 1; limit <= 1000; ++limit) world.link->post_on_lane(1, Credit{limit});
  world.link->post_on_lane(7, Credit{1});  // no such lane: dropped
  const auto& got = world.acceptor->user.lane_messages;
  REQUIRE(world.run([&] { return got.size() >= 2 && world.link->next_deadline() == never; }, 1000));
  REQUIRE(got.size() == 2);
  CHECK(got[0].first == 1);
  CHECK(std::get<LaneOpen>(got[0].second).lane_session == 5);
  CHECK(std::get<Credit>(got[1].second).limit == 1000);
}

TEST_CASE("link__puts__land_in_their_mailbox_and_are_reported_once") {
  World world;
  REQUIRE(world.run_until_up(1));
  std::vector<std::byte> source(100, std::byte{7});
  const ports::Handle region = world.near.memory->register_region(Bytes(source));
  auto& mailboxes = world.far->memory->mailboxes();
  std::vector<std::byte> sink(200);
  REQUIRE(mailboxes.open(55, {.key = 66}) == Status::success);
  REQUIRE(mailboxes.post(55, sink, 77) == Status::success);
  REQUIRE(world.link->put(0, region, 10, 50, 55, 66, 0, 1234) == Status::success);
  REQUIRE(world.link->put(0, region, 0, 50, 55, 67, 0, 1235) == Status::success);  // another key
  CHECK(world.link->put(3, region, 0, 50, 55, 66, 0, 1) == Status::disconnected);
  REQUIRE(world.run([&] { return world.user.puts.size() == 2; }));
  CHECK(world.user.puts[0].context == 1234);
  CHECK(world.user.puts[0].status == Status::success);
  CHECK(world.user.puts[1].context == 1235);
  CHECK(world.user.puts[1].status == Status::mailbox_key);
  const auto completion = mailboxes.next_completion();
  REQUIRE(completion);
  CHECK(completion->context == 77);
  CHECK(completion->length_bytes == 50);
}

TEST_CASE("link__lane_dies_or_is_closed_with_puts_on_it__each_is_reported_before_lane_down") {
  for (const bool own_close : {false, true}) {
    World world;
    REQUIRE(world.run_until_up(1));
    std::vector<std::byte> source(100);
    const ports::Handle region = world.near.memory->register_region(Bytes(source));
    world.user.lanes.clear();
    for (uint64_t i = 0; i < 5; ++i) REQUIRE(world.link->put(0, region, 0, 50, 55, 66, 0, i) == Status::success);
    if (own_close) {
      world.link->close_lane(0);
    } else {
      world.near.transport->cut_all();
    }
    CHECK(world.user.lanes.empty());  // told from turn() only
    REQUIRE(world.run([&] { return world.user.lanes.size() >= 7; }, 1000));
    CHECK(world.user.lanes == std::vector<std::string>{"put 0", "put 0", "put 0", "put 0", "put 0", "down 0", "up 0"});
    for (uint64_t i = 0; i < 5; ++i) {
      CHECK(world.user.puts[i].context == i);
      CHECK(world.user.puts[i].status == Status::disconnected);
    }
  }
}

// Only puts are waited for: who is told that they ended may write over what they were read from.
TEST_CASE("link__lane_closed_with_messages_on_their_way__goes_at_once") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  world.link->post_on_lane(0, Credit{1});
  world.link->post(End{5});
  world.near.hub->turn(world.now);
  world.near.transport->hold_oldest(true);  // they are on their way, and the peer does not answer
  world.user.lanes.clear();
  world.link->close_lane(0);
  for (int i = 0; i < 3; ++i) world.near.hub->turn(world.now);
  CHECK(world.user.lanes == std::vector<std::string>{"down 0"});
}

TEST_CASE("link__lane_closed_with_receives_queued__their_messages_still_count") {
  World world;
  REQUIRE(world.run_until_up(1));
  for (uint64_t i = 1; i <= 5; ++i) world.acceptor->link->post(End{i});
  world.near.endpoint->turn(world.now);  // they are in the endpoint's queue, and acknowledged
  world.far->hub->turn(world.now);
  REQUIRE(world.acceptor->link->messages_delivered());
  world.link->close_lane(0);
  REQUIRE(world.run([&] { return world.user.messages.size() == 5; }, 1000));
  CHECK(world.user.messages == numbers(5));
}

TEST_CASE("link__puts_beyond_what_may_be_in_flight__go_after_a_completion") {
  World world;
  REQUIRE(world.run_until_up(1));
  std::vector<std::byte> source(100);
  const ports::Handle region = world.near.memory->register_region(Bytes(source));
  world.net.in_flight_max = 2;
  CHECK(world.link->put(0, region, 0, 50, 1, 1, 0, 1) == Status::success);
  CHECK(world.link->put(0, region, 0, 50, 1, 1, 0, 2) == Status::success);
  CHECK(world.link->put(0, region, 0, 50, 1, 1, 0, 3) == Status::no_buffers);
  world.link->post(End{1});  // waits, and goes by itself
  REQUIRE(world.run([&] { return world.user.puts.size() == 2 && world.acceptor->user.messages.size() == 1; }, 1000));
  CHECK(world.link->put(0, region, 0, 50, 1, 1, 0, 3) == Status::success);
}

TEST_CASE("link__no_lane_for_the_grace__ends_with_timeout_and_says_nothing_more") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.acceptor->link->set_grace(std::chrono::seconds(3));
  world.dialler->set_patience(std::chrono::seconds(1));
  world.net.dial_status = [](std::string_view) { return Status::unreachable; };
  world.near.transport->cut_all();
  const Instant cut = world.now;
  REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }));
  CHECK(world.acceptor->user.lost->kind == ErrorKind::timeout);
  CHECK(world.now >= cut + std::chrono::seconds(3));
  CHECK(world.now < cut + std::chrono::seconds(4));
  REQUIRE(world.dialler->failure() != nullptr);
  CHECK(world.dialler->failure()->kind == ErrorKind::no_answer);
  for (int i = 0; i < 100; ++i) world.turn();
  CHECK(world.acceptor->user.calls_after_lost == 0);
  CHECK(world.acceptor->link->next_deadline() == never);
}

TEST_CASE("link__its_last_lane_goes_with_the_peers_endpoint__the_peer_has_departed") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  const bool departs = GENERATE(true, false);
  if (departs) world.net.cut_reason = "tcp://far: the endpoint was destroyed";
  const session::Link& link = *world.acceptor->link;
  CHECK_FALSE(link.peer_departed());
  world.net.dial_status = [](std::string_view) { return Status::unreachable; };
  world.near.transport->cut_newest();
  REQUIRE(world.run([&] { return link.live_lanes().size() == 1; }));
  CHECK_FALSE(link.peer_departed());
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return link.live_lanes().empty(); }));
  CHECK(link.peer_departed() == departs);
}

TEST_CASE("link__a_later_lane_ends_before_it_is_confirmed__the_peer_that_departed_before_is_back") {
  World world(1);
  REQUIRE(world.run_until_up(1));
  const session::Link& link = *world.acceptor->link;
  world.net.cut_reason = "tcp://far: the endpoint was destroyed";
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return link.peer_departed(); }));
  world.net.cut_reason = "cut";
  size_t cuts = 0;
  world.net.fault = [&](size_t, FrameKind kind) {
    if (kind != FrameKind::accept) return Fault::none;
    ++cuts;
    return Fault::cut_before;
  };
  REQUIRE(world.run([&] { return cuts > 0 && link.live_lanes().empty(); }));
  CHECK_FALSE(link.peer_departed());
}

TEST_CASE("link__malformed_message__is_counted_and_ends_the_session_with_an_abort") {
  World world;
  REQUIRE(world.run_until_up(1));
  // A peer that means harm: a connection of its own that joins as lane 1, then garbage.
  Hello hello = world.link->hello();
  hello.session = world.link->session();
  hello.lane = 1;
  const std::vector<std::byte> data = encode(hello);
  Side evil(world.net, "", 3);
  cci::ConnectOptions options;
  options.data = data;
  const auto connection = evil.endpoint->connect("fake://far", options);
  REQUIRE(connection);
  REQUIRE(world.run([&] {
    evil.endpoint->turn(world.now);
    while (evil.endpoint->get_event()) {
    }
    return world.acceptor->link->live_lanes().size() == 2;
  }));
  std::vector<std::byte> garbage = encode(End{1}, 1);
  garbage[13] ^= std::byte{1};
  REQUIRE(evil.endpoint->send(*connection, Bytes(garbage), 0) == Status::success);
  REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }, 1000));
  CHECK(world.acceptor->user.lost->kind == ErrorKind::protocol);
  CHECK(world.far->counters.get(Counter::session_rejected) == 1);
  REQUIRE(world.run([&] { return !world.user.others.empty(); }, 1000));
  CHECK(std::get<Abort>(world.user.others[0]).kind == ErrorKind::protocol);
  CHECK(world.acceptor->user.calls_after_lost == 0);
}

TEST_CASE("link__number_beyond_the_window__ends_the_session") {
  World world;
  REQUIRE(world.run_until_up(1));
  Hello hello = world.link->hello();
  hello.session = world.link->session();
  const std::vector<std::byte> data = encode(hello);
  Side evil(world.net, "", 3);
  cci::ConnectOptions options;
  options.data = data;
  const auto connection = evil.endpoint->connect("fake://far", options);
  REQUIRE(connection);
  bool sent = false;
  REQUIRE(world.run([&] {
    evil.endpoint->turn(world.now);
    while (auto event = evil.endpoint->get_event()) {
      if (event->type != cci::EventType::connect) continue;
      const std::vector<std::byte> far_ahead = encode(End{1}, control_messages_ahead_max + 1);
      REQUIRE(evil.endpoint->send(*connection, Bytes(far_ahead), 0) == Status::success);
      sent = true;
    }
    return world.acceptor->user.lost != nullptr;
  }));
  CHECK(sent);
  CHECK(world.acceptor->user.lost->kind == ErrorKind::protocol);
}

TEST_CASE("link__destroyed_with_everything_under_way__nobody_hears_of_it_again") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  std::vector<std::byte> source(100);
  const ports::Handle region = world.near.memory->register_region(Bytes(source));
  for (uint64_t i = 0; i < 50; ++i) world.link->post(End{i});
  REQUIRE(world.link->put(1, region, 0, 50, 1, 1, 0, 1) == Status::success);
  world.near.hub->remove_dialler(world.dialler.get());
  world.dialler.reset();
  world.link.reset();
  REQUIRE(world.run([&] { return world.acceptor->link->live_lanes().empty(); }, 1000));
  CHECK(world.user.puts.empty());
  CHECK(world.near.transport->connections() == 0);
  world.dialler = nullptr;
}

TEST_CASE("link__lowest_lane_falls_silent__session_messages_pass_it_over_and_arrive_once") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  world.far->transport->hold_oldest(true);
  for (uint64_t i = 1; i <= 100; ++i) world.link->post(End{i});
  const Instant begun = world.now;
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 100 && world.link->messages_delivered(); }));
  CHECK(world.now - begun < std::chrono::seconds(5));  // not only when the lane is lost
  CHECK(world.link->live_lanes().size() == 2);
  world.far->transport->hold_oldest(false);  // what was sent there comes too, late
  for (uint64_t i = 101; i <= 200; ++i) world.link->post(End{i});
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 200 && world.link->next_deadline() == never; }));
  CHECK(world.acceptor->user.messages == numbers(200));
  CHECK(world.user.lost == nullptr);
}

TEST_CASE("link__every_lane_falls_silent__messages_wait_and_nothing_spins") {
  World world(1);
  REQUIRE(world.run_until_up(1));
  world.far->transport->hold_oldest(true);
  for (uint64_t i = 1; i <= 100; ++i) world.link->post(End{i});
  const Instant end = world.now + std::chrono::seconds(20);
  size_t turns = 0;
  REQUIRE(world.run([&] { return ++turns > 2000 || world.now >= end || world.link->next_deadline() == never; }));
  CHECK(turns < 100);
  world.far->transport->hold_oldest(false);
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 100; }));
  CHECK(world.acceptor->user.messages == numbers(100));
}
