// A peer that breaks the protocol, or whose card does: it loses its connection, and nobody else notices.
#include "tests/unit/rdma/rig.h"

namespace ccixfer::rdma::testing {
namespace {

ports::RemoteRef at(const ports::Handle& handle) {
  ports::RemoteRef remote;
  remote.handle = handle;
  return remote;
}

// It has ended with a violation, which is counted, and others are served.
void require_cut_off(Rig& rig, RawPeer& peer) {
  peer.settle(5ms);
  REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.sink.disconnected.back().status == Status::error);
  rig.b.sink.requests.clear();
  rig.b.sink.accepted.clear();
  rig.connect();
  REQUIRE(rig.a.send(rig.at_a, filled(100, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1) == Status::success; }));
}

TEST_CASE("peer__breaks_the_protocol__loses_its_connection_and_no_other") {
  using Body = std::function<void(wire::Writer&)>;
  const ports::RemoteRef nowhere = at({ports::HandleKind::region, 0, 0, 1, 7, 8, 9});
  const Body nonsense = GENERATE_COPY(
      Body([](wire::Writer& out) { out.u8(99); }),                                              // no such kind
      Body([](wire::Writer& out) { out.u8(0xa3); }),                                            // no such record
      Body([](wire::Writer& out) { out.u8(0xa0), out.zeros(20); }),                             // a record that is cut off
      Body([](wire::Writer& out) { out.u8(0xa2), out.u8(1), out.zeros(progress_bytes - 2); }),  // not zero where it has to be
      Body([](wire::Writer& out) {
        encode(out, Progress{1 << 16, 5});
      }),  // of no operation of ours
      Body([](wire::Writer& out) {
        wire::encode(out, wire::Message{5, 0, 0}, 0);
      }),  // out of order
      Body([](wire::Writer& out) {
        wire::encode(out, wire::Message{0, 0, 0}, 100);
      }),  // longer than the packet
      Body([](wire::Writer& out) {
        wire::encode(out, wire::Message{0, 0, 1}, 1), out.u8(5);
      }),  // damaged
      Body([](wire::Writer& out) {
        wire::encode(out, wire::MessageAck{3, Status::success});
      }),
      Body([](wire::Writer& out) { wire::encode_empty(out, wire::Kind::connect_accept); }), Body([](wire::Writer& out) {
        wire::encode_write_ack(out, {1 << 16, Status::success, false});
      }),
      Body([](wire::Writer& out) {
        wire::encode_read_end(out, {1 << 16, Status::success, false});
      }),
      Body([](wire::Writer& out) {
        wire::encode(out, wire::RmaReadData{1 << 16, 8, 0}, 8), out.u64(0);
      }),
      Body([nowhere](wire::Writer& out) {
        wire::encode(out, wire::RmaWrite{1 << 16, 8, 4, nowhere, false}, 4), out.u32(0);
      }),
      Body([nowhere](wire::Writer& out) {
        wire::encode(out, wire::RmaRead{1 << 16, inline_bytes_max + 1, nowhere});
      }),
      Body([nowhere](wire::Writer& out) {
        encode(out, Announced{1 << 16 | 8, 8, nowhere, 1, 2}, true);
      }),  // beyond the slots
      Body([nowhere](wire::Writer& out) {
        encode(out, Announced{1 << 16, 8, nowhere, UINT64_MAX - 7, 2}, false);
      }),  // round the end
      Body([nowhere](wire::Writer& out) {
        encode(out, Announced{1 << 16, 0, nowhere, 1, 2}, true);
      }));
  Rig rig;
  RawPeer peer(rig);
  peer.open();
  peer.packet(0, nonsense);
  require_cut_off(rig, peer);
}

TEST_CASE("peer__lies_about_credit__loses_its_connection") {
  Rig rig;
  RawPeer peer(rig);
  peer.open();
  SECTION("a packet with nothing in it") {
    peer.packet(0, [](wire::Writer&) {});
  }
  SECTION("more than anybody gives") {
    peer.packet(credits_held_max, [](wire::Writer&) {});
  }
  SECTION("more packets than it was allowed") {
    // Nobody looks at them meanwhile, so nobody gives more credit.
    rig.b.frozen = true;
    const Buffer bytes = [] {
      Buffer packet;
      wire::Writer out(packet);
      encode(out, PacketHeader{0});
      wire::encode_empty(out, wire::Kind::keepalive_ack);
      return packet;
    }();
    const Bytes part(bytes);
    for (int i = 0; i < 100; ++i) {
      while (!peer.net.post_send(peer.pair, {&part, 1})) peer.settle();
    }
    peer.settle();
    rig.b.frozen = false;
    rig.world.wake(rig.b.node);
  }
  SECTION("a header that is cut off") { peer.raw(Buffer(3)); }
  require_cut_off(rig, peer);
}

TEST_CASE("peer__announces_memory_that_its_card_does_not_know__is_cut_off_and_the_target_is_whole") {
  const bool write = GENERATE(true, false);
  Rig rig;
  Buffer region = filled(1u << 20, 1);
  const Buffer before = region;
  const ports::Handle handle = rig.b.memory.register_region(region, cci::access_read | cci::access_write);
  Buffer mine(1u << 20);
  RawPeer peer(rig);
  Registration known;
  REQUIRE(peer.net.register_memory(mine, {.local_write = true, .remote_read = true, .remote_write = true}, known) ==
          Status::success);
  Registration other_right;
  Buffer elsewhere(1u << 20);
  REQUIRE(peer.net.register_memory(elsewhere, {.local_write = true, .remote_read = !write, .remote_write = write}, other_right) ==
          Status::success);
  peer.open();
  Announced announced{1 << 16, 1u << 20, at(handle), reinterpret_cast<uintptr_t>(mine.data()), known.remote_key};
  SECTION("a wrong key") { announced.key ^= 0x10; }
  SECTION("before it") { --announced.address; }
  SECTION("without the right") {
    announced.key = other_right.remote_key;
    announced.address = reinterpret_cast<uintptr_t>(elsewhere.data());
  }
  peer.packet(0, [&](wire::Writer& out) { encode(out, announced, write); });
  peer.settle(20ms);
  REQUIRE(rig.fabric.totals().refused == 1);
  REQUIRE(peer.is_closed);
  REQUIRE((region == before));
  require_cut_off(rig, peer);
  REQUIRE(rig.b.memory.deregister_region(handle) == Status::success);  // no ticket of it is held
}

TEST_CASE("peer__doubles_an_operation__is_cut_off_and_its_memory_is_left_alone") {
  Rig rig;
  Buffer region(8u << 20);
  const ports::Handle handle = rig.b.memory.register_region(region, cci::access_write);
  Buffer mine = filled(region.size(), 1);
  RawPeer peer(rig);
  Registration known;
  REQUIRE(peer.net.register_memory(mine, {.remote_read = true}, known) == Status::success);
  peer.open();
  const Announced announced{1 << 16, region.size(), at(handle), reinterpret_cast<uintptr_t>(mine.data()), known.remote_key};
  peer.packet(0, [&](wire::Writer& out) {
    encode(out, announced, true);
    encode(out, announced, true);
  });
  require_cut_off(rig, peer);
  const Buffer then = region;
  rig.pass(50ms);
  REQUIRE((region == then));
}

// A goodbye would leave its card time to use memory that is its owner's again.
TEST_CASE("peer__breaks_the_protocol_while_its_card_may_use_our_memory__is_shut_out_without_a_goodbye") {
  Rig rig;
  RawPeer peer(rig);
  const ConnectionId id = peer.open();
  Buffer mine = filled(1u << 20, 1);
  const ports::Handle local = rig.b.memory.register_region(mine, 0);
  const bool write = GENERATE(true, false);
  REQUIRE(rig.b.rma(write, id, local, mine, {ports::HandleKind::region, 0, 0, 1, 7, 8, 9}, 1) == Status::success);
  peer.settle();
  peer.packet(0, [](wire::Writer& out) { out.u8(99); });
  REQUIRE(rig.b.status_of(1) == Status::disconnected);
  peer.settle();
  REQUIRE(peer.is_closed);
  REQUIRE(peer.frames(wire::Kind::bye).empty());
}

TEST_CASE("peer__a_read_by_hand__small_in_a_packet_and_large_by_the_card") {
  Rig rig;
  Buffer region = filled(3u << 20, 1);
  const ports::Handle handle = rig.b.memory.register_region(Bytes(region));
  Buffer mine(region.size());
  RawPeer peer(rig);
  Registration known;
  REQUIRE(peer.net.register_memory(mine, {.local_write = true, .remote_write = true}, known) == Status::success);
  peer.open();
  peer.packet(0, [&](wire::Writer& out) { wire::encode(out, wire::RmaRead{1 << 16, 100, at(handle)}); });
  const auto data = peer.frames(wire::Kind::rma_read_data);
  REQUIRE(data.size() == 1);
  REQUIRE(std::equal(region.begin(), region.begin() + 100, data[0].end() - 100));
  REQUIRE(peer.answer(wire::Kind::rma_read_end) == Status::success);
  peer.got.clear();
  peer.packet(0, [&](wire::Writer& out) {
    encode(out, Announced{2 << 16, region.size(), at(handle), reinterpret_cast<uintptr_t>(mine.data()), known.remote_key}, false);
  });
  peer.settle(20ms);
  REQUIRE(peer.answer(wire::Kind::rma_read_end) == Status::success);
  REQUIRE((mine == region));
}

// The peer is told the key of all the memory that the buffer is in. It gets no right by it that the put does not need.
TEST_CASE("peer__was_told_the_key_of_a_put__writes_nothing_into_the_pool_of_the_source") {
  Rig rig;
  constexpr size_t buffer_bytes = 1u << 20;
  Buffer pool = filled(2 * buffer_bytes, 1);
  const Buffer before = pool;
  const ports::Handle local = rig.b.memory.register_region(pool, cci::access_read_parts | cci::access_puts);
  Buffer mine = filled(buffer_bytes, 2);
  RawPeer peer(rig);
  Registration known;
  REQUIRE(peer.net.register_memory(mine, {.local_write = true}, known) == Status::success);
  const ConnectionId id = peer.open();
  ports::RmaRequest put;
  put.write = true;
  put.remote.handle = {ports::HandleKind::region, 0, 0, 1, 7, 8, 9};
  put.local.region = local;
  REQUIRE(rig.b.memory.local_key(rig.b.target, local, put.local.key) == Status::success);
  put.source = Bytes(pool).first(buffer_bytes);
  REQUIRE(rig.b.transport->rma(id, put, 1) == Status::success);
  rig.world.wake(rig.b.node);
  peer.settle();
  const std::optional<Announced> announced = peer.announced();
  REQUIRE(announced);
  const bool other_buffer = GENERATE(true, false);
  Work work{1, mine, known.local_key, announced->address, announced->key};
  REQUIRE(peer.net.post_read(peer.pair, work));
  peer.settle(20ms);
  REQUIRE(peer.works == std::vector{WorkStatus::success});
  REQUIRE(std::equal(mine.begin(), mine.end(), pool.begin()));
  std::fill(mine.begin(), mine.end(), std::byte{3});
  if (other_buffer) work.remote_address += buffer_bytes;
  REQUIRE(peer.net.post_write(peer.pair, work));
  peer.settle(20ms);
  REQUIRE(peer.works == std::vector{WorkStatus::success, WorkStatus::remote_access});
  REQUIRE((pool == before));
}

TEST_CASE("peer__says_nothing__is_dropped_when_others_want_in") {
  ports::TransportOptions options;
  options.pending_requests_max = 2;
  Rig rig({}, options);
  RawPeer one(rig, "p1");
  RawPeer two(rig, "p2");
  const Instant before = rig.world.now();
  rig.connect();
  REQUIRE(rig.world.now() - before < 1s);
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) > 0);
}

TEST_CASE("peer__does_not_greet__is_counted") {
  Rig rig;
  RawPeer peer(rig);
  peer.packet(0, [](wire::Writer& out) { wire::encode_empty(out, wire::Kind::keepalive); });
  peer.settle();
  REQUIRE(peer.is_closed);
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
}

}  // namespace
}  // namespace ccixfer::rdma::testing
