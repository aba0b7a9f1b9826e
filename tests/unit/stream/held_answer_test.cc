// An acknowledgement waits a turn for the application's answer, but nothing that has begun waits with it.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

TEST_CASE("engine__a_message_comes_while_half_of_one_is_out__the_rest_goes_with_room") {
  Rig rig;
  rig.connect();
  rig.settle();
  rig.hub.capacity = 5000;
  const Buffer large = filled(8000, 1), small = filled(10, 2);
  const std::deque<std::byte>& on_its_way = rig.hub.links.back().pipes[1].bytes;
  REQUIRE(rig.send(rig.b, rig.at_b, large, 1) == Status::success);
  rig.b.transport->turn(rig.now);
  REQUIRE(on_its_way.size() == rig.hub.capacity);
  REQUIRE(rig.send(rig.a, rig.at_a, small, 2) == Status::success);
  rig.a.transport->turn(rig.now);
  REQUIRE(on_its_way.empty());
  REQUIRE(rig.a.sink.messages.empty());
  rig.b.transport->turn(rig.now);
  REQUIRE(rig.b.sink.messages.size() == 1);
  rig.a.transport->turn(rig.now);
  REQUIRE(rig.a.sink.messages.size() == 1);
  CHECK(rig.a.sink.messages[0] == large);
  CHECK(rig.a.status_of(2) == Status::success);
}

}  // namespace
}  // namespace ccixfer::stream::testing
