// Handshakes and frames by hand, from both sides: what is agreed, what is refused and how it is told, and who runs out of patience.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;
using wire::Kind;
using wire::Writer;

// One that transport `a` of a rig dials at once.
class Dialled : public RawAcceptor {
 public:
  explicit Dialled(Rig& rig, Duration timeout = 10s) : RawAcceptor(rig), rig_(rig) {
    ports::DialRequest request;
    request.timeout = timeout;
    id = dial(request);
  }
  using RawAcceptor::reply;
  void reply() { reply(usual()); }
  void accept() { empty(Kind::connect_accept); }
  [[nodiscard]] const Recorder::Ended& ended() const {
    REQUIRE(rig_.a.sink.connected.size() == 1);
    return rig_.a.sink.connected[0];
  }
  ConnectionId id;

 private:
  Rig& rig_;
};

TEST_CASE("protocol__an_answer_to_our_hello_that_cannot_be__ends_the_dial_with_the_reason") {
  Rig rig;
  Dialled peer(rig);
  wire::HelloReply reply;
  reply.offer = {8192, 16, 8};
  Status expected = Status::version;
  std::string reason = "the peer's version or limits cannot be used";
  SECTION("another version") { reply.version = wire::version + 1; }
  SECTION("tiny messages") { reply.offer.max_send_bytes = ports::max_send_bytes_floor - 1; }
  SECTION("no window") { reply.offer.sends_in_flight_max = 0; }
  SECTION("no operations") { reply.offer.rmas_in_flight_max = 0; }
  SECTION("another magic") {
    reply.magic ^= 1;
    reason = "what answers there is not a ccixfer: not an answer of this protocol";
  }
  SECTION("a refusal") {
    reply.status = expected = Status::not_implemented;
    reply.offer = {};
    reply.reason = reason = "not with me";
  }
  peer.reply(reply);
  CHECK(peer.ended().status == expected);
  CHECK(peer.ended().reason == reason);
  CHECK(rig.a.sink.disconnected.empty());
}

TEST_CASE("protocol__a_decision__accept_reject_or_goodbye") {
  Rig rig;
  Dialled peer(rig);
  peer.reply();
  REQUIRE(rig.a.sink.connected.empty());
  Status expected = Status::refused;
  std::string reason = "no room";
  uint64_t violations = 0;
  SECTION("accepted") {
    peer.accept();
    expected = Status::success;
    reason.clear();
  }
  SECTION("rejected") {
    peer.frame([](Writer& w) { wire::encode_reject(w, {Status::refused, "no room"}); });
  }
  SECTION("goodbye") {
    peer.frame([](Writer& w) { wire::encode_bye(w, {Status::disconnected, "no room"}); });
  }
  SECTION("rejected with success") {
    peer.frame([](Writer& w) { wire::encode_reject(w, {Status::success, "no room"}); });
    expected = Status::error;
    reason = "malformed reject";
    violations = 1;
  }
  SECTION("a goodbye with success") {
    peer.frame([](Writer& w) { wire::encode_bye(w, {Status::success, "no room"}); });
    expected = Status::error;
    reason = "malformed bye";
    violations = 1;
  }
  SECTION("a message before the decision") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 0, wire::payload_check_of({})}, 0); });
    expected = Status::error;
    reason = "a frame that does not belong here";
    violations = 1;
  }
  CHECK(peer.ended().status == expected);
  CHECK(peer.ended().reason == reason);
  CHECK(rig.a.counters.get(Counter::frames_rejected) == violations);
}

// The least of both ends' limits.
TEST_CASE("protocol__limits__are_the_lesser_of_both_offers") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 12;
  options.rmas_in_flight_max = 6;
  Rig rig(options);
  RawPeer peer(rig, "p");
  wire::Hello hello = RawPeer::usual();
  const bool less = GENERATE(true, false);
  hello.offer = less ? wire::Offer{2000, 4, 2} : wire::Offer{20'000, 400, 200};
  peer.hello(hello);
  const auto reply = wire::decode_hello_reply(peer.got);
  REQUIRE(reply);
  CHECK(reply->offer.max_send_bytes == max_send_offered_bytes);
  CHECK(reply->offer.sends_in_flight_max == 12);
  CHECK(reply->offer.rmas_in_flight_max == 6);
  const ConnectionId id = rig.b.sink.requests.at(0);
  REQUIRE(rig.b.transport->accept(id) == Status::success);
  rig.settle();
  const size_t largest = less ? 2000 : max_send_offered_bytes;
  CHECK(rig.send(rig.b, id, Buffer(largest + 1), 0) == Status::message_size);
  uint64_t sends = 0, rmas = 0;
  while (rig.send(rig.b, id, Buffer(largest), sends) == Status::success) ++sends;
  CHECK(sends == (less ? 4 : 12));
  const Buffer bytes(10);
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;
  request.source = bytes;
  while (rig.b.transport->rma(id, request, 100 + rmas) == Status::success) ++rmas;
  CHECK(rmas == (less ? 2 : 6));
}

TEST_CASE("protocol__unreliable_connections__frames_of_reliable_ones_are_violations") {
  Rig rig;
  RawPeer peer(rig, "p");
  wire::Hello hello = RawPeer::usual();
  hello.attribute = ports::Attribute::unreliable;
  peer.hello(hello);
  const ConnectionId id = rig.b.sink.requests.at(0);
  REQUIRE(rig.b.transport->accept(id) == Status::success);
  rig.settle();
  peer.frame([](Writer& w) { wire::encode_empty(w, Kind::connect_ack); });
  Buffer memory(100);
  ports::RemoteRef ref;
  ref.handle = rig.b.memory.register_region(memory, 3);
  bool fine = false;
  SECTION("a message") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 0, wire::payload_check_of({})}, 0); });
    CHECK(rig.b.sink.messages.size() == 1);
    fine = true;
  }
  SECTION("a message that acknowledges") {
    peer.frame([](Writer& w) { wire::encode(w, wire::Message{0, 1, wire::payload_check_of({})}, 0); });
  }
  SECTION("an acknowledgement") {
    peer.frame([](Writer& w) { wire::encode(w, wire::MessageAck{0, Status::success}); });
  }
  SECTION("a write") {
    peer.frame([&](Writer& w) { wire::encode(w, wire::RmaWrite{0x10000, 10, 0, ref, false}, 10); }, Buffer(10));
  }
  SECTION("a read") {
    peer.frame([&](Writer& w) { wire::encode(w, wire::RmaRead{0x10000, 10, ref}); });
  }
  SECTION("a hint") {
    peer.frame([](Writer& w) { wire::encode(w, wire::MailboxHint{1, 1}); });
  }
  CHECK(rig.b.counters.get(Counter::frames_rejected) == (fine ? 0 : 1));
  CHECK(rig.b.sink.disconnected.size() == (fine ? 0 : 1));
}

// A connection in the making is watched for silence as well, and by its own limit where the keepalive is off.
TEST_CASE("protocol__a_peer_that_falls_silent_in_the_handshake__ends_it") {
  ports::TransportOptions options;
  const bool by_keepalive = GENERATE(true, false);
  options.keepalive = by_keepalive ? Duration{1s} : Duration{0};
  options.handshake_timeout = by_keepalive ? Duration{1h} : Duration{4s};
  const Duration limit = 5s;  // three probes and their time
  Rig rig(options);
  SECTION("dialled, and nothing comes") {
    Dialled peer(rig, 4s);
    rig.pass(limit);
    CHECK(peer.ended().status == Status::timed_out);
  }
  SECTION("dialled, no decision comes") {
    Dialled peer(rig, by_keepalive ? Duration{1h} : Duration{4s});
    peer.reply();
    rig.pass(3s);
    CHECK(rig.a.sink.connected.empty());
    rig.pass(limit - 3s);
    CHECK(peer.ended().status == Status::timed_out);
  }
  SECTION("accepted, no word of it comes") {
    RawPeer peer(rig, "p");
    peer.hello(RawPeer::usual());
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests.at(0)) == Status::success);
    rig.pass(3s);
    CHECK(rig.b.sink.accepted.empty());
    rig.pass(limit - 3s);
    REQUIRE(rig.b.sink.accepted.size() == 1);
    CHECK(rig.b.sink.accepted[0].status == Status::timed_out);
  }
  SECTION("a request whose dialler went away") {
    RawPeer peer(rig, "p");
    peer.hello(RawPeer::usual());
    rig.pass(limit);
    CHECK(rig.b.sink.disconnected.size() == (by_keepalive ? 1 : 0));  // the decision may take for ever
  }
  SECTION("we left, and our message is not answered") {
    RawPeer peer(rig, "p");
    const ConnectionId id = peer.open();
    REQUIRE(rig.send(rig.b, id, Buffer(10), 1) == Status::success);
    rig.b.transport->disconnect(id);
    rig.pass(limit);
    CHECK(rig.b.status_of(1) == (by_keepalive ? std::optional(Status::timed_out) : std::nullopt));
    rig.pass(connection::disconnect_flush_max);
    CHECK(rig.b.status_of(1) == (by_keepalive ? Status::timed_out : Status::disconnected));
  }
}

TEST_CASE("protocol__keepalive_set_by_the_application__told_once_and_the_connection_stays") {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  Rig rig(options);
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  const Duration timeout = GENERATE(Duration{2s}, Duration{0}, forever);
  rig.pass(100s);
  rig.b.transport->set_keepalive(id, timeout);
  rig.pass(7s);
  CHECK(rig.b.sink.keepalive_timeouts == 0);
  rig.pass(2s);
  CHECK(rig.b.sink.keepalive_timeouts == (timeout == Duration{2s} ? 1 : 0));
  rig.pass(1000s);
  CHECK(rig.b.sink.keepalive_timeouts == (timeout == Duration{2s} ? 1 : 0));
  CHECK(rig.b.sink.disconnected.empty());
}

TEST_CASE("protocol__a_probe__is_answered_and_an_answer_is_a_sign_of_life") {
  ports::TransportOptions options;
  options.keepalive = 2s;
  Rig rig(options);
  RawPeer peer(rig, "p");
  static_cast<void>(peer.open());
  for (int i = 0; i < 10; ++i) {
    rig.pass(7s);  // it has been asked, and not given up
    peer.frame([](Writer& w) { wire::encode_empty(w, Kind::keepalive_ack); });
    REQUIRE(rig.b.sink.disconnected.empty());
  }
  peer.got.clear();
  peer.frame([](Writer& w) { wire::encode_empty(w, Kind::keepalive); });
  CHECK(peer.kinds() == std::vector{Kind::keepalive_ack});
}

TEST_CASE("protocol__destroyed_at_any_stage__a_peer_with_a_connection_hears_one_goodbye") {
  Rig rig;
  RawPeer peer(rig, "p");
  bool said = true;
  SECTION("a request") {
    peer.hello(RawPeer::usual());
    said = false;
  }
  SECTION("accepted, and not acknowledged") {
    peer.hello(RawPeer::usual());
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests.at(0)) == Status::success);
    rig.settle();
    peer.read();
  }
  SECTION("open") { static_cast<void>(peer.open()); }
  SECTION("left, with a message that is not answered") {
    const ConnectionId id = peer.open();
    REQUIRE(rig.send(rig.b, id, Buffer(10), 1) == Status::success);
    rig.b.transport->disconnect(id);
    rig.settle();
    peer.read();
  }
  REQUIRE(rig.b.sink.disconnected.empty());
  peer.got.clear();
  rig.b.transport.reset();
  peer.read();
  CHECK(peer.closed);
  CHECK(peer.kinds() == (said ? std::vector{Kind::bye} : std::vector<Kind>{}));
}

TEST_CASE("protocol__aborted_before_the_peer_acknowledged__cancelled_and_closed") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.hello(RawPeer::usual());
  const ConnectionId id = rig.b.sink.requests.at(0);
  REQUIRE(rig.b.transport->accept(id) == Status::success);
  rig.settle();
  REQUIRE(rig.send(rig.b, id, Buffer(10), 1) == Status::success);
  rig.b.transport->abort(id);
  rig.settle();
  REQUIRE(rig.b.sink.accepted.size() == 1);
  CHECK(rig.b.sink.accepted[0].status == Status::cancelled);
  CHECK(rig.b.status_of(1) == Status::disconnected);
  peer.read();
  CHECK(peer.closed);
}

TEST_CASE("protocol__hints__as_many_as_are_kept_and_none_after_we_left") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  for (size_t i = 0; i < hints_waiting_max + 5; ++i) rig.b.transport->hint(id, i, 0);
  rig.settle();
  peer.read();
  CHECK(peer.kinds() == std::vector(hints_waiting_max, Kind::mailbox_hint));
  peer.got.clear();
  REQUIRE(rig.send(rig.b, id, Buffer(10), 1) == Status::success);
  rig.b.transport->disconnect(id);
  rig.b.transport->hint(id, 1, 0);
  rig.settle();
  rig.b.transport->hint(id, 1, 0);
  rig.settle();
  peer.read();
  CHECK(peer.kinds() == std::vector{Kind::message});
}

TEST_CASE("protocol__a_read_that_ends_well_without_its_bytes__is_a_violation") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  Buffer memory(10);
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;
  request.write = false;
  request.destination = memory;
  REQUIRE(rig.b.transport->rma(id, request, 5) == Status::success);
  rig.settle();
  peer.read();
  const auto read = wire::decode_rma_read(peer.got);
  REQUIRE(read);
  const size_t came = GENERATE(size_t{0}, size_t{9}, size_t{10});
  if (came > 0) {
    peer.frame(
        [&](Writer& w) {
          wire::encode(w, wire::RmaReadData{read->operation, 10, 0}, static_cast<uint32_t>(came));
        },
        filled(came, 3));
  }
  const bool good = GENERATE(true, false);
  peer.frame([&](Writer& w) { wire::encode_read_end(w, {read->operation, good ? Status::success : Status::rma_handle, false}); });
  const bool fine = came == 10 || !good;
  CHECK(rig.b.status_of(5) == (!fine ? Status::disconnected : good ? Status::success : Status::rma_handle));
  CHECK(rig.b.counters.get(Counter::frames_rejected) == (fine ? 0 : 1));
}

TEST_CASE("protocol__an_endpoint_that_is_destroyed__says_goodbye_where_the_stream_allows_it") {
  Rig rig;
  rig.connect();
  const bool within_a_chunk = GENERATE(false, true);
  const Buffer source(100'000);
  if (within_a_chunk) {
    rig.hub.capacity = 5000;
    ports::RmaRequest request;
    request.remote.handle.kind = ports::HandleKind::region;
    request.source = source;
    REQUIRE(rig.a.transport->rma(rig.at_a, request, 1) == Status::success);
    rig.a.transport->turn(rig.now);
  }
  rig.a.transport.reset();
  for (int i = 0; i < 10; ++i) rig.b.transport->turn(rig.now);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected[0].status == Status::disconnected);
  CHECK(rig.b.sink.disconnected[0].reason ==
        (within_a_chunk ? "the peer closed the connection without a goodbye" : "the endpoint was destroyed"));
  CHECK(rig.b.counters.get(Counter::frames_rejected) == 0);
}

}  // namespace
}  // namespace ccixfer::stream::testing
