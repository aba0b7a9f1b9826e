// Each bound of a hello: the last that is taken and the first that is not; and what is offered of options beyond reason.
#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

// What becomes of a hello whose cookie is right. Empty: it became a request.
std::optional<wire::EndNotice> refusal_of(const std::function<void(Hello&)>& change) {
  Rig rig;
  RawPeer peer(rig, "p");
  Hello greeting = RawPeer::usual();
  change(greeting);
  peer.send(peer.hello(greeting));
  greeting.cookie = peer.cookie();
  peer.got.clear();
  peer.send(peer.hello(greeting));
  if (!rig.b.sink.requests.empty()) {
    REQUIRE(peer.count(PacketKind::refuse) == 0);
    return std::nullopt;
  }
  REQUIRE(peer.count(PacketKind::refuse) == 1);
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
  static Buffer kept;
  kept = peer.got.back();
  wire::Reader in(open_packet(kept)->body);
  return decode_end_notice(in);
}

TEST_CASE("peer__limits_of_a_hello__the_least_that_is_taken_and_one_less") {
  REQUIRE_FALSE(refusal_of([](Hello&) {}));
  REQUIRE_FALSE(refusal_of([](Hello& hello) { hello.offer.max_send_bytes = ports::max_send_bytes_floor; }));
  REQUIRE_FALSE(refusal_of([](Hello& hello) { hello.offer.sends_in_flight_max = hello.offer.rmas_in_flight_max = 1; }));
  REQUIRE_FALSE(refusal_of([](Hello& hello) { hello.datagram_bytes = datagram_bytes_min; }));
  const std::function<void(Hello&)> bad[] = {[](Hello& hello) { hello.offer.max_send_bytes = ports::max_send_bytes_floor - 1; },
                                             [](Hello& hello) { hello.offer.sends_in_flight_max = 0; },
                                             [](Hello& hello) { hello.offer.rmas_in_flight_max = 0; },
                                             [](Hello& hello) { hello.datagram_bytes = datagram_bytes_min - 1; }};
  for (const auto& change : bad) {
    const auto refused = refusal_of(change);
    REQUIRE(refused);
    REQUIRE(refused->status == Status::version);
    REQUIRE(refused->reason == "the hello's limits cannot be used");
  }
}

TEST_CASE("peer__attributes_of_a_hello__all_but_multicast") {
  using ports::Attribute;
  for (const Attribute attribute : {Attribute::reliable_ordered, Attribute::reliable_unordered, Attribute::unreliable}) {
    REQUIRE_FALSE(refusal_of([&](Hello& hello) { hello.attribute = attribute; }));
  }
  for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
    const auto refused = refusal_of([&](Hello& hello) { hello.attribute = attribute; });
    REQUIRE(refused);
    REQUIRE(refused->status == Status::not_implemented);
  }
}

TEST_CASE("peer__a_proven_hello_when_all_places_are_taken__is_put_off_until_one_is_free") {
  ports::TransportOptions options;
  options.connections_max = 1;
  Rig rig({}, options);
  RawPeer first(rig, "p"), second(rig, "q");
  first.open();
  Hello greeting = RawPeer::usual();
  second.send(second.hello(greeting, 78));
  greeting.cookie = second.cookie();
  second.got.clear();
  second.send(second.hello(greeting, 78));
  REQUIRE(rig.b.sink.requests.size() == 1);
  REQUIRE(second.got.size() == 1);
  greeting.cookie = second.cookie();  // another retry
  first.frames([](wire::Writer& out) { encode(out, EndNoticeFrame{false, {Status::disconnected, ""}}); });
  second.send(second.hello(greeting, 78));
  REQUIRE(rig.b.sink.requests.size() == 2);
}

TEST_CASE("peer__a_hello_of_just_the_least_length__is_answered_and_one_without_a_key_is_not") {
  Rig rig;
  RawPeer peer(rig, "p");
  const Buffer least = peer.hello(RawPeer::usual());
  REQUIRE(least.size() == hello_bytes_min);
  peer.send(least);
  REQUIRE(peer.count(PacketKind::retry) == 1);
  peer.got.clear();
  peer.send(peer.hello(RawPeer::usual(), 0));
  REQUIRE(peer.got.empty());
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
}

TEST_CASE("datagram__more_operations_than_numbers__offers_as_many_as_it_can_tell_apart") {
  for (const uint32_t allowed : {1u, operation_slots_max, operation_slots_max + 1, UINT32_MAX}) {
    CAPTURE(allowed);
    ports::TransportOptions options;
    options.rmas_in_flight_max = allowed;
    Rig rig({}, options);
    RawPeer peer(rig, "p");
    Hello greeting = RawPeer::usual();
    peer.send(peer.hello(greeting));
    greeting.cookie = peer.cookie();
    peer.send(peer.hello(greeting));
    const auto replies = peer.all<HelloReplyFrame>();
    REQUIRE_FALSE(replies.empty());
    REQUIRE(replies.back().offer.rmas_in_flight_max == std::min(allowed, operation_slots_max));
  }
}

TEST_CASE("datagram__keepalive_off_or_for_ever__nobody_is_asked_and_nobody_is_lost") {
  ports::TransportOptions options;
  options.keepalive = GENERATE(Duration{0}, forever);
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  peer.open();
  rig.world.at(after(rig.world.now(), 1000s), [] {});
  rig.pass(1000s);
  peer.settle();
  REQUIRE(peer.all<PingFrame>().empty());
  REQUIRE(rig.b.sink.disconnected.empty());
}

}  // namespace
}  // namespace ccixfer::datagram::testing
