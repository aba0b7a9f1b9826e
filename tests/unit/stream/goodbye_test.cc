// What still goes out of a connection that ends for what its peer did.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using wire::Kind;

TEST_CASE("engine__violation_with_messages_half_out__only_the_begun_one_is_finished") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.hub.capacity = 5000;
  const Buffer message = filled(8000, 1);
  for (uint64_t token = 1; token <= 3; ++token) REQUIRE(rig.send(rig.b, id, message, token) == Status::success);
  rig.settle();
  peer.frame([](wire::Writer& w) { wire::encode(w, wire::MessageAck{7, Status::success}); });
  REQUIRE(rig.b.sink.completions.size() == 3);
  for (const Completion& end : rig.b.sink.completions) CHECK(end.status == Status::disconnected);
  for (int i = 0; i < 10; ++i) {
    rig.settle();
    peer.read();
  }
  CHECK(peer.kinds() == std::vector<Kind>{Kind::message, Kind::bye});
}

}  // namespace
}  // namespace ccixfer::stream::testing
