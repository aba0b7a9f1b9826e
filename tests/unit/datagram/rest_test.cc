// A connection that was quiet for a while rests, and then goes on where it was: both ends, or only one of them.
#include "tests/unit/datagram/rig.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram::testing {
namespace {

using ccixfer::testing::OwnTrust;

constexpr Duration long_enough = 3 * rest_after;

TEST_CASE("rest__after_each_pause__messages_rma_and_hints_go_on_where_they_were") {
  const bool is_secured = GENERATE(false, true);
  const auto attribute = GENERATE(ports::Attribute::reliable_ordered, ports::Attribute::reliable_unordered);
  sim::DatagramLinkOptions link;
  link.loss_chance = GENERATE(0.0, 0.2);
  link.path_bytes = GENERATE(0u, 1400u);
  const auto trust = [&] { return is_secured ? std::make_shared<OwnTrust>() : nullptr; };
  Rig rig(link, {}, 1, reliability::Congestion::new_reno, trust(), trust());
  rig.connect(attribute);
  Buffer target(20'000), back(20'000);
  for (uint64_t round = 0; round < 4; ++round) {
    CAPTURE(round);
    const Buffer said = filled(1000, round), source = filled(target.size(), round + 100);
    ports::RmaRequest write;
    write.remote.handle = rig.b.memory.register_region(target, cci::access_write | cci::access_read);
    write.source = source;
    ports::RmaRequest read;
    read.remote.handle = write.remote.handle;
    read.write = false;
    read.fence = true;
    read.destination = back;
    REQUIRE(rig.a.send(rig.at_a, said, 10 * round) == Status::success);
    REQUIRE(rig.b.send(rig.at_b, said, 10 * round) == Status::success);
    REQUIRE(rig.a.rma(rig.at_a, write, 10 * round + 1) == Status::success);
    REQUIRE(rig.a.rma(rig.at_a, read, 10 * round + 2) == Status::success);
    rig.a.transport->hint(rig.at_a, 5, round);
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] {
      return rig.a.status_of(10 * round + 2) && rig.a.status_of(10 * round) && rig.b.status_of(10 * round) &&
             rig.b.sink.hints.size() == round + 1;
    }));
    for (const uint64_t token : {0u, 1u, 2u}) CHECK(rig.a.status_of(10 * round + token) == Status::success);
    CHECK(rig.b.status_of(10 * round) == Status::success);
    CHECK(rig.a.sink.messages.size() == round + 1);
    CHECK(rig.b.sink.messages.back() == said);
    CHECK((target == source));
    CHECK((back == source));
    rig.pass(long_enough);
  }
  CHECK(rig.b.sink.messages.size() == 4);
  CHECK(rig.b.sink.hints.size() == 4);
  CHECK(rig.a.sink.disconnected.size() + rig.b.sink.disconnected.size() == 0);
  CHECK(rig.a.counters.get(Counter::datagrams_rejected) + rig.b.counters.get(Counter::datagrams_rejected) == 0);
}

TEST_CASE("rest__what_comes_late__is_known_to_be_late") {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  peer.open();
  Buffer memory(100);
  ports::RemoteRef remote;
  remote.handle = rig.b.memory.register_region(memory, cci::access_write);
  const Buffer first = filled(100, 1), second = filled(100, 2);
  const auto write = [&](uint64_t generation, const Buffer& bytes) {
    peer.frames([&](wire::Writer& out) { encode(out, RmaWriteFrame{generation << 16 | 3, 100, 0, remote, bytes}); });
  };
  const auto all_acknowledged = [&] {
    rig.pass(10ms);
    peer.settle();
    REQUIRE_FALSE(peer.got.empty());
    const uint64_t largest = open_packet(peer.got.back())->header.number;
    peer.frames([&](wire::Writer& out) { encode_ack(out, RawPeer::ack_to(largest), 100); });
  };
  write(7, first);
  peer.frames([](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, {}}); });
  all_acknowledged();
  CHECK((memory == first));
  REQUIRE(rig.b.sink.messages.size() == 1);
  rig.pass(long_enough);
  peer.got.clear();
  SECTION("another copy of a packet") {
    const uint64_t duplicates = rig.b.counters.get(Counter::datagrams_duplicate);
    peer.frames_as(1, [](wire::Writer& out) { encode(out, MessageFrame{1, 0, false, {}}); });
    CHECK(rig.b.counters.get(Counter::datagrams_duplicate) == duplicates + 1);
    CHECK(rig.b.sink.messages.size() == 1);
  }
  SECTION("a message that was delivered") {
    peer.frames([](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, {}}); });
    CHECK(rig.b.sink.messages.size() == 1);
    peer.frames([](wire::Writer& out) { encode(out, MessageFrame{1, 0, false, {}}); });
    CHECK(rig.b.sink.messages.size() == 2);
  }
  SECTION("the chunk of a write that has ended, of the newest in its slot or of one before") {
    write(GENERATE(uint64_t{7}, uint64_t{6}), second);
    CHECK((memory == first));
    write(8, second);
    CHECK((memory == second));
    CHECK(peer.all<RmaEndFrame>().size() == 1);
  }
  CHECK(rig.b.sink.disconnected.empty());
}

TEST_CASE("rest__the_peers_answer_to_an_operation_of_before__is_late_and_no_lie") {
  RmaOut out;
  out.go_on(5);
  out.open(4, 1000);
  OutMessages messages;
  const auto ended = [](uint64_t, ports::OperationResult) { FAIL("nothing was asked for"); };
  CHECK(out.end({5 << 16 | 2, Status::success, true}, messages, forever, ended));
  CHECK_FALSE(out.end({6 << 16 | 2, Status::success, true}, messages, forever, ended));
  const Buffer bytes(10);
  ports::RmaRequest request;
  request.source = bytes;
  out.push(request, 1, 0);
  out.start(0);
  CHECK(out.generation_most() == 6);
}

TEST_CASE("rest__packets_that_nobody_can_have_sent__do_not_keep_a_connection_awake") {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  Rig rig({}, options, 1, reliability::Congestion::new_reno, std::make_shared<OwnTrust>(), std::make_shared<OwnTrust>());
  std::vector<Buffer> seen;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from == "a") seen.push_back(bytes);
    return true;
  });
  rig.connect();
  rig.pass(long_enough);
  const uint64_t visits = rig.b.transport->visits();
  Buffer changed = seen.back();
  REQUIRE(open_packet(changed)->header.kind == PacketKind::sealed);
  for (int i = 0; i < 20; ++i) {
    changed.back() ^= std::byte{1};
    rig.fabric.forge(rig.a.net->address(), rig.b.net->address(), changed);
    rig.pass(1ms);
  }
  CHECK(rig.b.transport->next_deadline() == never);
  CHECK(rig.b.transport->visits() > visits);
  rig.fabric.stand_between(nullptr);
}

}  // namespace
}  // namespace ccixfer::datagram::testing
