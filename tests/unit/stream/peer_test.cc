// A peer that breaks the protocol: rejected, counted, closed with a reason; the transport and its other connections go on.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;
using wire::Kind;
using wire::Writer;

TEST_CASE("peer__garbage_before_hello__counted_and_closed_without_an_answer") {
  Rig rig;
  RawPeer peer(rig, "p");
  SECTION("text") { peer.write(bytes_of("GET / HTTP/1.1\r\n\r\n")); }
  SECTION("a frame that is not a hello") {
    peer.frame([](Writer& w) { wire::encode_empty(w, Kind::keepalive); });
  }
  SECTION("a hello with a damaged check") {
    Buffer out;
    Writer writer(out);
    wire::encode(writer, RawPeer::usual());
    out.back() ^= std::byte{1};
    peer.write(out);
  }
  SECTION("another magic") {
    wire::Hello hello = RawPeer::usual();
    hello.magic ^= 1;
    peer.hello(hello);
  }
  REQUIRE(peer.closed);
  REQUIRE(peer.got.empty());
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
  REQUIRE(rig.b.sink.requests.empty());
  rig.connect();
}

TEST_CASE("peer__hello_that_cannot_be__refused_with_a_reply") {
  Rig rig;
  RawPeer peer(rig, "p");
  wire::Hello hello = RawPeer::usual();
  const Buffer mandatory = {std::byte{9}, std::byte{0x80}, std::byte{0}, std::byte{0}};
  Status expected = Status::version;
  SECTION("a newer version") { hello.version = wire::version + 1; }
  SECTION("an older version") { hello.version = wire::version - 1; }
  SECTION("tiny messages") { hello.offer.max_send_bytes = 100; }
  SECTION("no window") { hello.offer.sends_in_flight_max = 0; }
  SECTION("unknown mandatory option") { hello.options = mandatory; }
  SECTION("multicast") {
    hello.attribute = ports::Attribute::multicast_send;
    expected = Status::not_implemented;
  }
  peer.hello(hello);
  REQUIRE(peer.kinds() == std::vector{Kind::hello_reply});
  const auto reply = wire::decode_hello_reply(peer.got);
  REQUIRE(reply);
  REQUIRE(reply->status == expected);
  if (hello.version != wire::version) {
    REQUIRE(reply->reason == "this end speaks version " + std::to_string(wire::version) + " of the stream protocol");
  }
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
  REQUIRE(rig.b.sink.requests.empty());
  rig.pass(3s);
  peer.read();
  REQUIRE(peer.closed);  // it does not wait for ever for our end
}

TEST_CASE("peer__a_byte_a_second__the_handshake_timeout_ends_it") {
  ports::TransportOptions options;
  options.handshake_timeout = 10s;
  Rig rig(options);
  RawPeer peer(rig, "p");
  Buffer out;
  Writer writer(out);
  wire::encode(writer, RawPeer::usual());
  size_t written = 0;
  while (!peer.closed && written < out.size()) {
    peer.write({out[written++]});
    rig.pass(1s);
    peer.read();
  }
  REQUIRE(peer.closed);
  REQUIRE(written <= 11);
  REQUIRE(rig.b.counters.get(Counter::hello_rejected) == 1);
}

TEST_CASE("peer__silent_connections_up_to_the_bound__accepting_pauses_and_resumes") {
  ports::TransportOptions options;
  options.pending_requests_max = 3;
  Rig rig(options);
  std::vector<std::unique_ptr<RawPeer>> silent;
  silent.reserve(5);
  for (int i = 0; i < 5; ++i) silent.push_back(std::make_unique<RawPeer>(rig, "p" + std::to_string(i)));
  rig.settle();
  REQUIRE(rig.b.net->accept_paused);
  rig.pass(25s);  // they are thrown out
  REQUIRE_FALSE(rig.b.net->accept_paused);
  rig.connect();
}

TEST_CASE("peer__no_connect_ack__accept_ends_timed_out") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.hello(RawPeer::usual());
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests.at(0)) == Status::success);
  rig.settle();
  for (int i = 0; i < 12 && rig.b.sink.accepted.empty(); ++i) {
    rig.pass(1s);
    peer.frame([](Writer& w) { wire::encode_empty(w, Kind::keepalive); });
  }
  REQUIRE(rig.b.sink.accepted.size() == 1);
  REQUIRE(rig.b.sink.accepted[0].status == Status::timed_out);
}

// Each of these must end the connection with a bye, one count, and one event above.
TEST_CASE("peer__violations_on_an_open_connection__bye_count_and_event") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  Buffer memory(1000, std::byte{5});
  const ports::Handle handle = rig.b.memory.register_region(memory, 3);
  ports::RemoteRef ref;
  ref.handle = handle;
  const auto write = [&](uint32_t operation, uint64_t total, uint64_t offset, size_t size) {
    peer.frame(
        [&](Writer& w) {
          wire::encode(w, wire::RmaWrite{operation, total, offset, ref, size == 0}, static_cast<uint32_t>(size));
        },
        filled(size, 1));
  };
  const auto message = [&](uint64_t number) {
    const Buffer payload = filled(10, 1);
    peer.frame([&](Writer& w) { wire::encode(w, wire::Message{number, 0, wire::payload_check_of(payload)}, 10); }, payload);
  };
  SECTION("ack of a message never sent") {
    peer.frame([](Writer& w) { wire::encode(w, wire::MessageAck{1, Status::success}); });
  }
  SECTION("refusal of a message never sent") {
    peer.frame([](Writer& w) { wire::encode(w, wire::MessageAck{0, Status::receiver_not_ready}); });
  }
  SECTION("a message that acknowledges what was never sent") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 1, wire::payload_check_of({})}, 0); });
    REQUIRE(rig.b.sink.messages.empty());
  }
  SECTION("a message from the future") { message(1); }
  SECTION("a message twice") {
    message(0);
    REQUIRE(rig.b.sink.messages.size() == 1);
    message(0);
  }
  SECTION("a damaged message") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 0, 12345}, 10); }, filled(10, 1));
    REQUIRE(rig.b.sink.broken_messages == 1);
    REQUIRE(rig.b.sink.messages.empty());
  }
  SECTION("a message larger than agreed") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 0, 0}, 8193); });
  }
  SECTION("an answer to a write never sent") {
    peer.frame([](Writer& w) { wire::encode_write_ack(w, {0x10000, Status::success, false}); });
  }
  SECTION("an answer to a read never sent") {
    peer.frame([](Writer& w) { wire::encode_read_end(w, {0x10000, Status::success, false}); });
  }
  SECTION("data of a read never sent") {
    peer.frame([](Writer& w) { wire::encode(w, wire::RmaReadData{0x10000, 10, 0}, 10); }, filled(10, 1));
  }
  SECTION("a slot beyond the agreed number") { write(0x10008, 10, 0, 10); }
  SECTION("a chunk in the middle of nothing") { write(0x10000, 10, 5, 5); }
  SECTION("a gap between chunks") {
    write(0x10000, 30, 0, 10);
    write(0x10000, 30, 20, 10);
  }
  SECTION("an operation begun twice") {
    write(0x10000, 30, 0, 10);
    write(0x20000, 30, 0, 10);
  }
  SECTION("a read in a busy slot") {
    write(0x10000, 30, 0, 10);
    peer.frame([&](Writer& w) { wire::encode(w, wire::RmaRead{0x10000, 30, ref}); });
  }
  SECTION("another target in the second chunk") {
    write(0x10000, 30, 0, 10);
    ref.offset_bytes = 500;
    write(0x10000, 30, 10, 10);
  }
  SECTION("a hello again") { peer.hello(RawPeer::usual()); }
  SECTION("a malformed frame") { peer.write(Buffer(16, std::byte{0xff})); }
  REQUIRE(peer.kinds().back() == Kind::bye);
  REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.sink.disconnected[0].id == id);
  REQUIRE(rig.b.sink.disconnected[0].status == Status::error);
  REQUIRE_FALSE(rig.b.sink.disconnected[0].reason.empty());
  const Buffer one = filled(1, 1);
  REQUIRE(rig.send(rig.b, id, one, 1) == Status::not_found);
  rig.connect();
}

TEST_CASE("peer__more_messages_than_the_window_in_one_breath__rejected") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  Buffer all;
  Writer writer(all);
  for (uint64_t i = 0; i < 20; ++i) wire::encode(writer, wire::Message{i, 0, wire::payload_check_of({})}, 0);
  peer.write(all);
  REQUIRE(rig.b.sink.messages.size() == 16);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("peer__sends_and_never_reads__nothing_grows") {
  Rig rig;
  rig.hub.capacity = 4096;
  RawPeer peer(rig, "p");
  peer.open();
  Buffer probes;
  Writer writer(probes);
  for (int i = 0; i < 300; ++i) wire::encode_empty(writer, Kind::keepalive);
  const uint64_t before = rig.b.counters.get(Counter::bytes_out);
  for (int i = 0; i < 100; ++i) {
    peer.write(probes);
    peer.got.clear();
  }
  // Answers to probes that came together are one.
  REQUIRE(rig.b.counters.get(Counter::bytes_out) - before <= 100 * 2 * wire::frame_overhead_bytes);
  REQUIRE(rig.b.sink.disconnected.empty());
}

TEST_CASE("peer__early_refusal__the_rest_is_not_sent") {
  Rig rig;
  rig.connect();
  Buffer source(8u << 20);
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;  // of nothing
  request.remote.handle.number = 999;
  request.source = source;
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 5) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(5).has_value(); }));
  REQUIRE(*rig.a.status_of(5) == Status::rma_handle);
  REQUIRE(rig.a.counters.get(Counter::bytes_out) < source.size() / 2);
  const Buffer one = filled(1, 1);
  REQUIRE(rig.send(rig.a, rig.at_a, one, 6) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(6) == Status::success; }));
}

TEST_CASE("peer__violation_while_half_a_chunk_is_out__its_memory_is_not_read_again") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.hub.capacity = 5000;
  auto source = std::make_unique<Buffer>(filled(100'000, 1));
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;
  request.source = *source;
  REQUIRE(rig.b.transport->rma(id, request, 5) == Status::success);
  rig.settle();
  Buffer wrong;
  Writer writer(wrong);
  wire::encode(writer, wire::MessageAck{7, Status::success});
  peer.write(wrong);
  REQUIRE(rig.b.status_of(5) == Status::disconnected);
  source.reset();  // it is the application's again
  for (int i = 0; i < 50; ++i) {
    peer.read();
    rig.settle();
  }
  REQUIRE(peer.closed);
  REQUIRE(peer.got.size() < 20'000);
}

TEST_CASE("peer__dialled_something_else__version") {
  Rig rig;
  // A server that greets with its own words.
  MemoryNet other(rig.hub, "smtp");
  ports::DialRequest dial;
  dial.uri = "mem://smtp";
  REQUIRE(rig.a.transport->dial(dial));
  StreamId stream = 0;
  other.poll(rig.now, [&](const StreamEvent& event) { stream = event.id; });
  const Buffer words = bytes_of("220 mail.example ESMTP\r\n");
  const ConstIoSpan span{words.data(), words.size()};
  REQUIRE(other.send(stream, {&span, 1}) > 0);
  rig.settle();
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::version);
}

}  // namespace
}  // namespace ccixfer::stream::testing
