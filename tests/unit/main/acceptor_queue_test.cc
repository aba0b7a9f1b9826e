// Who has to wait at the side that listens: what it hears of its place, and what becomes of the place of one who goes.
#include <catch2/catch.hpp>

#include "app/main/acceptor.h"
#include "core/base/log.h"
#include "tests/unit/main/acceptor_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

TEST_CASE("acceptor__who_asked_and_is_cut_off__keeps_its_place_for_a_while") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  Guest& first = rig.arrive_and_run(1);
  Guest& second = rig.arrive(2);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  rig.far.transport->cut_newest();
  rig.leave(second);
  rig.run_for(1ms);
  Guest& third = rig.arrive(3);
  REQUIRE(rig.run([&] { return third.got<session::Queued>(); }));
  CHECK(third.places() == std::vector<uint32_t>{0});  // who is cut off is not counted
  rig.finish(first);
  CHECK(rig.acceptor->unfinished() == 1);  // in the turn in which there was room: nothing would bring about another one
  REQUIRE(rig.run([&] { return third.got<session::Opened>(); }));
  CHECK(rig.acceptor->unfinished() == 1);
  CHECK(rig.acceptor->sessions() == 2);
}

TEST_CASE("acceptor__one_who_waits_and_gives_up__leaves_its_place_to_the_next") {
  for (const bool aborts : {true, false}) {
    INFO(aborts);
    AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
    Words warned;
    set_log_sink([&](LogLevel, std::string_view line) { warned.emplace_back(line); }, LogLevel::warning);
    const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::error); });
    Guest& first = rig.arrive_and_run(1);
    Guest& second = rig.arrive(2);
    REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
    Guest& third = rig.arrive(3);
    REQUIRE(rig.run([&] { return third.got<session::Queued>(); }));
    CHECK(third.places() == std::vector<uint32_t>{1});
    if (aborts) {
      second.link->post(session::Abort{ErrorKind::interrupted, "never mind"});
    } else {
      second.link->post(session::OpenPart{4, 2, "cd"});  // it asked already, and asks for nonsense
    }
    REQUIRE(rig.run([&] { return third.places().size() == 2; }));
    CHECK(third.places() == std::vector<uint32_t>{1, 0});
    REQUIRE(rig.run([&] { return rig.acceptor->sessions() == 2; }));
    CHECK(rig.acceptor->unfinished() == 1);
    CHECK_FALSE(second.got<session::Opened>());
    // It was a transfer, so that its end is one; as it never began, nobody is told of it but the log.
    REQUIRE(rig.acceptor->first_end());
    CHECK(rig.acceptor->first_end()->kind == (aborts ? ErrorKind::interrupted : ErrorKind::protocol));
    CHECK(rig.desk.events.lines("\"ended\"").empty());
    REQUIRE(warned.size() == 1);
    CHECK(warned[0] == (aborts ? "session 02000000000000000000000000000000: interrupted: " + rig.acceptor->first_end()->message
                               : "session 02000000000000000000000000000000: protocol: the peer's request to open a session is "
                                 "malformed"));
    rig.finish(first);
    REQUIRE(rig.run([&] { return third.got<session::Opened>(); }));
  }
}

// It may come back for a while, and then not any more.
TEST_CASE("acceptor__one_who_waits_and_stays_cut_off__is_let_go_in_time") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  static_cast<void>(rig.arrive_and_run(1));
  Guest& second = rig.arrive(2);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  rig.far.transport->cut_newest();
  rig.leave(second);
  rig.run_for(1s);
  CHECK(rig.acceptor->sessions() == 2);
  REQUIRE(rig.run([&] { return rig.acceptor->sessions() == 1; }));
  CHECK(rig.acceptor->unfinished() == 1);
  REQUIRE(rig.acceptor->first_end());
  CHECK(rig.acceptor->first_end()->kind != ErrorKind::ok);
}

TEST_CASE("acceptor__no_room__places_in_order_and_each_only_when_it_changes") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 2; });
  std::vector<Guest*> guests;
  for (uint8_t i = 1; i <= 5; ++i) {
    guests.push_back(&rig.arrive(i));
    rig.run_for(1ms);
  }
  CHECK(rig.acceptor->unfinished() == 2);
  CHECK(rig.acceptor->sessions() == 5);
  CHECK(guests[1]->got<session::Opened>());
  for (size_t i = 2; i < 5; ++i) {
    CHECK_FALSE(guests[i]->got<session::Opened>());
    CHECK(guests[i]->places() == std::vector<uint32_t>{static_cast<uint32_t>(i - 2)});
  }
  rig.finish(*guests[1]);
  rig.run_for(1ms);
  CHECK(guests[2]->got<session::Opened>());
  CHECK(guests[3]->places() == std::vector<uint32_t>{1, 0});
  CHECK(guests[4]->places() == std::vector<uint32_t>{2, 1});
}

// Else those who wait would give up by their timeout, and a queue that stands would keep them for ever.
TEST_CASE("acceptor__no_room__the_place_comes_again_while_others_get_on_and_only_then") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  Guest& first = rig.arrive_and_run(1);
  Guest& second = rig.arrive(2);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  const Instant told = rig.now;
  CHECK(rig.acceptor->next_deadline() <= told + place_interval);
  rig.run_for(10 * place_interval);
  CHECK(second.places() == std::vector<uint32_t>{0});  // nobody got on
  first.link->post(session::Alive{1, 0});
  rig.run_for(2 * place_interval);
  CHECK(second.places() == std::vector<uint32_t>{0, 0});
  for (uint64_t i = 2; i < 12; ++i) {
    first.link->post(session::Alive{i, 0});
    rig.run_for(place_interval / 5);
  }
  CHECK(second.places().size() >= 3);  // once an interval, however often
  CHECK(second.places().size() <= 5);
}

TEST_CASE("acceptor__once__a_dry_run_is_not_the_transfer_that_is_waited_for") {
  AcceptorRig rig([](AcceptorOptions& options) { options.once = true; });
  Guest& asks = rig.arrive_and_run(1, {session::option_recursive | session::option_dry_run, "d"});
  rig.finish(asks);
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK_FALSE(rig.acceptor->first_end());
  Guest& moves = rig.arrive_and_run(2, {session::option_recursive, "d"});
  rig.finish(moves);
  REQUIRE(rig.run([&] { return rig.acceptor->first_end().has_value(); }));
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::ok);
}
