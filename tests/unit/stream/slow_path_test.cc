// Keepalive where what was sent takes long to arrive, and no answer of the peer comes before it has.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

// A peer by hand to which 16 messages of 8,000 bytes are on their way.
struct Scene {
  Rig rig;
  RawAcceptor peer{rig};
  Scene() {
    const ConnectionId id = peer.dial();
    peer.open();
    for (uint64_t token = 0; token < 16; ++token) REQUIRE(rig.send(rig.a, id, filled(8000, 1), token) == Status::success);
    rig.settle();
    REQUIRE(rig.a.net->waiting_bytes(1) > 100'000);
  }
  [[nodiscard]] bool is_lost() const { return !rig.a.sink.disconnected.empty(); }
};

TEST_CASE("keepalive__a_slow_path_takes_bytes_steadily__the_connection_stays") {
  Scene scene;
  for (int i = 0; i < 60; ++i) {
    scene.peer.read(1000, 1);
    scene.rig.pass(2s);
    REQUIRE_FALSE(scene.is_lost());
  }
  scene.rig.pass(31s);  // it stands still
  CHECK(scene.is_lost());
}

TEST_CASE("keepalive__the_peers_network_takes_all_and_nobody_answers__the_connection_is_lost") {
  Scene scene;
  scene.peer.read();
  for (int i = 0; i < 11; ++i) {
    scene.rig.pass(2s);
    scene.peer.read();  // probes too
  }
  CHECK(scene.is_lost());
}

}  // namespace
}  // namespace ccixfer::stream::testing
