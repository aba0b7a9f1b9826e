// Connections whose ends prove who they are: who learns what of whom, who is refused with which words, and what others see.
#include "tests/unit/stream/conversation.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/stream/connection.h"

namespace ccixfer::stream::testing {
namespace {

using ccixfer::testing::OwnTrust;

struct SecureRig {
  explicit SecureRig(const ports::TransportOptions& options = {}) : rig(options, of_a, of_b) {}
  // A dial of a to b that ends.
  const Recorder::Ended& dial(ports::Role role = ports::Role::application) {
    ports::DialRequest request;
    request.uri = "mem://b";
    request.role = role;
    request.timeout = 20s;
    REQUIRE(rig.a.transport->dial(request));
    REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
    return rig.a.sink.connected.back();
  }
  std::shared_ptr<OwnTrust> of_a = std::make_shared<OwnTrust>();
  std::shared_ptr<OwnTrust> of_b = std::make_shared<OwnTrust>();
  Rig rig;
};

TEST_CASE("secure_connection__both_ends__know_who_the_other_is_and_how_it_is_protected") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved == secure.of_b->name());
  CHECK(rig.b.transport->peer(rig.at_b).proved == secure.of_a->name());
  const auto hops = rig.a.transport->hops(rig.at_a);
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].peer == secure.of_b->name());
  CHECK((hops[0].protection == "aes-256-gcm" || hops[0].protection == "chacha20-poly1305"));
  CHECK(secure.of_a->dialled == "mem://b");
  CHECK(secure.of_b->asked == std::vector{ports::Role::application});
}

TEST_CASE("secure_connection__without_trust__nothing_is_proved_and_nothing_is_held_for_it") {
  Rig rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved.empty());
  CHECK(rig.a.transport->hops(rig.at_a)[0].protection.empty());
  WARN("a plain connection: " << sizeof(Connection) << " bytes");
  CHECK(sizeof(Connection) <= 512);
}

TEST_CASE("secure_connection__messages_of_every_length__arrive_as_they_were") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.hub.recv_max = GENERATE(as<size_t>{}, SIZE_MAX, 7, 1000);
  rig.connect();
  uint64_t token = 0;
  for (const size_t size : {0u, 1u, 64u, 127u, 128u, 129u, 1408u, 8191u, 8192u}) {
    REQUIRE(rig.send(rig.a, rig.at_a, filled(size, 3), token++) == Status::success);
  }
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == token; }));
  for (const Completion& completion : rig.a.sink.completions) CHECK(completion.status == Status::success);
  REQUIRE(rig.b.sink.messages.size() == token);
  CHECK(rig.b.sink.messages.back() == filled(8192, 3));
}

TEST_CASE("secure_connection__what_passes__shows_no_message_no_connect_data_and_no_reason") {
  std::string seen;
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.hub.rewrite = [&](int, std::vector<std::byte> bytes) {
    seen.append(as_text(bytes));
    return bytes;
  };
  const Buffer data = bytes_of("canary of connect data");
  ports::DialRequest dial;
  dial.uri = "mem://b";
  dial.data = data;
  const auto refused = rig.a.transport->dial(dial);
  REQUIRE(refused);
  REQUIRE(rig.run([&] { return !rig.b.sink.requests.empty(); }));
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "canary of a reason") == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected[0].reason == "canary of a reason");
  rig.connect();
  REQUIRE(rig.send(rig.a, rig.at_a, bytes_of("canary of a short message"), 1) == Status::success);
  std::string longer = "canary of a longer message";
  longer.resize(3000, '.');
  REQUIRE(rig.send(rig.a, rig.at_a, bytes_of(longer), 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 2; }));
  rig.a.transport->disconnect(rig.at_a);
  rig.settle();
  CHECK(seen.size() > 3000);
  CHECK(seen.find("canary") == std::string::npos);
}

TEST_CASE("secure_connection__bulk_payload__passes_as_it_is") {
  std::string seen;
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.hub.rewrite = [&](int, std::vector<std::byte> bytes) {
    seen.append(as_text(bytes));
    return bytes;
  };
  rig.connect();
  Buffer source = filled(300'000, 9);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, 2);
  write.source = source;
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  CHECK(rig.a.status_of(1) == Status::success);
  CHECK((target == source));
  CHECK(seen.find(as_text(Bytes(source).first(1000))) != std::string::npos);
}

TEST_CASE("secure_connection__somebody_else_answers__the_dial_ends_as_not_authenticated") {
  SecureRig secure;
  secure.of_a->wanted = secure.of_a->identity.id();
  const Recorder::Ended& ended = secure.dial();
  CHECK(ended.status == Status::not_authenticated);
  CHECK(ended.reason == "another identity than the one that was wanted");
  secure.rig.pass(30s);
  CHECK(secure.rig.b.sink.requests.empty());
}

TEST_CASE("secure_connection__a_dialler_that_may_not__hears_why_and_the_application_does_not") {
  SecureRig secure;
  Status expected = Status::not_authenticated;
  std::string reason = "an unknown peer";
  SECTION("a stranger") { secure.of_b->stranger = secure.of_a->identity.id(); }
  SECTION("a role") {
    secure.of_b->denied = ports::Role::router;
    expected = Status::not_authorised;
    reason = "a role that it may not have";
  }
  const Recorder::Ended& ended = secure.dial(ports::Role::router);
  CHECK(ended.status == expected);
  CHECK(ended.reason == reason);
  CHECK(secure.rig.b.sink.requests.empty());
  CHECK(secure.rig.b.counters.get(Counter::hello_rejected) == 1);
  REQUIRE(secure.of_b->away.size() == 1);  // and its owner hears of it, with who it was
  CHECK(secure.of_b->away[0].peer == secure.of_a->identity.id());
  CHECK(secure.of_b->away[0].error.message == reason);
}

TEST_CASE("secure_connection__one_end_insecure__refused_with_what_to_do") {
  const bool dialler_is_secured = GENERATE(true, false);
  const auto trust = std::make_shared<OwnTrust>();
  Rig rig({}, dialler_is_secured ? trust : nullptr, dialler_is_secured ? nullptr : trust);
  ports::DialRequest request;
  request.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(request));
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected[0].status == Status::not_authenticated);
  CHECK(rig.a.sink.connected[0].reason ==
        (dialler_is_secured ? connection::acceptor_is_insecure : connection::dialler_is_insecure));
  CHECK(rig.b.sink.requests.empty());
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
  CHECK(trust->away.size() == (dialler_is_secured ? 0 : 1));
  if (!dialler_is_secured) CHECK_FALSE(trust->away.at(0).peer);
}

// TLS of another kind, and none at all.
TEST_CASE("secure_connection__a_stranger_that_says_what_it_likes__is_counted_and_gone") {
  SecureRig secure;
  Rig& rig = secure.rig;
  RawPeer peer(rig, "p");
  SECTION("no TLS") {
    peer.frame([](wire::Writer& out) { wire::encode_handshake(out, as_bytes("GET / HTTP/1.1\r\n\r\n")); });
  }
  SECTION("a frame of an open connection") {
    peer.frame([](wire::Writer& out) { wire::encode(out, wire::MessageAck{0, Status::success}); });
  }
  SECTION("a sealed record before any key") {
    Buffer record(100);
    wire::write_sealed_prefix(record.data(), {0, 80});
    peer.write(record);
  }
  SECTION("another version of the handshake") {
    Buffer frame;
    wire::Writer out(frame);
    {
      const wire::HeaderWriter header(out, wire::Kind::handshake);
      out.u64(wire::magic);
      out.u16(wire::handshake_version + 1);
      out.bytes16(as_bytes("x"));
    }
    peer.write(frame);
    CHECK(peer.kinds() == std::vector{wire::Kind::hello_reply});
  }
  rig.pass(20s);
  peer.read();
  CHECK(peer.closed);
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
  CHECK(rig.b.sink.requests.empty());
  rig.connect();  // others are served
}

// What a dialler says first, in frames of so many bytes.
Buffer first_flight(SecureRig& secure, size_t piece_bytes) {
  Secured stranger(secure.of_a->handshake(trust::HandshakeSide::dialler));
  REQUIRE(stranger.step({}));
  Buffer out;
  wire::Writer writer(out);
  for (Bytes left(stranger.output()); !left.empty();) {
    const auto prefix = wire::decode_prefix(left);
    REQUIRE(prefix);
    const auto frame = wire::decode_handshake(left.first(prefix->header_bytes));
    REQUIRE(frame);
    for (Bytes records = frame->records; !records.empty(); records = records.subspan(std::min(records.size(), piece_bytes)))
      wire::encode_handshake(writer, records.first(std::min(records.size(), piece_bytes)));
    left = left.subspan(prefix->header_bytes);
  }
  return out;
}

TEST_CASE("secure_connection__a_handshake_in_frames_of_one_byte__is_refused_after_a_few") {
  SecureRig secure;
  Rig& rig = secure.rig;
  RawPeer peer(rig, "p");
  peer.write(first_flight(secure, 1));
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
  CHECK(secure.of_b->away.size() == 1);
  rig.pass(20s);
  peer.read();
  CHECK(peer.closed);
  rig.connect();  // others are served
}

TEST_CASE("secure_connection__a_handshake_in_two_pieces__is_answered") {
  SecureRig secure;
  RawPeer peer(secure.rig, "p");
  peer.write(first_flight(secure, 200));
  CHECK(secure.rig.b.counters.get(Counter::hello_rejected) == 0);
  CHECK(peer.kinds().at(0) == wire::Kind::handshake);
}

TEST_CASE("secure_connection__a_replayed_handshake__opens_nothing") {
  std::vector<std::byte> recorded;
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.hub.rewrite = [&](int from, std::vector<std::byte> bytes) {
    if (from == 0) recorded.insert(recorded.end(), bytes.begin(), bytes.end());
    return bytes;
  };
  rig.connect();
  rig.hub.rewrite = nullptr;
  const size_t requests = rig.b.sink.requests.size();
  RawPeer peer(rig, "p");
  peer.write(recorded);
  rig.pass(20s);
  peer.read();
  CHECK(peer.closed);
  CHECK(rig.b.sink.requests.size() == requests);
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
}

// As many as may be pending, each with the first flight of a handshake; and they go on.
TEST_CASE("secure_connection__half_open_handshakes_in_a_crowd__others_still_get_in_soon") {
  ports::TransportOptions few;
  few.pending_requests_max = 8;
  SecureRig secure(few);
  Rig& rig = secure.rig;
  std::vector<std::unique_ptr<RawPeer>> half;
  const auto dial_half = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      half.push_back(std::make_unique<RawPeer>(rig, "h" + std::to_string(half.size())));
      Secured stranger(secure.of_a->handshake(trust::HandshakeSide::dialler));
      REQUIRE(stranger.step({}));
      const ConstIoSpan span{stranger.output().data(), stranger.output().size()};
      half.back()->say(span);
    }
  };
  dial_half(20);
  rig.settle();
  CHECK(rig.b.net->accept_paused);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  const Instant began = rig.now;
  const auto asked = [&] {
    dial_half(rig.hub.links.size() < 60 ? 1 : 0);
    return !rig.b.sink.requests.empty();
  };
  REQUIRE(rig.run(asked, 9s));
  CHECK(rig.now - began <= 10 * connection::silence_when_crowded_max);
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests.front()) == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected.front().status == Status::success);
}

TEST_CASE("secure_connection__many_at_once__all_get_in_though_each_turn_takes_a_few") {
  SecureRig secure;
  Rig& rig = secure.rig;
  const size_t count = 5 * connection::handshakes_per_turn_max;
  for (size_t i = 0; i < count; ++i) {
    ports::DialRequest dial;
    dial.uri = "mem://b";
    REQUIRE(rig.a.transport->dial(dial));
  }
  REQUIRE(rig.run([&] { return rig.b.sink.requests.size() == count; }));
  for (const ConnectionId request : rig.b.sink.requests) REQUIRE(rig.b.transport->accept(request) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.connected.size() == count; }));
}

}  // namespace
}  // namespace ccixfer::stream::testing
