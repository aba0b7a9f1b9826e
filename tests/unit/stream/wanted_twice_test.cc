// Memory that is wanted back from the network a second time, and offers beyond what a number of an operation can say.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("lent_memory__wanted_a_second_time__has_all_of_its_time_again") {
  Rig rig;
  rig.a.net->lends_memory = rig.b.net->lends_memory = true;
  rig.connect();
  rig.settle();
  const Buffer memory = filled(300'000, 3);
  Buffer local(memory.size());
  const auto lend_and_want = [&](uint64_t token) {
    const ports::Handle region = rig.b.memory.register_region(Bytes(memory));
    rig.b.net->acknowledged = rig.hub.links.back().pipes[1].passed;
    ports::RmaRequest request;
    request.write = false;
    request.remote.handle = region;
    request.destination = local;
    REQUIRE(rig.a.transport->rma(rig.at_a, request, token) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.status_of(token) == Status::success; }));
    REQUIRE(rig.b.memory.deregister_region(region) == Status::busy);
    return region;
  };
  const auto looked_at_for = [&](Duration time, const std::function<bool()>& until) {
    const Instant begun = rig.now;
    while (rig.now - begun < time && !until()) {
      rig.b.transport->turn(rig.now);
      rig.now += 100ms;
    }
    return rig.now - begun;
  };
  const ports::Handle first = lend_and_want(1);
  static_cast<void>(looked_at_for(lent_stall_max / 2, [] { return false; }));
  REQUIRE(rig.b.memory.in_use(first));
  rig.b.net->acknowledged = UINT64_MAX;
  static_cast<void>(looked_at_for(2 * lent_look_interval, [&] { return !rig.b.memory.in_use(first); }));
  REQUIRE_FALSE(rig.b.memory.in_use(first));
  rig.pass(2 * lent_wait_max);

  const ports::Handle second = lend_and_want(2);
  const Duration took = looked_at_for(2 * lent_wait_max, [&] { return !rig.b.memory.in_use(second); });
  CHECK(took >= lent_stall_max);
  CHECK(took <= lent_stall_max + 300ms);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected[0].status == Status::timed_out);
}

// A peer that took the word for it would number operations so that two have one number.
TEST_CASE("engine__more_operations_than_numbers__offers_as_many_as_it_can_tell_apart") {
  for (const uint32_t allowed : {1u, wire::operation_slots_max, wire::operation_slots_max + 1, UINT32_MAX}) {
    INFO(allowed);
    ports::TransportOptions options;
    options.rmas_in_flight_max = allowed;
    const uint32_t expected = std::min(allowed, wire::operation_slots_max);
    Rig rig(options);
    RawPeer peer(rig, "p");
    peer.hello(RawPeer::usual());
    const auto prefix = wire::decode_prefix(Bytes(peer.got));
    REQUIRE(prefix);
    const auto reply = wire::decode_hello_reply(Bytes(peer.got).first(prefix->header_bytes));
    REQUIRE(reply);
    CHECK(reply->offer.rmas_in_flight_max == expected);
    RawAcceptor acceptor(rig);
    static_cast<void>(acceptor.dial());
    const auto greeting = wire::decode_prefix(Bytes(acceptor.got));
    REQUIRE(greeting);
    const auto hello = wire::decode_hello(Bytes(acceptor.got).first(greeting->header_bytes));
    REQUIRE(hello);
    CHECK(hello->offer.rmas_in_flight_max == expected);
  }
}

}  // namespace
}  // namespace ccixfer::stream::testing
