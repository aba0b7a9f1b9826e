// The short form of packets and of chunks: who uses it, what it leaves out, and what is refused.
#include "tests/unit/datagram/rig.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram::testing {
namespace {

using ccixfer::testing::OwnTrust;

template <typename Kind>
bool has(const Packet& packet) {
  wire::Reader in(packet.body);
  while (in.remaining() > 0) {
    const auto frame = decode_frame(in);
    REQUIRE(frame);
    if (std::holds_alternative<Kind>(*frame)) return true;
  }
  return false;
}

TEST_CASE("short_packets__the_lower_half_of_a_number__means_the_nearest_one") {
  constexpr uint64_t range = uint64_t{1} << 32, half = range / 2;
  sim::Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t next = random.next() >> random.next() % 64;
    const uint64_t away = random.next() % half;
    const bool is_above = random.next() % 2 == 0;
    if (is_above ? next > ~uint64_t{0} - away : next < away) continue;
    const uint64_t number = is_above ? next + away : next - away;
    CAPTURE(next, number);
    REQUIRE(whole_number(static_cast<uint32_t>(number), next) == number);
  }
  CHECK(whole_number(0, 0) == 0);
  CHECK(whole_number(~uint32_t{0}, 0) == range - 1);  // there is none below
  CHECK(whole_number(5, range - 1) == range + 5);
  CHECK(whole_number(~uint32_t{0}, range + 5) == range - 1);
  CHECK(whole_number(0, ~uint64_t{0}) == ~uint64_t{0} - (range - 1));  // and none above
}

TEST_CASE("short_packets__bulk_data__go_in_them_and_what_must_be_answered_does_not") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  const Buffer source = filled(100'000, 1);
  ports::RmaRequest write;
  write.remote.handle.kind = ports::HandleKind::region;
  write.source = source;
  REQUIRE(rig.b.rma(id, write, 1) == Status::success);
  REQUIRE(rig.b.send(id, filled(10, 2), 2) == Status::success);
  peer.settle();
  size_t with_chunks = 0;
  for (const Buffer& datagram : peer.got) {
    const auto packet = open_packet(datagram);
    REQUIRE(packet);
    if (!has<RmaWriteMoreFrame>(*packet)) continue;
    ++with_chunks;
    CHECK(packet->header.is_short);
    CHECK(packet->header.key == 77);
    CHECK(packet->header.destination == 5);
  }
  REQUIRE(with_chunks > 0);
  // The peer says nothing, as one that was restarted: of what comes after a silence something asks whether it knows the connection.
  peer.got.clear();
  rig.pass(3s);
  peer.settle();
  CHECK(std::any_of(peer.got.begin(), peer.got.end(),
                    [](const Buffer& datagram) { return !open_packet(datagram)->header.is_short; }));
  // And so does a goodbye, though chunks are due.
  peer.got.clear();
  rig.b.transport.reset();
  peer.settle();
  REQUIRE(peer.all<EndNoticeFrame>().size() > 0);
  for (const Buffer& datagram : peer.got) CHECK_FALSE(open_packet(datagram)->header.is_short);
}

// A full chunk does not fit behind an acknowledgement: that goes alone, and the probe comes behind it.
TEST_CASE("short_packets__a_silence_while_an_ack_is_due__the_probe_carries_content_behind_it") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  const Buffer source = filled(1'000'000, 1);
  ports::RmaRequest write;
  write.remote.handle.kind = ports::HandleKind::region;
  write.source = source;
  REQUIRE(rig.b.rma(id, write, 1) == Status::success);
  peer.settle();
  peer.frames([](wire::Writer& out) { encode_ack(out, RawPeer::ack_to(2), 100); });  // only full chunks are under way
  peer.got.clear();
  const Instant silence = rig.b.transport->next_deadline();
  rig.pass(silence - rig.world.now() - 200us);
  REQUIRE(peer.got.empty());
  peer.frames([](wire::Writer& out) { encode(out, PingFrame{}); });
  REQUIRE(rig.world.now() > silence);
  REQUIRE(peer.all<reliability::Ack>().size() == 1);
  CHECK(peer.all<RmaWriteFrame>().size() + peer.all<RmaWriteMoreFrame>().size() == 1);
}

TEST_CASE("short_packets__for_whom_nobody_is_here__are_counted_and_not_answered") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  const auto message = [](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, Buffer(10)}); };
  for (const uint32_t index : {peer.index, peer.index + 1, ~uint32_t{0}}) {
    const PacketHeader header{PacketKind::data, packet_version, index, 0, peer.key ^ 1, 9, true};
    const uint64_t before = rig.b.counters.get(Counter::datagrams_rejected);
    peer.send(peer.packet(header, message));
    CHECK(rig.b.counters.get(Counter::datagrams_rejected) == before + 1);
    CHECK(peer.got.empty());
    PacketHeader whole = header;
    whole.is_short = false;
    whole.source = 5;
    peer.send(peer.packet(whole, message));
    CHECK(peer.count(PacketKind::gone) == 1);
    peer.got.clear();
  }
  CHECK(rig.b.sink.messages.empty());
}

TEST_CASE("short_packets__damaged_anywhere__are_dropped") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  const Buffer good =
      peer.packet({PacketKind::data, packet_version, peer.index, 0, peer.key, peer.number, true}, [](wire::Writer& out) {
        encode(out, MessageFrame{0, 0, false, Buffer(10)});
      });
  for (size_t at = 0; at < good.size(); ++at) {
    Buffer bad = good;
    bad[at] ^= std::byte{4};
    peer.send(bad);
  }
  for (size_t size = 0; size < good.size(); ++size) {
    if (size > 0) peer.send(Bytes(good).first(size));
  }
  REQUIRE(rig.b.sink.messages.empty());
  CHECK(peer.got.empty());
  peer.send(good);
  CHECK(rig.b.sink.messages.size() == 1);
  peer.send(good);
  CHECK(rig.b.sink.messages.size() == 1);
}

TEST_CASE("short_packets__numbers_beyond_32_bits__go_on_where_they_were") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  constexpr uint64_t range = uint64_t{1} << 32;
  uint64_t said = 0;
  const auto say = [&](wire::Writer& out) { encode(out, MessageFrame{said++, 0, false, Buffer(10)}); };
  for (const uint64_t number : {range / 2, range - 2}) peer.frames_as(number, say);  // ever further, as nobody does
  for (const uint64_t number : {range - 1, range, range + 1, range + 5}) peer.frames_short_as(number, say);
  peer.frames_as(range + 6, say);
  REQUIRE(rig.b.sink.messages.size() == said);
  uint64_t largest = 0;
  for (const reliability::Ack& ack : peer.all<reliability::Ack>()) largest = std::max(largest, ack.largest());
  CHECK(largest == range + 6);
  peer.frames_short_as(range + 1, say);  // twice
  peer.frames_short_as(range - 1, say);
  CHECK(rig.b.counters.get(Counter::datagrams_duplicate) == 2);
  CHECK(rig.b.sink.messages.size() == 7);
}

// What a short packet leaves out is told by the reply to a hello, which is never short.
TEST_CASE("short_packets__before_the_peer_is_known__are_dropped") {
  Rig rig;
  bool is_changed = false;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    const auto packet = open_packet(bytes);
    if (from != "b" || !packet || packet->header.kind != PacketKind::data || is_changed) return true;
    wire::Reader in(packet->body);
    const auto frame = decode_frame(in);
    if (!frame || !std::holds_alternative<HelloReplyFrame>(*frame)) return true;
    is_changed = true;
    PacketHeader header = packet->header;
    header.is_short = true;
    const Buffer body(packet->body.begin(), packet->body.end());
    bytes.clear();
    wire::Writer out(bytes);
    begin_packet(out, header);
    out.bytes(body);
    end_packet(out);
    return true;
  });
  rig.connect();
  CHECK(is_changed);
  CHECK(rig.a.counters.get(Counter::datagrams_rejected) == 1);
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  CHECK(rig.a.status_of(1) == Status::success);
}

// Somebody on the way who changes what it likes in sealed packets of the short form: nothing of it opens.
TEST_CASE("short_packets__sealed_and_changed__do_not_open_and_come_again") {
  Rig rig({}, {}, 1, reliability::Congestion::new_reno, std::make_shared<OwnTrust>(), std::make_shared<OwnTrust>());
  rig.connect();
  sim::Random random(5);
  uint64_t changed = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    const auto packet = open_packet(bytes);
    if (from != "a" || !packet || !packet->header.is_short || random.next() % 3 != 0) return true;
    REQUIRE(packet->header.kind == PacketKind::sealed);
    bytes[1 + random.next() % (bytes.size() - 1)] ^= static_cast<std::byte>(1u << random.next() % 8);
    ++changed;
    return true;
  });
  const Buffer source = filled(400'000, 9);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  write.source = source;
  REQUIRE(rig.a.rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  CHECK(rig.a.status_of(1) == Status::success);
  CHECK((target == source));
  CHECK(changed > 10);
  CHECK(rig.b.counters.get(Counter::datagrams_rejected) == changed);
  CHECK(rig.b.sink.disconnected.empty());
}

// A ping alone says nothing to a peer that does not know yet whether it is accepted.
TEST_CASE("short_packets__before_a_connection_is_open__probes_say_again_what_was_lost") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.knock();
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests.back()) == Status::success);
  rig.world.wake(rig.b.node);
  peer.settle();
  peer.got.clear();
  rig.pass(10s);
  peer.settle();
  REQUIRE(peer.got.size() >= 5);
  size_t said = 0, pings = 0;
  for (const Buffer& datagram : peer.got) {
    const Packet packet = open_packet(datagram).value();
    said += has<HelloReplyFrame>(packet) || has<AcceptFrame>(packet) ? 1u : 0u;
    pings += has<PingFrame>(packet) ? 1u : 0u;
  }
  CHECK(said > 2 * pings);
}

// A dialler learns from the reply to its hello what the short form leaves out.
TEST_CASE("short_packets__the_first_reply_is_lost_and_chunks_are_due__it_comes_again_in_the_long_form") {
  Rig rig;
  bool is_lost = false;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    const auto packet = open_packet(bytes);
    if (is_lost || from != "b" || !packet || packet->header.kind != PacketKind::data) return true;
    is_lost = true;
    return false;
  });
  ports::DialRequest dial;
  const std::string uri = rig.b.transport->uri();
  dial.uri = uri;
  REQUIRE(rig.a.transport->dial(dial));
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return rig.b.sink.requests.size() == 1; }));
  const ConnectionId at_b = rig.b.sink.requests.back();
  REQUIRE(rig.b.transport->accept(at_b) == Status::success);
  const Buffer source = filled(1'000'000, 4);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.a.memory.register_region(target, cci::access_write);
  write.source = source;
  REQUIRE(rig.b.rma(at_b, write, 1) == Status::success);
  rig.world.wake(rig.b.node);
  REQUIRE(rig.run([&] { return rig.b.status_of(1).has_value(); }));
  CHECK(is_lost);
  CHECK(rig.b.status_of(1) == Status::success);
  CHECK((target == source));
}

// ---- Chunks.

TEST_CASE("short_chunks__each_form__is_taken_for_what_needs_it_and_for_nothing_else") {
  const Buffer data(10, std::byte{3});
  const auto taken = [&](uint8_t kind, uint64_t operation, uint64_t offset_bytes, bool is_short) {
    Buffer bytes;
    wire::Writer out(bytes);
    out.u8(kind);
    if (is_short) {
      out.u32(static_cast<uint32_t>(operation));
      out.u32(static_cast<uint32_t>(offset_bytes));
    } else {
      out.u64(operation);
      out.u64(offset_bytes);
    }
    out.bytes16(data);
    wire::Reader in(bytes);
    return decode_frame(in).has_value();
  };
  constexpr uint64_t most = UINT32_MAX;
  for (const auto& [short_kind, long_kind] : {std::pair{FrameKind::rma_write_more_short, FrameKind::rma_write_more},
                                              std::pair{FrameKind::rma_read_data_short, FrameKind::rma_read_data}}) {
    const auto as_short = static_cast<uint8_t>(short_kind), as_long = static_cast<uint8_t>(long_kind);
    CHECK(taken(as_short, most, most, true));
    CHECK_FALSE(taken(as_long, most, most, false));
    CHECK(taken(as_long, most + 1, 0, false));
    CHECK(taken(as_long, 1 << 16, most + 1, false));
  }
}

TEST_CASE("short_chunks__an_operation_with_a_long_name__has_chunks_that_fit_all_the_same") {
  constexpr uint32_t longest = 1432;
  constexpr uint64_t generations = uint64_t{1} << 16;  // of which the last one's names have more than 32 bits
  for (const bool is_write : {true, false}) {
    for (const uint64_t generation_before : {uint64_t{0}, generations - 2, generations - 1}) {
      CAPTURE(is_write, generation_before);
      const bool is_long = generation_before + 1 >= generations;
      RmaOut out;
      RmaIn in;
      out.open(4, longest);
      in.open(4, longest, 1);
      out.go_on(generation_before);
      sim::SimEntropy entropy{1};
      Counters counters;
      cci::MemoryTable memory{entropy, counters};
      Buffer here = filled(9'900, 1), there(9'900);
      if (!is_write) std::swap(here, there);
      ports::RmaRequest request;
      request.write = is_write;
      request.remote.handle = memory.register_region(there, cci::access_read | cci::access_write);
      request.source = here;
      request.destination = here;
      out.push(request, 1, 0);
      out.start(0);
      OutMessages messages;
      std::optional<ports::OperationResult> ended;
      Buffer bytes;
      if (!is_write) {
        wire::Writer writer(bytes);
        static_cast<void>(out.take_request(writer, 0));
        wire::Reader reader(bytes);
        REQUIRE(in.read(std::get<RmaReadFrame>(decode_frame(reader).value()), memory));
      }
      size_t chunks = 0;
      while (is_write ? out.chunk_due() : in.chunk_due()) {
        bytes.clear();
        wire::Writer writer(bytes);
        const size_t size = is_write ? out.next_chunk_frame_bytes() : in.next_chunk_frame_bytes();
        static_cast<void>(is_write ? out.take_chunk(writer, 0) : in.take_chunk(writer, 0, memory).value());
        REQUIRE(bytes.size() == size);
        REQUIRE(size <= longest + chunk_frame_bytes_short);
        wire::Reader reader(bytes);
        const Frame frame = decode_frame(reader).value();
        if (const auto* described = std::get_if<RmaWriteFrame>(&frame)) {
          REQUIRE(described->chunk_bytes == (is_long ? longest - 8 : 0));
          REQUIRE(in.write(*described, memory));
        } else if (is_write) {
          const auto& more = std::get<RmaWriteMoreFrame>(frame);
          if (++chunks == 1) REQUIRE(more.bytes.size() == (is_long ? longest - 8 : longest));
          REQUIRE(in.write_more(more, memory));
        } else {
          const auto& placed = std::get<RmaReadDataFrame>(frame);
          if (++chunks == 1) REQUIRE(placed.bytes.size() == (is_long ? longest - 8 : longest));
          REQUIRE(out.data(placed, messages, forever, [&](uint64_t, ports::OperationResult ending) { ended = ending; }));
        }
      }
      CHECK(chunks == 7);
      CHECK((here == there));
      CHECK((is_write ? in.reply_due() : ended && ended->good()));
      if (!is_write) in.abandon(memory);
    }
  }
}

}  // namespace
}  // namespace ccixfer::datagram::testing
