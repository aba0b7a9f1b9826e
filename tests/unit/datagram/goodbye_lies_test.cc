// A peer that was told goodbye and lies on, and operations whose numbers nobody gives.
#include "tests/unit/datagram/scripts.h"
#include "transports/datagram/rma_in.h"

namespace ccixfer::datagram::testing {
namespace {

TEST_CASE("peer__lies_after_the_goodbye__its_place_is_free_at_once") {
  using Body = std::function<void(wire::Writer&)>;
  const Body lie = GENERATE(Body([](wire::Writer& out) { out.u8(99); }), Body([](wire::Writer&) {}),
                            Body([](wire::Writer& out) { encode_ack(out, RawPeer::ack_to(1000), 100); }),
                            Body([](wire::Writer& out) {  // what stands behind it in the packet is not read any more
                              encode_ack(out, RawPeer::ack_to(1000), 100);
                              encode_ack(out, RawPeer::ack_to(1001), 100);
                            }));
  ports::TransportOptions options;
  options.connections_max = 1;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { out.u8(99); });
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(peer.count(PacketKind::gone) == 0);
  const size_t end_notices = peer.all<EndNoticeFrame>().size();
  peer.frames(lie);
  REQUIRE(peer.all<EndNoticeFrame>().size() == end_notices);
  REQUIRE(rig.b.sink.disconnected.size() == 1);  // the application was told
  peer.frames([](wire::Writer& out) { encode(out, PingFrame{}); });
  REQUIRE(peer.count(PacketKind::gone) == 1);
  ports::DialRequest dial;
  dial.uri = "sim-datagram://a:1";
  REQUIRE(rig.b.transport->dial(dial));
}

TEST_CASE("peer__goes_on_after_the_goodbye__nothing_of_it_is_read") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { out.u8(99); });
  REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  // Each would be a violation of a connection that stands, or a message.
  peer.frames([](wire::Writer& out) {
    encode(out, MessageFrame{0, 0, false, Buffer(1)});
    encode(out, MessageFrame{1, 0, false, Buffer(4001)});
    encode(out, AcceptFrame{});
    encode(out, RmaEndFrame{1 << 16, Status::success, true});
  });
  REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  REQUIRE(rig.b.sink.messages.empty());
  REQUIRE(peer.count(PacketKind::gone) == 0);
}

TEST_CASE("rma_in__a_number_of_no_generation__is_a_violation_for_reads_as_for_writes") {
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory(3000);
  const Buffer data(100);
  const bool used = GENERATE(false, true);
  RmaIn in;
  in.open(4, 1000, 1);
  ports::RemoteRef remote;
  remote.handle = target.register_region(memory, cci::access_read | cci::access_write);
  RmaReadFrame read;
  read.total_bytes = 100;
  read.remote = remote;
  if (used) {
    read.operation = 1 << 16 | 2;
    REQUIRE(in.read(read, target));
  }
  read.operation = 2;
  REQUIRE_FALSE(in.read(read, target));
  REQUIRE_FALSE(in.write(RmaWriteFrame{2, 100, 0, remote, data}, target));
  REQUIRE(in.chunk_due() == used);
  in.abandon(target);
}

}  // namespace
}  // namespace ccixfer::datagram::testing
