// A planned stop of a router: lanes move to another path while the old one still works, and no put goes out twice.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;

namespace {

constexpr uint64_t put_count = 5;

struct Putting {  // the side that puts, with `put_count` in flight on lane 0
  Putting(World& world_, bool dialler)
      : world(world_),
        link(dialler ? *world.link : *world.acceptor->link),
        user(dialler ? world.user : world.acceptor->user),
        region((dialler ? world.near : *world.far).memory->register_region(Bytes(source))) {
    auto& mailboxes = (dialler ? *world.far : world.near).memory->mailboxes();
    REQUIRE(mailboxes.open(55, {.key = 66}) == Status::success);
    for (uint64_t i = 0; i < put_count; ++i)
      REQUIRE(mailboxes.post(55, std::span(sink).subspan(i * 100, 100), i) == Status::success);
    for (uint64_t i = 0; i < put_count; ++i) REQUIRE(put(i) == Status::success);
    world.user.lanes.clear();
    world.acceptor->user.lanes.clear();
  }
  Status put(uint64_t i) { return link.put(0, region, 0, 100, 55, 66, i, i); }

  World& world;
  Link& link;
  Recorder& user;
  std::vector<std::byte> source = std::vector<std::byte>(100, std::byte{7});
  std::vector<std::byte> sink = std::vector<std::byte>(put_count * 100);
  ports::Handle region;
};

size_t count(const Recorder& user, const std::string& what) {
  return static_cast<size_t>(std::count(user.lanes.begin(), user.lanes.end(), what));
}

}  // namespace

TEST_CASE("link__path_goes__the_lane_moves_and_its_puts_end_well_first") {
  for (const bool dialler_puts : {true, false}) {
    INFO("the dialler puts: " << dialler_puts);
    World world(1, dialler_puts ? Direction::push : Direction::pull);
    REQUIRE(world.run_until_up(1));
    Putting putting(world, dialler_puts);
    world.net.frames_per_turn = 1;      // so that the new connection is there before the puts have ended
    world.near.transport->drain_all();  // only the dialler hears of it: for the other end it may be behind the data
    bool refused = false;
    REQUIRE(world.run([&] {
      refused = refused || putting.put(99) == Status::no_buffers;
      return refused || count(world.user, "up 0") > 0;
    }));
    CHECK(refused);  // nothing new while the old lane settles
    REQUIRE(world.run([&] { return count(world.user, "up 0") == 1 && count(world.acceptor->user, "up 0") == 1; }));
    std::vector<std::string> wanted(putting.user.puts.size(), "put 0");
    wanted.insert(wanted.end(), {"down 0", "up 0"});
    CHECK(putting.user.lanes == wanted);
    REQUIRE(putting.user.puts.size() >= put_count);
    for (uint64_t i = 0; i < put_count; ++i) CHECK(putting.user.puts[i].status == Status::success);
    CHECK(world.net.dials == 2);
    CHECK(world.user.lost == nullptr);
    CHECK(world.now < world.began + std::chrono::seconds(1));  // it did not wait for a limit
  }
}

TEST_CASE("link__path_goes_and_there_is_no_other__the_lane_stays_and_is_dialled_again") {
  World world;
  REQUIRE(world.run_until_up(1));
  Putting putting(world, true);
  world.net.dial_status = [](std::string_view) { return Status::no_route; };
  world.near.transport->drain_all();
  world.far->transport->drain_all();
  const Instant end = world.now + std::chrono::seconds(10);
  REQUIRE(world.run([&] { return world.now >= end; }));
  CHECK(world.user.puts.size() == put_count);
  CHECK(count(world.user, "down 0") == 0);
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0});
  CHECK(world.dialler->failure() == nullptr);
  CHECK(world.net.dials > 4);
  CHECK(world.net.dials < 20);  // growing pauses
  world.net.dial_status = nullptr;
  REQUIRE(world.run([&] { return count(world.user, "up 0") == 1; }));
}

TEST_CASE("link__path_goes_and_the_puts_do_not_end__the_lane_is_given_up_after_a_while") {
  World world;
  REQUIRE(world.run_until_up(1));
  Putting putting(world, true);
  world.near.transport->drain_all();
  world.far->transport->drain_all();
  bool hold = true;  // nothing of the old connection's puts comes back
  world.net.fault = [&](size_t, FrameKind kind) { return hold && kind == FrameKind::put ? Fault::half_before : Fault::none; };
  REQUIRE(world.run([&] { return count(world.user, "up 0") == 1; }));
  for (const Recorder::Put& put : world.user.puts) CHECK(put.status == Status::disconnected);
  CHECK(world.user.puts.size() == put_count);
}

TEST_CASE("link__replacement_dies_before_the_lane_moved__the_lane_is_dialled_again") {
  World world;
  REQUIRE(world.run_until_up(1));
  Putting putting(world, true);
  world.net.frames_per_turn = 1;
  world.near.transport->drain_all();
  world.far->transport->drain_all();
  REQUIRE(world.run([&] { return putting.put(99) == Status::no_buffers; }));
  world.near.transport->cut_newest();
  REQUIRE(world.run([&] { return count(world.user, "up 0") == 1; }));
  CHECK(world.net.dials >= 3);
  CHECK(world.user.lost == nullptr);
}

TEST_CASE("link__replacement_dies_and_there_is_no_other__the_lane_takes_puts_again") {
  World world;
  REQUIRE(world.run_until_up(1));
  Putting putting(world, true);
  world.net.frames_per_turn = 1;
  world.near.transport->drain_all();
  world.far->transport->drain_all();
  REQUIRE(world.run([&] { return putting.put(99) == Status::no_buffers; }));
  const size_t before = world.user.puts.size();
  world.near.transport->cut_newest();
  world.net.dial_status = [](std::string_view) { return Status::no_route; };
  REQUIRE(world.run([&] { return putting.put(98) == Status::success; }));
  const Instant end = world.now + std::chrono::seconds(10);
  REQUIRE(world.run([&] { return world.now >= end; }));
  CHECK(world.user.puts.size() > before);
  CHECK(count(world.user, "down 0") == 0);
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0});
  CHECK(world.user.lost == nullptr);
}

TEST_CASE("link__without_a_lane__moved_nothing") {
  World world;
  CHECK(world.link->moved_bytes() == 0);
  REQUIRE(world.run_until_up(1));
  CHECK(world.link->moved_bytes() == 0);  // this network counts none
}

// The acceptor has not told the session's number: it waits for its turn, say. A second connection would begin another session.
TEST_CASE("dialler__path_goes_before_the_session_has_its_number__makes_no_second_session") {
  World world;
  world.learns_session = false;
  REQUIRE(world.run_until_up(1));
  world.near.transport->drain_all();
  CHECK_FALSE(world.run([&] { return world.acceptor->sessions > 1 || world.dialler->session_lost(); }, 2000));
  CHECK(world.acceptor->link->live_lanes().size() == 1);
  world.learns_session = true;  // from then on it moves
  REQUIRE(world.run([&] { return count(world.user, "up 0") == 2; }));
  CHECK(world.acceptor->sessions == 1);
}
