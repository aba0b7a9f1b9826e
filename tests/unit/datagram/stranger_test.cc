// Packets that are not of the connection they name, or come at a time when they may not; and silence at each step.
#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

void message(wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("hello")}); }

TEST_CASE("stranger__packets_with_a_key_from_elsewhere__are_nobodys") {
  Rig rig;
  RawPeer peer(rig, "p");
  RawPeer stranger(rig, "s");
  peer.open();
  stranger.index = peer.index;
  stranger.key = peer.key;
  const uint64_t before = rig.b.counters.get(Counter::datagrams_rejected);
  stranger.frames(message);
  REQUIRE(rig.b.counters.get(Counter::datagrams_rejected) == before + 1);
  // From the right address, in the name of another connection there.
  peer.send(peer.packet({PacketKind::data, packet_version, peer.index, 6, peer.key, 9}, message));
  REQUIRE(rig.b.counters.get(Counter::datagrams_rejected) == before + 2);
  stranger.send(stranger.packet({PacketKind::gone, packet_version, peer.index, 0, 77, 0}, [](wire::Writer&) {}));
  REQUIRE(rig.b.sink.disconnected.empty());
  peer.send(peer.packet({PacketKind::gone, packet_version, peer.index + 1, 0, 77, 0}, [](wire::Writer&) {}));
  peer.send(peer.packet({PacketKind::gone, packet_version, peer.index + 1000, 0, 77, 0}, [](wire::Writer&) {}));
  REQUIRE(rig.b.sink.disconnected.empty());
  REQUIRE(rig.b.sink.messages.empty());
  peer.frames(message);
  REQUIRE(rig.b.sink.messages.size() == 1);
  REQUIRE(stranger.got.empty());  // nobody is told that the key was right
  // What is newer than all before it may be the peer's, which is elsewhere now: moves_test.cc.
  stranger.frames_as(1000, message);
  REQUIRE(stranger.got.size() == 1);
  REQUIRE(stranger.all<PathChallengeFrame>().size() == 1);
  REQUIRE(rig.b.sink.messages.size() == 1);
}

TEST_CASE("peer__speaks_before_it_is_accepted__a_violation_and_its_goodbye_is_heard") {
  for (const bool bye : {false, true}) {
    Rig rig;
    RawPeer peer(rig, "p");
    peer.knock();
    REQUIRE(rig.b.sink.requests.size() == 1);
    const auto reply = open_packet(peer.got.back());
    wire::Reader in(reply->body);
    peer.index = reply->header.source;
    peer.key = std::get<HelloReplyFrame>(decode_frame(in).value()).key;
    peer.frames([&](wire::Writer& out) {
      if (bye) return encode(out, EndNoticeFrame{false, {Status::disconnected, "no \n more"}});
      message(out);
    });
    REQUIRE(rig.b.sink.disconnected.size() == 1);
    REQUIRE(rig.b.sink.disconnected[0].status == (bye ? Status::disconnected : Status::error));
    if (bye) REQUIRE(rig.b.sink.disconnected[0].reason == "no %0A more");
    REQUIRE(rig.b.counters.get(Counter::frames_rejected) == (bye ? 0 : 1));
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::not_found);
    REQUIRE(rig.b.sink.messages.empty());
  }
}

TEST_CASE("peer__rma_on_an_unreliable_connection__a_violation") {
  const Buffer bytes(100);
  const std::vector<std::function<void(wire::Writer&)>> frames{
      [&](wire::Writer& out) {
        encode(out, RmaWriteFrame{1 << 16, 100, 0, {}, bytes});
      },
      [](wire::Writer& out) {
        encode(out, RmaReadFrame{1 << 16, 100, {}});
      },
      [](wire::Writer& out) { encode(out, MessageAckFrame{}); },
      [](wire::Writer& out) {
        encode(out, MailboxHintFrame{0, 1, 1});
      },
  };
  for (const auto& frame : frames) {
    Rig rig;
    RawPeer peer(rig, "p");
    peer.open(ports::Attribute::unreliable);
    peer.frames(message);
    REQUIRE(rig.b.sink.messages.size() == 1);
    peer.frames(frame);
    REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
    REQUIRE(rig.b.sink.disconnected.size() == 1);
  }
}

TEST_CASE("peer__smaller_datagrams_and_windows__are_kept_to") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 100;
  options.rmas_in_flight_max = 100;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  Hello greeting = RawPeer::usual();
  greeting.datagram_bytes = datagram_bytes_min;
  greeting.offer = {ports::max_send_bytes_floor, 3, 2};
  peer.send(peer.hello(greeting));
  greeting.cookie = peer.cookie();
  peer.send(peer.hello(greeting));
  const auto reply = open_packet(peer.got.back());
  wire::Reader in(reply->body);
  const auto frame = std::get<HelloReplyFrame>(decode_frame(in).value());
  REQUIRE(frame.offer.sends_in_flight_max == 100);
  REQUIRE(frame.offer.rmas_in_flight_max == 100);
  REQUIRE(frame.attempt == 1);
  peer.index = reply->header.source;
  peer.key = frame.key;
  const ConnectionId id = rig.b.sink.requests[0];
  REQUIRE(rig.b.transport->accept(id) == Status::success);
  rig.world.wake(rig.b.node);
  peer.settle();
  peer.frames([](wire::Writer& out) { encode_ack(out, RawPeer::ack_to(1), 100); });
  peer.got.clear();
  REQUIRE(rig.b.send(id, Buffer(ports::max_send_bytes_floor + 1), 1) == Status::message_size);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(rig.b.send(id, Buffer(ports::max_send_bytes_floor), i) == Status::success);
  REQUIRE(rig.b.send(id, Buffer(1), 3) == Status::no_buffers);
  Buffer memory(20'000);
  ports::RmaRequest request;
  request.write = true;
  request.source = memory;
  request.remote.handle.kind = ports::HandleKind::region;
  for (uint64_t i = 10; i < 12; ++i) REQUIRE(rig.b.rma(id, request, i) == Status::success);
  REQUIRE(rig.b.rma(id, request, 12) == Status::no_buffers);
  peer.settle();
  REQUIRE(peer.got.size() > 3);
  size_t longest = 0;
  for (const Buffer& datagram : peer.got) longest = std::max(longest, datagram.size());
  REQUIRE(longest <= datagram_bytes_min);
  REQUIRE(longest > datagram_bytes_min / 2);
  REQUIRE(peer.all<RmaWriteMoreFrame>()[0].bytes.size() == chunk_bytes_of(datagram_bytes_min));
}

TEST_CASE("peer__a_message_of_just_the_size_agreed__is_taken") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, Buffer(4000)}); });
  REQUIRE(rig.b.sink.messages.size() == 1);
  peer.frames([](wire::Writer& out) { encode(out, MessageFrame{1, 0, false, Buffer(4001)}); });
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("peer__silent_while_its_request_waits__is_lost_by_the_keepalive") {
  ports::TransportOptions options;
  options.keepalive = 1s;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  Hello greeting = RawPeer::usual();
  peer.send(peer.hello(greeting));
  greeting.cookie = peer.cookie();
  peer.send(peer.hello(greeting));
  REQUIRE(rig.b.sink.requests.size() == 1);
  rig.pass(3800ms);  // a probe each second, three of them
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.pass(400ms);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.sink.disconnected[0].status == Status::timed_out);
  REQUIRE(rig.b.sink.disconnected[0].reason == "the peer does not answer");
}

TEST_CASE("datagram__goodbyes__say_whether_they_are_a_refusal") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.b.transport->disconnect(id);
  rig.world.wake(rig.b.node);
  peer.settle();
  REQUIRE_FALSE(peer.all<EndNoticeFrame>().empty());
  REQUIRE_FALSE(peer.all<EndNoticeFrame>()[0].reject);
  REQUIRE(peer.all<EndNoticeFrame>()[0].notice.status == Status::disconnected);

  Rig other;
  RawPeer violator(other, "p");
  violator.open();
  violator.frames([](wire::Writer& out) { out.u8(99); });
  REQUIRE_FALSE(violator.all<EndNoticeFrame>().empty());
  REQUIRE_FALSE(violator.all<EndNoticeFrame>()[0].reject);

  Rig third;
  RawPeer asker(third, "p");
  Hello greeting = RawPeer::usual();
  asker.send(asker.hello(greeting));
  greeting.cookie = asker.cookie();
  asker.send(asker.hello(greeting));
  asker.got.clear();
  REQUIRE(third.b.transport->reject(third.b.sink.requests.at(0), "no") == Status::success);
  third.world.wake(third.b.node);
  asker.settle();
  REQUIRE_FALSE(asker.all<EndNoticeFrame>().empty());
  REQUIRE(asker.all<EndNoticeFrame>()[0].reject);
  REQUIRE(asker.all<EndNoticeFrame>()[0].notice.status == Status::refused);
  REQUIRE(asker.all<EndNoticeFrame>()[0].notice.reason == "no");
}

TEST_CASE("datagram__keepalive__probes_in_silence_only") {
  ports::TransportOptions options;
  options.keepalive = 1s;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  peer.open();
  for (int i = 0; i < 10; ++i) {  // it says something now and then, and answers nothing
    rig.pass(900ms);
    peer.frames([](wire::Writer& out) { encode(out, PingFrame{}); });
  }
  REQUIRE(peer.all<PingFrame>().empty());
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.pass(2500ms);
  peer.frames([](wire::Writer& out) { encode(out, PingFrame{}); });  // two probes were out: they count no more
  rig.pass(3500ms);
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.pass(1s);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("datagram__a_hint__reaches_who_still_wants_it") {
  Rig rig;
  rig.connect();
  rig.a.transport->hint(rig.at_a, 7, 3);
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return !rig.b.sink.hints.empty(); }));
  REQUIRE(rig.b.sink.hints == std::vector<std::pair<uint64_t, uint64_t>>{{7, 3}});
  rig.b.transport->disconnect(rig.at_b);
  rig.a.transport->hint(rig.at_a, 8, 3);
  rig.world.wake(rig.a.node);
  rig.world.wake(rig.b.node);
  rig.pass(1s);
  REQUIRE(rig.b.sink.hints.size() == 1);
}

// Both sides write, read and talk at once: nobody's share is none.
TEST_CASE("datagram__everything_at_once__messages_reads_and_writes_take_turns") {
  sim::DatagramLinkOptions link;
  link.rate_bytes_per_s = 20'000'000;
  link.queue_bytes = 100'000;
  Rig rig(link);
  rig.connect();
  Buffer source(8'000'000, std::byte{1}), target(source.size()), into(source.size());
  ports::RmaRequest write;
  write.write = true;
  write.source = source;
  write.remote.handle = rig.b.memory.register_region(target, cci::access_read | cci::access_write);
  REQUIRE(rig.a.rma(rig.at_a, write, 1) == Status::success);
  ports::RmaRequest read;
  read.write = false;
  read.destination = into;
  read.remote.handle = rig.a.memory.register_region(Bytes(source));
  REQUIRE(rig.b.rma(rig.at_b, read, 2) == Status::success);  // served by `a`, beside its own write
  rig.pass(100ms);
  const auto part = [](const Buffer& bytes) { return std::count(bytes.begin(), bytes.end(), std::byte{1}); };
  const auto written = part(target), been_read = part(into);
  INFO(written << " written, " << been_read << " read");
  REQUIRE(written > 0);
  REQUIRE(been_read > 0);
  REQUIRE(written < 4 * been_read);
  REQUIRE(been_read < 4 * written);
  const Instant before = rig.world.now();
  REQUIRE(rig.a.send(rig.at_a, Buffer(10), 3) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 1; }));
  REQUIRE(rig.world.now() - before < 100ms);  // not behind the megabytes
}

}  // namespace
}  // namespace ccixfer::datagram::testing
