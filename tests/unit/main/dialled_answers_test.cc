// What a dialled transfer makes of answers: of the person at the terminal who was asked about the peer, and of the peer itself.
#include <catch2/catch.hpp>

#include "tests/unit/main/dialled_rig.h"

namespace ccixfer::program::test {
namespace {

using namespace std::chrono_literals;

// The loop stood still until the answer came.
TEST_CASE("dialled__a_person_was_asked__the_time_until_the_answer_is_not_the_peers") {
  uint64_t answers = 0;
  const auto jump = [](DialledRig& rig, Duration by) {
    rig.turn();  // in which the person is asked
    rig.now += by;
    rig.turn();
  };
  {
    DialledRig rig([&](DialPlan& plan) { plan.answers = [&answers] { return answers; }; });
    rig.net.dial_status = [](std::string_view) { return Status::unreachable; };
    rig.run_to(rig.began + 15s);
    ++answers;
    jump(rig, 100s);
    CHECK(rig.transfer->next_deadline() > rig.now);
    rig.run_to(rig.began + 134s);
    CHECK_FALSE(rig.transfer->ended());
    REQUIRE(rig.run_to_the_end());
    CHECK(rig.passed() < 137s);
  }
  DialledRig rig([&](DialPlan& plan) { plan.answers = [&answers] { return answers; }; });
  REQUIRE(rig.run_until_moving());
  rig.run_to(rig.began + 15s);
  ++answers;
  jump(rig, 100s);
  CHECK(rig.transfer->stalled(rig.now) < 1s);
  CHECK_FALSE(rig.transfer->ended());
}

TEST_CASE("dialled__the_process_was_stopped__that_time_is_not_the_peers") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.run_to(rig.began + 15s);
  rig.now += 1h;
  rig.transfer->stood_still();
  rig.turn();
  CHECK(rig.transfer->stalled(rig.now) < 1s);
  CHECK_FALSE(rig.transfer->ended());
}

// As through a router: the refusal and the end of the connection come in one turn.
TEST_CASE("dialled__a_peer_refuses_and_hangs_up_at_once__its_reason_counts") {
  DialledRig rig;
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  rig.post(session::Abort{ErrorKind::not_authorised, "not there"});
  rig.far->hub->turn(rig.now);
  rig.acceptor->link.reset();
  rig.far->hub->turn(rig.now);
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::not_authorised);
  CHECK(rig.transfer->result().message.find("not there") != std::string::npos);
  CHECK(rig.retries().empty());
}

}  // namespace
}  // namespace ccixfer::program::test
