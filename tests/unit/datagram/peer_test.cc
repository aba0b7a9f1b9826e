// What a peer can do to a transport: every refusal is counted, and others are served.
#include "tests/unit/datagram/rig.h"
#include "transports/datagram/chunks.h"
#include "transports/datagram/cookie_jar.h"

namespace ccixfer::datagram::testing {
namespace {

TEST_CASE("siphash__the_authors_vector") {
  Buffer input(15);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);
  REQUIRE(siphash_2_4(0x0706050403020100, 0x0f0e0d0c0b0a0908, input) == 0xa129ca6149be45e5);
}

TEST_CASE("cookie__of_another_address_index_key_or_time__does_not_hold") {
  sim::SimEntropy entropy(1);
  const CookieJar jar(entropy);
  const CookieJar other(entropy);
  const Address from{1, 2, 3, 4};
  const Instant now{1000s};
  const Cookie cookie = jar.bake(from, 5, 6, now);
  REQUIRE(jar.holds(cookie, from, 5, 6, now));
  REQUIRE(jar.holds(cookie, from, 5, 6, now + cookie_life));
  REQUIRE_FALSE(jar.holds(cookie, from, 5, 6, now + cookie_life + 1ns));
  REQUIRE_FALSE(jar.holds(cookie, from, 5, 6, now - 1ns));
  REQUIRE_FALSE(jar.holds(cookie, {1, 2, 3, 5}, 5, 6, now));
  REQUIRE_FALSE(jar.holds(cookie, {1, 2, 4, 4}, 5, 6, now));
  REQUIRE_FALSE(jar.holds(cookie, {1, 3, 3, 4}, 5, 6, now));
  REQUIRE_FALSE(jar.holds(cookie, {2, 2, 3, 4}, 5, 6, now));
  REQUIRE_FALSE(jar.holds(cookie, from, 6, 6, now));
  REQUIRE_FALSE(jar.holds(cookie, from, 5, 7, now));
  REQUIRE_FALSE(jar.holds({cookie.issued_at_ns + 1, cookie.proof}, from, 5, 6, now + 1s));
  REQUIRE_FALSE(other.holds(cookie, from, 5, 6, now));
}

TEST_CASE("peer__hellos_without_a_cookie__answered_by_less_and_nothing_is_remembered") {
  ports::TransportOptions options;
  options.connections_max = 4;  // a remembered one would show
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  for (uint64_t key = 1; key <= 100; ++key) {
    const Buffer hello = peer.hello(RawPeer::usual(), key);
    peer.send(hello);
    REQUIRE(peer.got.back().size() < hello.size());
  }
  REQUIRE(peer.count(PacketKind::retry) == 100);
  REQUIRE(rig.b.sink.requests.empty());
  rig.connect();  // others are served
}

TEST_CASE("peer__forged_cookie__another_retry_and_no_request") {
  Rig rig;
  RawPeer peer(rig, "p");
  Hello hello = RawPeer::usual();
  peer.send(peer.hello(hello, 7));
  hello.cookie = peer.cookie();
  hello.cookie->proof ^= 1;
  peer.send(peer.hello(hello, 7));
  REQUIRE(peer.count(PacketKind::retry) == 2);
  REQUIRE(rig.b.sink.requests.empty());
  hello.cookie->proof ^= 1;
  peer.send(peer.hello(hello, 8));  // of another dialler
  REQUIRE(rig.b.sink.requests.empty());
  peer.send(peer.hello(hello, 7));
  REQUIRE(rig.b.sink.requests.size() == 1);
}

TEST_CASE("peer__a_hello_that_comes_twice_or_after_the_end__opens_nothing_more") {
  Rig rig;
  RawPeer peer(rig, "p");
  const Hello hello = peer.knock();
  peer.send(peer.hello(hello));
  REQUIRE(rig.b.sink.requests.size() == 1);
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "no") == Status::success);
  rig.world.wake(rig.b.node);
  rig.pass(5s);  // the reject is never acknowledged
  peer.send(peer.hello(hello));
  REQUIRE(rig.b.sink.requests.size() == 1);
}

TEST_CASE("peer__more_requests_than_may_wait__the_others_are_put_off_with_a_retry") {
  ports::TransportOptions options;
  options.pending_requests_max = 3;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  for (uint64_t key = 1; key <= 10; ++key) {
    Hello hello = RawPeer::usual();
    peer.send(peer.hello(hello, key));
    hello.cookie = peer.cookie();
    peer.got.clear();
    peer.send(peer.hello(hello, key));
    REQUIRE((key <= 3 || peer.count(PacketKind::retry) == 1));
  }
  REQUIRE(rig.b.sink.requests.size() == 3);
}

TEST_CASE("peer__short_hello_bad_limits_other_version_multicast__no_answer_or_a_reason") {
  Rig rig;
  RawPeer peer(rig, "p");
  const PacketHeader header{PacketKind::hello, packet_version, 0, 5, 77, 0};
  peer.send(peer.packet(header, [](wire::Writer& out) { encode(out, RawPeer::usual()); }));
  REQUIRE(peer.got.empty());
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
  PacketHeader newer = header;
  newer.version = packet_version + 1;
  peer.send(peer.packet(
      newer, [](wire::Writer&) {}, hello_bytes_min));
  REQUIRE(peer.count(PacketKind::refuse) == 1);
  Hello hello = RawPeer::usual();
  peer.send(peer.hello(hello));
  const Cookie cookie = peer.cookie();
  hello.cookie = cookie;
  hello.offer.max_send_bytes = ports::max_send_bytes_floor - 1;
  peer.send(peer.hello(hello));
  hello = RawPeer::usual();
  hello.cookie = cookie;
  hello.datagram_bytes = datagram_bytes_min - 1;
  peer.send(peer.hello(hello));
  hello = RawPeer::usual();
  hello.cookie = cookie;
  for (const auto attribute : {ports::Attribute::multicast_send, ports::Attribute::multicast_receive}) {
    hello.attribute = attribute;
    peer.send(peer.hello(hello));
  }
  REQUIRE(peer.count(PacketKind::refuse) == 5);
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 6);
  REQUIRE(rig.b.sink.requests.empty());
}

TEST_CASE("peer__every_bit_of_a_datagram_flipped__dropped_and_counted") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  const Buffer good = peer.packet({PacketKind::data, packet_version, peer.index, 5, peer.key, peer.number}, [](wire::Writer& out) {
    encode(out, MessageFrame{0, 0, false, as_bytes("hello")});
  });
  const uint64_t before = rig.b.counters.get(Counter::datagrams_rejected);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Buffer bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    peer.send(bad);
  }
  for (size_t size = 0; size < good.size(); ++size) peer.send(Bytes(good).first(size));
  REQUIRE(rig.b.counters.get(Counter::datagrams_rejected) == before + good.size() * 9);
  REQUIRE(rig.b.sink.messages.empty());
  peer.send(good);
  REQUIRE(rig.b.sink.messages.size() == 1);
  peer.send(good);  // the same packet again
  REQUIRE(rig.b.sink.messages.size() == 1);
  REQUIRE(rig.b.counters.get(Counter::datagrams_duplicate) == 1);
}

TEST_CASE("peer__acks_what_was_never_sent__counted_and_cut_off_with_a_reason") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { encode_ack(out, RawPeer::ack_to(1000), 100); });
  REQUIRE(rig.b.counters.get(Counter::acks_rejected) == 1);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.sink.disconnected[0].status == Status::error);
  const auto byes = peer.all<EndNoticeFrame>();
  REQUIRE_FALSE(byes.empty());
  REQUIRE(byes[0].notice.status == Status::error);
}

// What it has not got, too: all below the newest.
TEST_CASE("peer__acknowledges_whatever_is_sent__names_a_number_that_was_left_out_and_is_cut_off") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  uint64_t messages = 0;
  for (; rig.b.sink.disconnected.empty() && messages < 100'000; ++messages) {
    if (rig.b.send(id, Buffer(10), messages) != Status::success) break;
    peer.settle();
    if (peer.got.empty()) continue;
    const uint64_t newest = open_packet(peer.got.back())->header.number;
    peer.got.clear();
    peer.frames([&](wire::Writer& out) {
      encode_ack(out, RawPeer::ack_to(newest), 100);
      MessageAckFrame told;
      told.next = messages + 1;
      encode(out, told);
    });
  }
  CHECK(messages > 100);
  CHECK(rig.b.counters.get(Counter::acks_rejected) == 1);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("peer__frames_that_break_the_protocol__counted_and_cut_off") {
  using Body = std::function<void(wire::Writer&)>;
  const ports::RemoteRef nowhere;
  const Buffer bytes(100);
  const std::vector<std::pair<const char*, Body>> cases = {
      {"empty packet", [](wire::Writer&) {}},
      {"unknown kind", [](wire::Writer& out) { out.u8(99); }},
      {"half a frame", [](wire::Writer& out) { out.u32(7); }},
      {"message beyond the window",
       [](wire::Writer& out) {
         encode(out, MessageFrame{16, 0, false, {}});
       }},
      {"flight without a refusal",
       [](wire::Writer& out) {
         encode(out, MessageFrame{0, 1, false, {}});
       }},
      {"message too long",
       [](wire::Writer& out) {
         encode(out, MessageFrame{0, 0, false, Buffer(4001)});
       }},
      {"ack of a message not sent",
       [](wire::Writer& out) {
         MessageAckFrame ack;
         ack.next = 1;
         encode(out, ack);
       }},
      {"refusal of a message not sent",
       [](wire::Writer& out) {
         MessageAckFrame ack;
         ack.status = Status::receiver_not_ready;
         encode(out, ack);
       }},
      {"bits on an ordered connection",
       [](wire::Writer& out) {
         MessageAckFrame ack;
         ack.words = 1;
         encode(out, ack);
       }},
      {"write beyond the slots",
       [&](wire::Writer& out) {
         encode(out, RmaWriteFrame{1 << 16 | 8, 100, 0, nowhere, bytes});
       }},
      {"write of generation 0",
       [&](wire::Writer& out) {
         encode(out, RmaWriteFrame{0, 100, 0, nowhere, bytes});
       }},
      {"chunk of a wrong length",
       [&](wire::Writer& out) {
         encode(out, RmaWriteFrame{1 << 16, 200, 0, nowhere, bytes});
       }},
      {"chunk at a wrong place",
       [&](wire::Writer& out) {
         encode(out, RmaWriteFrame{1 << 16, 200, 100, nowhere, bytes});
       }},
      {"more of a write beyond the slots",
       [&](wire::Writer& out) {
         encode(out, RmaWriteMoreFrame{1 << 16 | 8, 0, bytes});
       }},
      {"read beyond the slots",
       [&](wire::Writer& out) {
         encode(out, RmaReadFrame{1 << 16 | 8, 100, nowhere});
       }},
      {"data not asked for",
       [&](wire::Writer& out) {
         encode(out, RmaReadDataFrame{1 << 16, 0, bytes});
       }},
      {"end of nothing",
       [](wire::Writer& out) {
         encode(out, RmaEndFrame{1 << 16, Status::success, true});
       }},
      {"hello_reply to an acceptor",
       [](wire::Writer& out) {
         encode(out, HelloReplyFrame{1, 2, {4000, 1, 1}, 8192});
       }},
      {"accept to an acceptor", [](wire::Writer& out) { encode(out, AcceptFrame{}); }},
  };
  for (const auto& [name, body] : cases) {
    CAPTURE(name);
    Rig rig;
    RawPeer peer(rig, "p");
    peer.open();
    peer.frames(body);
    REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
    REQUIRE(rig.b.sink.disconnected.size() == 1);
    REQUIRE(rig.b.sink.disconnected[0].status == Status::error);
    REQUIRE_FALSE(peer.all<EndNoticeFrame>().empty());
  }
}

TEST_CASE("peer__packets_of_an_unknown_connection__are_answered_gone_and_gone_is_not") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.index = 3;
  peer.key = 1234;
  peer.frames([](wire::Writer& out) { encode(out, PingFrame{}); });
  REQUIRE(peer.count(PacketKind::gone) == 1);
  REQUIRE(open_packet(peer.got.back())->header.key == 1234);
  REQUIRE(open_packet(peer.got.back())->header.destination == 5);
  peer.open();
  peer.send(peer.packet({PacketKind::gone, packet_version, peer.index, 0, 999, 0}, [](wire::Writer&) {}));
  REQUIRE(peer.got.empty());
  REQUIRE(rig.b.sink.disconnected.empty());  // a guess of the key
  peer.send(peer.packet({PacketKind::gone, packet_version, peer.index, 0, 77, 0}, [](wire::Writer&) {}));
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("peer__never_acknowledges__what_we_hold_stays_bounded_and_the_connection_ends") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  uint64_t sent = 0;
  while (rig.b.send(id, Buffer(1000), sent) == Status::success) ++sent;
  REQUIRE(sent == 16);
  REQUIRE(rig.run([&] { return !rig.b.sink.disconnected.empty(); }, 45s));
  REQUIRE(rig.b.sink.disconnected[0].status == Status::timed_out);
  REQUIRE(rig.b.sink.completions.size() == sent);
}

TEST_CASE("peer__sends_what_is_behind_and_never_the_first__holds_no_more_than_its_window") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 1; i < 16; ++i) peer.frames([&](wire::Writer& out) { encode(out, MessageFrame{i, 0, false, Buffer(4000)}); });
  }
  REQUIRE(rig.b.transport->held_bytes() == 15 * 4000);
  peer.frames([&](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, Buffer(1)}); });
  REQUIRE(rig.b.sink.messages.size() == 16);
  REQUIRE(rig.b.transport->held_bytes() == 0);
}

TEST_CASE("peer__others_fill_the_room_for_later_messages__what_is_due_is_taken_from_every_packet") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 512;
  Rig rig({}, options);
  Hello greeting = RawPeer::usual();
  greeting.offer = {4096, 512, 8};
  const Buffer later(4096);
  std::vector<std::unique_ptr<RawPeer>> others;
  for (size_t i = 0; i < 16; ++i) {
    others.push_back(std::make_unique<RawPeer>(rig, "h" + std::to_string(i)));
    RawPeer& other = *others.back();
    other.open_by(greeting);
    // The last one is beyond its share.
    for (uint64_t k = 1; k < 258; ++k) other.frames([&](wire::Writer& out) { encode(out, MessageFrame{k, 0, false, later}); });
    REQUIRE(rig.b.transport->held_bytes() == (i + 1) * held_bytes_of_one_max);
  }
  REQUIRE(rig.b.transport->held_bytes() == held_bytes_max);

  RawPeer peer(rig, "x");
  peer.open();
  const Buffer bytes(100);
  const auto say = [&](const std::vector<uint64_t>& sequences) {
    const uint64_t number = peer.number;
    peer.frames([&](wire::Writer& out) {
      for (const uint64_t sequence : sequences) encode(out, MessageFrame{sequence, 0, false, bytes});
    });
    return number;
  };
  const auto is_acknowledged = [&](uint64_t number) {
    for (const reliability::Ack& ack : peer.all<reliability::Ack>()) {
      for (size_t range = 0; range < ack.count; ++range) {
        if (ack.list[range].first <= number && number <= ack.list[range].last) return true;
      }
    }
    return false;
  };
  const uint64_t in_order = say({0, 1});
  CHECK(rig.b.sink.messages.size() == 2);
  CHECK(is_acknowledged(in_order));
  const uint64_t with_later = say({2, 9});
  CHECK(rig.b.sink.messages.size() == 3);
  const uint64_t behind_later = say({9, 3});
  CHECK(rig.b.sink.messages.size() == 4);
  rig.pass(50ms);
  peer.settle();
  CHECK(peer.all<MessageAckFrame>().back().next == 4);
  CHECK_FALSE(is_acknowledged(with_later));
  CHECK_FALSE(is_acknowledged(behind_later));
  CHECK(is_acknowledged(say({4, 5, 6, 7, 8, 9})));
  CHECK(rig.b.sink.messages.size() == 10);
  CHECK(rig.b.sink.disconnected.empty());
  CHECK(rig.b.transport->held_bytes() == held_bytes_max);
}

// Its number stays fresh, so anybody who saw such a packet may send it again.
TEST_CASE("peer__copies_of_a_packet_that_found_no_room__do_not_keep_it_alive") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 512;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  Hello greeting = RawPeer::usual();
  greeting.offer = {4096, 512, 8};
  peer.open_by(greeting);
  const Buffer later(4096);
  for (uint64_t k = 1; k < 257; ++k) peer.frames([&](wire::Writer& out) { encode(out, MessageFrame{k, 0, false, later}); });
  REQUIRE(rig.b.transport->held_bytes() == held_bytes_of_one_max);
  const uint64_t number = peer.number;
  for (int i = 0; i < 120 && rig.b.sink.disconnected.empty(); ++i) {
    peer.frames_as(number, [&](wire::Writer& out) { encode(out, MessageFrame{300, 0, false, later}); });
    rig.pass(1s);
  }
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected[0].status == Status::timed_out);
}

TEST_CASE("peer__chunks_in_any_order_twice_and_late__each_is_placed_once") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  const uint32_t chunk_bytes = chunk_bytes_of(8192);
  const uint64_t total = 3ull * chunk_bytes + 7;
  Buffer target(total);
  ports::RemoteRef remote;
  remote.handle = rig.b.memory.register_region(target, cci::access_write);
  const auto chunk = [&](uint64_t operation, uint64_t i, uint8_t value) {
    const Buffer data(Grid{total, chunk_bytes}.length({i, 0}), std::byte{value});
    peer.frames_short([&](wire::Writer& out) {
      if (i == 3)
        encode(out, RmaWriteFrame{operation, total, i * chunk_bytes, remote, data});
      else
        encode(out, RmaWriteMoreFrame{operation, i * chunk_bytes, data});
    });
  };
  constexpr uint64_t first = 1 << 16 | 2, second = 2 << 16 | 2;
  const auto describe = [&](uint64_t operation) {
    peer.frames([&](wire::Writer& out) { encode(out, RmaWriteFrame{operation, total, 0, remote, {}}); });
  };
  const auto acknowledged = [&] {
    uint64_t numbers = 0;
    for (const reliability::Ack& ack : peer.all<reliability::Ack>()) numbers = std::max(numbers, ack.largest());
    return numbers;
  };
  describe(1 << 16 | 1);
  peer.settle();
  const uint64_t before = acknowledged();
  chunk(first, 1, 8);  // of a write that was not described: not taken, and not acknowledged
  peer.settle();
  REQUIRE(acknowledged() == before);
  chunk(first, 3, 1);
  chunk(first, 1, 1);
  chunk(first, 1, 9);  // a duplicate: not placed again
  chunk(first, 0, 1);
  REQUIRE(peer.all<RmaEndFrame>().empty());
  chunk(first, 2, 1);
  REQUIRE(std::count(target.begin(), target.end(), std::byte{1}) == static_cast<ptrdiff_t>(total));
  REQUIRE(peer.all<RmaEndFrame>().size() == 1);
  REQUIRE(peer.all<RmaEndFrame>()[0].ending.status == Status::success);
  chunk(first, 1, 9);  // after the end
  describe(second);
  chunk(second, 0, 2);
  chunk(first, 1, 9);  // of the slot's earlier operation
  REQUIRE(target[chunk_bytes] == std::byte{1});
  REQUIRE(target[0] == std::byte{2});
  describe(3 << 16 | 2);  // another one before that has ended
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

// What is lost goes out again, and the descriptions of it in any order before its chunks.
TEST_CASE("peer__writes_that_share_a_packet__are_taken_in_whatever_order_they_are_described") {
  for (const bool is_reversed : {false, true}) {
    Rig rig;
    RawPeer peer(rig, "p");
    peer.open();
    constexpr uint64_t first = 1 << 16, second = 1 << 16 | 1, total = 2000;
    Buffer target(2 * total);
    ports::RemoteRef remote;
    remote.handle = rig.b.memory.register_region(target, cci::access_write);
    const Buffer data(part_bytes, std::byte{7});
    peer.frames_short([&](wire::Writer& out) {
      for (const uint64_t operation : is_reversed ? std::array{second, first} : std::array{first, second}) {
        remote.offset_bytes = operation == first ? 0 : total;
        encode(out, RmaWriteFrame{operation, total, 0, remote, {}, part_bytes});
      }
      for (const uint64_t operation : {first, second}) {
        encode(out, RmaWriteMoreFrame{operation, 0, data});
        encode(out, RmaWriteMoreFrame{operation, part_bytes, Bytes(data).first(total - part_bytes)});
      }
    });
    CHECK(std::count(target.begin(), target.end(), std::byte{7}) == 2 * total);
    CHECK(peer.all<RmaEndFrame>().size() == 2);
  }
}

TEST_CASE("peer__a_region_withdrawn_between_chunks__no_byte_more_and_the_end_says_so") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  const uint32_t chunk_bytes = chunk_bytes_of(8192);
  auto target = std::make_unique<Buffer>(2 * chunk_bytes);
  ports::RemoteRef remote;
  remote.handle = rig.b.memory.register_region(*target, cci::access_write);
  const Buffer data(chunk_bytes, std::byte{1});
  peer.frames([&](wire::Writer& out) { encode(out, RmaWriteFrame{1 << 16, 2 * chunk_bytes, 0, remote, {}}); });
  peer.frames_short([&](wire::Writer& out) { encode(out, RmaWriteMoreFrame{1 << 16, 0, data}); });
  REQUIRE(rig.b.memory.deregister_region(remote.handle) == Status::success);
  target.reset();  // the sanitizer watches
  peer.frames_short([&](wire::Writer& out) { encode(out, RmaWriteMoreFrame{1 << 16, chunk_bytes, data}); });
  const auto ends = peer.all<RmaEndFrame>();
  REQUIRE_FALSE(ends.empty());
  REQUIRE(ends[0].ending.status == Status::rma_handle);
  REQUIRE(rig.b.sink.disconnected.empty());
}

}  // namespace
}  // namespace ccixfer::datagram::testing
