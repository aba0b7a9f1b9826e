// The end of a session whose result stands.
#include "app/main/farewell.h"

#include <catch2/catch.hpp>

#include "tests/unit/main/dialled_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;
using Stage = Farewell::Stage;

namespace {

// A session whose peer takes nothing more, once it was told so.
struct Met {
  Met() {
    REQUIRE(rig.run_until_moving());
    REQUIRE(rig.run([&] { return link().messages_delivered(); }));
    rig.far->transport->hold_oldest(true);
  }
  [[nodiscard]] session::Link& link() const { return *rig.near_link; }
  void tell() { abort_session(link(), nullptr, {ErrorKind::interrupted, "enough"}); }
  Stage turn(Duration passed, bool with_role = true) { return farewell.turn(link(), with_role ? &role : nullptr, began + passed); }

  DialledRig rig;
  Script script;
  ScriptedRole role{script};
  Farewell farewell;
  const Instant began = rig.now;
};

}  // namespace

TEST_CASE("farewell__a_session_with_a_role__the_role_tells_the_peer") {
  Met met;
  abort_session(met.link(), &met.role, {ErrorKind::interrupted, "enough"});
  REQUIRE(met.script.aborted.size() == 1);
  CHECK(met.script.aborted[0].message == "enough");
  CHECK(met.link().messages_delivered());
  met.tell();
  CHECK_FALSE(met.link().messages_delivered());
}

TEST_CASE("farewell__what_was_told__is_waited_for_until_the_patience_has_run_out") {
  Met met;
  met.tell();
  CHECK_FALSE(met.farewell.has_begun());
  met.farewell.begin(met.began, 3s, true);
  CHECK(met.farewell.has_begun());
  CHECK(met.farewell.next_deadline() == met.began + 3s);
  CHECK(met.turn(2999ms) == Stage::telling_peer);
  CHECK(met.turn(3s) == Stage::over);
}

TEST_CASE("farewell__all_was_delivered_or_nobody_listens__is_over_at_once") {
  Met met;
  met.farewell.begin(met.began, 3s, true);
  CHECK(met.turn(0s) == Stage::over);
  Met left;
  left.tell();
  left.farewell.begin(left.began, 3s, true);
  CHECK(left.turn(0s) == Stage::telling_peer);
  left.link().fail({ErrorKind::network, "gone"});
  REQUIRE(left.rig.run([&] { return left.link().live_lanes().empty(); }));
  CHECK(left.turn(1s) == Stage::over);
}

TEST_CASE("farewell__a_peer_that_agreed_to_the_end__is_not_waited_for") {
  Met met;
  met.tell();
  met.farewell.begin(met.began, 3s, false);
  CHECK(met.turn(0s, false) == Stage::over);
}

// Whoever told the peer in vain does not tell it again when the wait for the role is a longer one.
TEST_CASE("farewell__a_busy_role_and_a_peer_that_takes_nothing__only_the_role_is_waited_for") {
  Met met;
  met.script.idle = false;
  met.tell();
  met.farewell.begin(met.began, 3s, true);
  CHECK(met.turn(1s) == Stage::telling_peer);
  CHECK(met.turn(3s) == Stage::waiting_for_role);
  CHECK(met.farewell.is_late(met.began + 3s));
  met.farewell.wait_until(never);
  CHECK(met.farewell.next_deadline() == never);
  CHECK(met.turn(1h) == Stage::waiting_for_role);
  met.script.idle = true;
  CHECK(met.turn(1h) == Stage::over);
}
