// The end of a router's planned stop, when what it has to say cannot go out.
#include "tests/unit/routing/passing.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

// It has closed all that it had, and need not look at that again and again.
TEST_CASE("router_drain__its_time_is_over_and_a_peer_takes_nothing__waits_for_that_peer_too") {
  Passing met(true);
  Router& router = *met.node->router;
  router.drain();
  met.world.wake(met.node->node);
  const Instant begun = met.world.now();
  met.world.run_for(drain_timeout - seconds(2));
  met.left.freeze(true);
  for (int i = 0; i < 1500; ++i) {
    met.right.say_plain(MessageKind::keepalive);
    met.world.run_for(milliseconds(1));
  }
  met.world.run_for(milliseconds(600));
  REQUIRE_FALSE(router.drained());
  REQUIRE(met.world.now() > after(begun, drain_timeout));
  CHECK(router.next_deadline() > met.world.now());
  CHECK(met.run([&] { return router.drained(); }, drain_flush_timeout));
}
