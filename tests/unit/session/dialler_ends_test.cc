// How a Dialler's attempts end, what each end means for the next, and when it has had enough.
#include <catch2/catch.hpp>

#include "app/session/limits.h"
#include "app/session/refusal.h"
#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;
using namespace std::chrono_literals;

namespace {

// The near side alone, from one deadline to the next: the far one takes no turn, as if its process were stopped.
void turn_near_until(World& world, Instant until) {
  while (world.now < until) {
    world.near.hub->turn(world.now);
    world.now = std::min(until, std::max(world.near.hub->next_deadline(), world.now + 1us));
  }
  world.near.hub->turn(world.now);
}

// The lane comes up and is cut at once, `times` times: each time its pause doubles.
void lose_lane(World& world, int times) {
  for (int i = 0; i < times; ++i) {
    REQUIRE(world.run_until_up(1));
    world.near.transport->cut_all();
    REQUIRE(world.run([&] { return world.link->live_lanes().empty(); }, 100));
  }
}

}  // namespace

TEST_CASE("dialler__patience_ends_during_an_attempt__gives_up_and_leaves_the_connection") {
  World world;
  world.dialler->set_patience(3s);
  world.near.hub->turn(world.now);
  REQUIRE(world.net.dials == 1);
  CHECK(world.dialler->next_deadline() == world.began + 3s);
  turn_near_until(world, world.began + 3s - 1ns);
  CHECK(world.dialler->failure() == nullptr);
  CHECK(world.near.transport->connections() == 1);
  turn_near_until(world, world.began + 3s);
  REQUIRE(world.dialler->failure() != nullptr);
  CHECK(world.dialler->failure()->kind == ErrorKind::no_answer);
  CHECK(world.dialler->failure()->message == "fake://far: no answer in time");
  CHECK_FALSE(world.dialler->hopeless());
  CHECK_FALSE(world.dialler->refused());
  CHECK_FALSE(world.dialler->session_lost());
  world.near.hub->turn(world.now);
  CHECK(world.near.transport->connections() == 0);
  CHECK(world.net.dials == 1);
  CHECK(world.dialler->next_deadline() == never);
}

TEST_CASE("dialler__no_patience__waits_for_the_end_of_its_one_attempt") {
  World world;
  world.dialler->set_patience(Duration::zero());
  turn_near_until(world, world.began + 10s - 1ns);
  CHECK(world.dialler->failure() == nullptr);
  CHECK(world.net.dials == 1);
  turn_near_until(world, world.began + 10s);
  turn_near_until(world, world.now);
  REQUIRE(world.dialler->failure() != nullptr);
  CHECK(world.dialler->failure()->message == "fake://far: no answer in time");
  CHECK(world.net.dials == 1);
}

TEST_CASE("dialler__address_that_cannot_be_dialled__is_final_in_the_endpoints_words") {
  World world;
  Dialler nowhere(*world.near.endpoint, *world.link, "", 7);
  nowhere.turn(world.now);
  REQUIRE(nowhere.failure() != nullptr);
  CHECK(nowhere.failure()->kind == ErrorKind::usage);
  CHECK(nowhere.failure()->message == "an empty URI cannot be dialled");
  CHECK(nowhere.hopeless());
  CHECK_FALSE(nowhere.refused());
  CHECK(nowhere.trouble() == nullptr);
  CHECK(nowhere.next_deadline() == never);
  CHECK(world.net.dials == 0);
}

TEST_CASE("dialler__the_endpoint_has_no_room_to_dial__tries_again_and_gets_through") {
  World world;
  REQUIRE(world.near.endpoint->set_send_buffers(1) == Status::success);
  const auto other = world.near.endpoint->connect("fake://far", {});  // takes the room that there is
  REQUIRE(other);
  world.dialler->turn(world.now);
  CHECK(world.dialler->failure() == nullptr);
  CHECK_FALSE(world.dialler->hopeless());
  REQUIRE(world.dialler->trouble() != nullptr);
  CHECK(world.dialler->trouble()->kind == ErrorKind::network);
  CHECK(world.dialler->trouble()->message == "too many operations in flight to connect");
  CHECK(world.dialler->next_deadline() >= world.now + 25ms);
  CHECK(world.dialler->next_deadline() <= world.now + 50ms);
  CHECK(world.net.dials == 1);
  world.near.endpoint->disconnect(*other);
  REQUIRE(world.run_until_up(1));
  CHECK(world.dialler->trouble() == nullptr);
}

TEST_CASE("dialler__each_end_of_an_attempt__is_told_in_its_words_with_any_reason") {
  struct Row {
    Status status;
    const char* words;
    ErrorKind kind;
    bool final;
  };
  const Row rows[] = {{Status::refused, "connection refused", ErrorKind::no_answer, false},
                      {Status::unreachable, "nobody answers", ErrorKind::no_answer, false},
                      {Status::timed_out, "no answer in time", ErrorKind::no_answer, false},
                      {Status::not_found, "no host has this name", ErrorKind::no_answer, true},
                      {Status::no_route, "no route", ErrorKind::no_route, false},
                      {Status::disconnected, "disconnected", ErrorKind::network, false}};
  for (const Row& row : rows) {
    for (const std::string reason : {"", "they say why"}) {
      INFO(row.words << ", " << reason);
      World world;
      world.net.dial_status = [&](std::string_view) { return row.status; };
      world.net.dial_reason = reason;
      REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr || world.dialler->failure() != nullptr; }, 100));
      const Error* told = row.final ? world.dialler->failure() : world.dialler->trouble();
      REQUIRE(told != nullptr);
      CHECK(told->message == std::string("fake://far: ") + row.words + (reason.empty() ? "" : " (they say why)"));
      CHECK(told->kind == row.kind);
      CHECK(world.dialler->hopeless() == row.final);
      CHECK_FALSE(world.dialler->refused());
    }
  }
}

TEST_CASE("dialler__another_version_without_words__says_so_itself") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::version; };
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
  CHECK(world.dialler->failure()->message == "fake://far: the peer speaks another version");
  CHECK(world.dialler->hopeless());
  CHECK_FALSE(world.dialler->refused());
}

TEST_CASE("dialler__a_peer_that_is_not_proved_or_does_not_let_us_in__final_with_its_own_kind") {
  const bool proof = GENERATE(true, false);
  const std::string reason = GENERATE("", "start both with or both without it");
  World world;
  world.net.dial_status = [&](std::string_view) { return proof ? Status::not_authenticated : Status::not_authorised; };
  world.net.dial_reason = reason;
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
  const std::string own = proof ? "the peer's identity is not proved" : "the peer does not allow this";
  CHECK(world.dialler->failure()->message == "fake://far: " + (reason.empty() ? own : reason));
  CHECK(world.dialler->failure()->kind == (proof ? ErrorKind::authentication : ErrorKind::not_authorised));
  CHECK(world.dialler->hopeless());
}

TEST_CASE("dialler__refused__is_the_acceptors_word_until_an_attempt_ends_otherwise") {
  World world;
  world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::network, "busy"});
  REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr; }, 1000));
  CHECK(world.dialler->refused());
  CHECK(world.dialler->trouble()->message == "fake://far: refused: busy");
  CHECK(world.dialler->trouble()->kind == ErrorKind::network);
  world.net.dial_status = [](std::string_view) { return Status::unreachable; };
  REQUIRE(world.run([&] { return world.dialler->trouble()->kind == ErrorKind::no_answer; }, 1000));
  CHECK_FALSE(world.dialler->refused());
}

TEST_CASE("dialler__refused_for_good__is_the_acceptors_word_and_hopeless") {
  World world;
  world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::not_authorised, "not you"});
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 1000));
  CHECK(world.dialler->refused());
  CHECK(world.dialler->hopeless());
  CHECK(world.dialler->failure()->message == "fake://far: refused: not you");
  CHECK(world.net.dials == 1);
}

// What is final for a session that has not begun is only one lane's trouble while another lives.
TEST_CASE("dialler__a_lane_that_cannot_be_had_while_another_lives__is_dialled_now_and_then") {
  World world(2);
  world.net.dial_status = [&](std::string_view) { return world.net.dials > 1 ? Status::version : Status::success; };
  REQUIRE(world.run([&] { return world.net.dials >= 6; }));
  CHECK(world.dialler->failure() == nullptr);
  CHECK_FALSE(world.dialler->hopeless());
  CHECK(world.dialler->trouble() == nullptr);  // it works
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0});
  CHECK(world.now >= world.began + 25ms + 50ms + 100ms + 200ms);  // half of each pause, at the least
  world.net.dial_status = nullptr;
  REQUIRE(world.run_until_up(2));
}

// Patience is for being without any lane, and each time anew.
TEST_CASE("dialler__lanes_are_lost_again_and_again__each_time_its_patience_begins_anew") {
  World world;
  world.dialler->set_patience(12s);
  REQUIRE(world.run_until_up(1));
  for (int i = 0; i < 3; ++i) {
    const Instant lost = world.now;
    world.net.dial_status = [](std::string_view) { return Status::unreachable; };
    world.near.transport->cut_all();
    REQUIRE(world.run([&] { return world.now >= lost + 5s + 500ms; }));
    CHECK(world.dialler->failure() == nullptr);
    world.net.dial_status = nullptr;
    REQUIRE(world.run_until_up(1));
  }
  world.net.dial_status = [](std::string_view) { return Status::unreachable; };
  world.near.transport->cut_all();
  const Instant lost = world.now;
  Instant at = lost;  // of the turn in which it gave up
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr || (at = world.now, false); }));
  CHECK(at >= lost + 12s);
  CHECK(at < lost + 13s);
  CHECK_FALSE(world.dialler->hopeless());
  CHECK_FALSE(world.dialler->session_lost());
}

TEST_CASE("dialler__a_lane_that_lived_five_seconds__begins_again_with_the_first_pause") {
  const bool settled = GENERATE(true, false);
  World world;
  lose_lane(world, 6);  // the next pause is 3.2 s at the most
  REQUIRE(world.run_until_up(1));
  const Instant up = world.now;
  world.now = up + (settled ? 5s : 4900ms);
  world.near.hub->turn(world.now);
  world.far->hub->turn(world.now);
  const size_t dials = world.net.dials;
  world.near.transport->cut_all();
  const Instant cut = world.now;
  REQUIRE(world.run([&] { return world.net.dials > dials; }));
  if (settled) {
    CHECK(world.now <= cut + 60ms);
  } else {
    CHECK(world.now >= cut + 1600ms);
  }
}

TEST_CASE("dialler__lanes_asked_for__at_least_one_and_no_more_than_there_may_be") {
  World few(3);
  few.dialler->set_lanes(0);
  REQUIRE(few.run_until_up(1));
  for (int i = 0; i < 50; ++i) few.turn();
  CHECK(few.net.dials == 1);
  World many(1);
  many.dialler->set_lanes(UINT16_MAX);
  REQUIRE(many.run_until_up(lanes_max));
  for (int i = 0; i < 50; ++i) many.turn();
  CHECK(many.link->live_lanes().size() == lanes_max);
}

TEST_CASE("dialler__the_session_is_lost_on_one_lane__its_other_attempts_end_too") {
  World world(3);
  REQUIRE(world.run_until_up(3));
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.link->live_lanes().empty(); }, 100));
  size_t dials = world.net.dials;
  REQUIRE(world.run([&] { return world.net.dials > dials; }));
  world.acceptor->link.reset();  // it knows the session no more
  REQUIRE(world.run([&] { return world.dialler->session_lost(); }));
  CHECK(world.dialler->next_deadline() == never);
  world.near.hub->turn(world.now);
  CHECK(world.near.transport->connections() == 0);
  dials = world.net.dials;
  for (int i = 0; i < 50; ++i) world.turn();
  CHECK(world.net.dials == dials);
  CHECK(world.dialler->trouble() == nullptr);
  CHECK(world.dialler->failure() == nullptr);
}
