// Connections over datagrams whose ends prove who they are: who learns what of whom, who is refused with which words, what is lost,
// changed or repeated on the way, and what others see.
#include "tests/unit/datagram/rig.h"
#include "tests/unit/stream/own_trust.h"
#include "tests/unit/trust/facility.h"
#include "transports/connection/limits.h"
#include "transports/datagram/secured.h"

namespace ccixfer::datagram::testing {
namespace {

using ccixfer::testing::OwnTrust;

Buffer bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

struct SecureRig {
  explicit SecureRig(const sim::DatagramLinkOptions& link = {}, const ports::TransportOptions& options = {})
      : rig(link, options, 1, reliability::Congestion::new_reno, of_a, of_b) {}
  // Who stands between them has gone by then.
  ~SecureRig() { rig.fabric.stand_between(nullptr); }
  SecureRig(const SecureRig&) = delete;
  SecureRig& operator=(const SecureRig&) = delete;

  // A dial of a to b that ends.
  const Recorder::Ended& dial(ports::Role role = ports::Role::application) {
    ports::DialRequest request;
    const std::string uri = rig.b.transport->uri();
    request.uri = uri;
    request.role = role;
    request.timeout = 20s;
    REQUIRE(rig.a.transport->dial(request));
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
    return rig.a.sink.connected.back();
  }
  std::shared_ptr<OwnTrust> of_a = std::make_shared<OwnTrust>();
  std::shared_ptr<OwnTrust> of_b = std::make_shared<OwnTrust>();
  Rig rig;
};

// What passes between them, as one text.
struct Listener {
  explicit Listener(Rig& rig) {
    rig.fabric.stand_between([this](const std::string&, Buffer& bytes) {
      seen.append(as_text(bytes));
      return true;
    });
  }
  std::string seen;
};

TEST_CASE("secure_datagrams__both_ends__know_who_the_other_is_and_how_it_is_protected") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved == secure.of_b->name());
  CHECK(rig.b.transport->peer(rig.at_b).proved == secure.of_a->name());
  const auto hops = rig.a.transport->hops(rig.at_a);
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].peer == secure.of_b->name());
  CHECK((hops[0].protection == "aes-256-gcm" || hops[0].protection == "chacha20-poly1305"));
  CHECK(hops[0].round_trip > Duration{0});
  CHECK(secure.of_a->dialled == "sim-datagram://b:1");
  CHECK(secure.of_b->asked == std::vector{ports::Role::application});
  CHECK(secure.of_a->handshakes == 1);
  CHECK(secure.of_b->handshakes == 1);
}

TEST_CASE("secure_datagrams__without_trust__nothing_is_proved") {
  Rig rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved.empty());
  CHECK(rig.a.transport->hops(rig.at_a)[0].protection.empty());
}

TEST_CASE("secure_datagrams__what_passes__shows_no_message_no_connect_data_no_reason_and_no_bulk_payload") {
  SecureRig secure;
  Rig& rig = secure.rig;
  const Listener listener(rig);
  const Buffer data = bytes_of("canary of connect data");
  ports::DialRequest dial;
  const std::string uri = rig.b.transport->uri();
  dial.uri = uri;
  dial.data = data;
  REQUIRE(rig.a.transport->dial(dial));
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return !rig.b.sink.requests.empty(); }));
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "canary of a reason") == Status::success);
  rig.world.wake(rig.b.node);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected[0].status == Status::refused);
  CHECK(rig.a.sink.connected[0].reason == "canary of a reason");
  rig.connect();
  REQUIRE(rig.a.send(rig.at_a, bytes_of("canary of a message"), 1) == Status::success);
  Buffer source(300'000);
  const Buffer word = bytes_of("canary..");
  for (size_t at = 0; at < source.size(); at += word.size()) std::memcpy(source.data() + at, word.data(), word.size());
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, 2);
  write.source = source;
  REQUIRE(rig.a.rma(rig.at_a, write, 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value() && rig.b.sink.messages.size() == 1; }));
  CHECK(rig.a.status_of(2) == Status::success);
  CHECK((target == source));
  rig.a.transport->disconnect(rig.at_a);
  rig.world.wake(rig.a.node);
  rig.pass(5s);
  CHECK(listener.seen.size() > source.size());
  CHECK(listener.seen.find("canary") == std::string::npos);
}

TEST_CASE("secure_datagrams__messages_of_every_length__arrive_as_they_were") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  const uint32_t most = rig.a.transport->max_send_bytes();
  CHECK(most == message_bytes_max(8192, true));
  uint64_t token = 0;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{1408}, size_t{most}}) {
    REQUIRE(rig.a.send(rig.at_a, filled(size, 3), token++) == Status::success);
  }
  CHECK(rig.a.send(rig.at_a, filled(most + 1, 3), 99) == Status::message_size);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == token; }));
  REQUIRE(rig.b.sink.messages.size() == token);
  CHECK(rig.b.sink.messages.back() == filled(most, 3));
}

TEST_CASE("secure_datagrams__the_shortest_datagrams__carry_what_every_transport_must") {
  sim::DatagramLinkOptions link;
  link.datagram_bytes = datagram_bytes_min;
  SecureRig secure(link);
  Rig& rig = secure.rig;
  rig.connect();
  CHECK(rig.a.transport->max_send_bytes() >= ports::max_send_bytes_floor);
  REQUIRE(rig.a.send(rig.at_a, filled(ports::max_send_bytes_floor, 5), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 1; }));
}

TEST_CASE("secure_datagrams__somebody_else_answers__the_dial_ends_as_not_authenticated") {
  SecureRig secure;
  secure.of_a->wanted = secure.of_a->identity.id();
  const Recorder::Ended& ended = secure.dial();
  CHECK(ended.status == Status::not_authenticated);
  CHECK(ended.reason == "another identity than the one that was wanted");
  secure.rig.pass(30s);
  CHECK(secure.rig.b.sink.requests.empty());
  CHECK(secure.of_b->asked.empty());
}

TEST_CASE("secure_datagrams__a_dialler_that_may_not__hears_why_and_the_application_does_not") {
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
  REQUIRE(secure.of_b->away.size() == 1);
  CHECK(secure.of_b->away[0].peer == secure.of_a->identity.id());
  CHECK(secure.of_b->away[0].error.message == reason);
}

TEST_CASE("secure_datagrams__one_end_insecure__refused_with_what_to_do") {
  const bool dialler_is_secured = GENERATE(true, false);
  const auto trust = std::make_shared<OwnTrust>();
  Rig rig({}, {}, 1, reliability::Congestion::new_reno, dialler_is_secured ? trust : nullptr, dialler_is_secured ? nullptr : trust);
  ports::DialRequest request;
  const std::string uri = rig.b.transport->uri();
  request.uri = uri;
  REQUIRE(rig.a.transport->dial(request));
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected[0].status == Status::not_authenticated);
  CHECK(rig.a.sink.connected[0].reason ==
        (dialler_is_secured ? connection::acceptor_is_insecure : connection::dialler_is_insecure));
  CHECK(rig.b.sink.requests.empty());
  CHECK(trust->away.size() == (dialler_is_secured ? 0 : 1));
}

// An authority that does not know the peer: TLS itself refuses, and its alert tells the other end, whatever is lost.
TEST_CASE("secure_datagrams__tls_refuses_the_dialler__it_hears_so_also_if_the_alert_is_lost") {
  const bool loses = GENERATE(false, true);
  SecureRig secure;
  const trust::Facility own("own"), other("other");
  const trust::Issued certificate = other.issue({});
  secure.of_a->identity =
      trust::Identity::from_certificate(certificate.certificate_pem(), "certificate", certificate.key_pem(), "key").value();
  secure.of_b->authority = trust::Authority::from_pem(own.pem(), "authority", {}, {}).value();
  secure.of_a->wall_time_s = secure.of_b->wall_time_s = trust::test_now_s;
  int of_b = 0;
  secure.rig.fabric.stand_between(
      [&](const std::string& from, Buffer&) { return !loses || from != "b" || ++of_b < 3 || of_b > 4; });
  const Recorder::Ended& ended = secure.dial();
  CHECK(ended.status == Status::not_authenticated);
  CHECK(secure.rig.b.sink.requests.empty());
  REQUIRE(secure.of_b->away.size() == 1);
}

// A certificate with its chain is longer than a datagram.
TEST_CASE("secure_datagrams__a_handshake_of_many_datagrams__is_put_together_whatever_is_lost") {
  sim::DatagramLinkOptions link;
  link.loss_chance = GENERATE(0.0, 0.2);
  link.reorder_chance = link.duplicate_chance = link.loss_chance;
  SecureRig secure(link);
  const trust::Facility root("root");
  trust::IssueOptions large;
  large.key = "RSA:4096";
  const trust::Facility between("between", &root, large);
  const trust::Issued certificate = between.issue(large);
  for (const auto& each : {secure.of_a, secure.of_b}) {
    each->identity =
        trust::Identity::from_certificate(certificate.certificate_pem(), "certificate", certificate.key_pem(), "key").value();
    each->authority = trust::Authority::from_pem(root.pem(), "authority", {}, {}).value();
    each->wall_time_s = trust::test_now_s;
  }
  const Listener listener(secure.rig);
  secure.rig.connect();
  CHECK(listener.seen.size() > size_t{4} * datagram_bytes_min);
  CHECK(secure.rig.a.transport->peer(secure.rig.at_a).proved == "dtn1.lab.example");
}

// Each datagram of the handshake in turn does not arrive.
TEST_CASE("secure_datagrams__any_one_of_the_handshake_lost__it_comes_again") {
  const int lost = GENERATE(range(1, 13));
  SecureRig secure;
  int count = 0;
  secure.rig.fabric.stand_between([&](const std::string&, Buffer&) { return ++count != lost; });
  secure.rig.connect();
  REQUIRE(secure.rig.a.send(secure.rig.at_a, filled(100, 1), 1) == Status::success);
  REQUIRE(secure.rig.run([&] { return secure.rig.a.status_of(1).has_value(); }));
  CHECK(secure.rig.a.status_of(1) == Status::success);
  CHECK(count >= 8);
}

// Somebody on the way who changes what it likes, and makes the checks right: nothing that it changed is taken.
TEST_CASE("secure_datagrams__sealed_packets_that_were_changed__do_not_open_and_come_again") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  sim::Random random(7);
  int changed = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from != "a" || changed >= 40 || random.next() % 2 == 0) return true;
    REQUIRE(open_packet(bytes)->header.kind == PacketKind::sealed);
    ++changed;
    // Of the header only the number: the rest says for whom it is.
    size_t at = packet_header_bytes - 8 + random.next() % (bytes.size() - packet_header_bytes + 8);
    if (at >= packet_header_bytes && at < packet_head_bytes(true)) at += packet_header_check_bytes;
    bytes[at] ^= static_cast<std::byte>(1u << random.next() % 8);
    Buffer head;
    wire::Writer out(head);
    PacketHeader header{PacketKind::sealed, packet_version};
    wire::Reader in(Bytes(bytes).subspan(4));
    header.destination = in.u32();
    header.source = in.u32();
    header.key = in.u64();
    header.number = in.u64();
    begin_packet(out, header);
    std::memcpy(bytes.data(), head.data(), head.size());
    return true;
  });
  for (uint64_t token = 0; token < 30; ++token) {
    REQUIRE(rig.a.send(rig.at_a, filled(500, token), token) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.status_of(token).has_value(); }));
    CHECK(rig.a.status_of(token) == Status::success);
  }
  CHECK(changed > 10);
  CHECK(rig.b.counters.get(Counter::datagrams_rejected) == static_cast<uint64_t>(changed));
  REQUIRE(rig.b.sink.messages.size() == 30);
  for (uint64_t token = 0; token < 30; ++token) CHECK(rig.b.sink.messages[token] == filled(500, token));
}

TEST_CASE("secure_datagrams__everything_repeated__opens_nothing_and_is_delivered_once") {
  SecureRig secure;
  Rig& rig = secure.rig;
  std::vector<Buffer> recorded;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from == "a") recorded.push_back(bytes);
    return true;
  });
  rig.connect();
  REQUIRE(rig.a.send(rig.at_a, filled(500, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  rig.fabric.stand_between(nullptr);
  const size_t requests = rig.b.sink.requests.size();
  RawPeer peer(rig, "p");  // and from elsewhere
  for (const Buffer& datagram : recorded) peer.send(datagram);
  CHECK(rig.b.sink.requests.size() == requests);
  CHECK(rig.b.sink.messages.size() == 1);
  CHECK(rig.b.sink.disconnected.empty());
  REQUIRE(rig.a.send(rig.at_a, filled(500, 2), 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
  CHECK(rig.a.status_of(2) == Status::success);
}

// Frames in clear, of somebody who knows all that passes in clear: the index, the key, the number.
TEST_CASE("secure_datagrams__plain_packets_for_a_sealed_connection__are_counted_and_change_nothing") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  int forged = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    const auto packet = open_packet(bytes);
    if (from != "a" || !packet || packet->header.kind != PacketKind::sealed || forged >= 3) return true;
    ++forged;
    PacketHeader header = packet->header;
    header.kind = PacketKind::data;
    bytes.clear();
    wire::Writer out(bytes);
    begin_packet(out, header);
    encode(out, EndNoticeFrame{false, {Status::disconnected, "go away"}});
    end_packet(out);
    return true;
  });
  REQUIRE(rig.a.send(rig.at_a, filled(500, 2), 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
  CHECK(rig.a.status_of(2) == Status::success);
  CHECK(forged == 3);
  CHECK(rig.b.counters.get(Counter::datagrams_rejected) == 3);
  CHECK(rig.b.sink.disconnected.empty());
}

// Packets of the handshake are not sealed: whoever saw one sends copies, or makes some up.
TEST_CASE("secure_datagrams__pieces_of_the_handshake_in_a_silent_peers_name__do_not_keep_it_alive") {
  SecureRig secure;
  Rig& rig = secure.rig;
  std::vector<Buffer> pieces;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    const auto packet = open_packet(bytes);
    if (from == "a" && packet && packet->header.kind == PacketKind::handshake) pieces.push_back(bytes);
    return true;
  });
  rig.connect();
  REQUIRE_FALSE(pieces.empty());
  rig.fabric.stand_between([](const std::string& from, Buffer&) { return from != "a"; });
  const Address of_a = rig.a.net->address();
  const auto packet = open_packet(pieces.back());
  HandshakePiece piece = decode_handshake_piece(packet->body).value();
  for (int i = 0; i < 120 && rig.b.sink.disconnected.empty(); ++i) {
    piece.offset_bytes += static_cast<uint32_t>(piece.bytes.size());
    Buffer made_up;
    wire::Writer out(made_up);
    begin_packet(out, packet->header);
    encode(out, piece);
    end_packet(out);
    for (const Buffer& each : pieces) rig.fabric.forge(of_a, rig.b.net->address(), each);
    rig.fabric.forge(of_a, rig.b.net->address(), made_up);
    rig.pass(1s);
  }
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected[0].status == Status::timed_out);
}

// A damaged header must not make the other end say that the connection is gone.
TEST_CASE("secure_datagrams__a_damaged_header__is_not_answered") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  int damaged = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from != "a" || damaged >= 8) return true;
    bytes[4 + static_cast<size_t>(damaged++) % 4] ^= std::byte{64};  // for whom it is
    return true;
  });
  REQUIRE(rig.a.send(rig.at_a, filled(500, 2), 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
  CHECK(rig.a.status_of(2) == Status::success);
  CHECK(rig.a.sink.disconnected.empty());
}

TEST_CASE("secure_datagrams__a_stranger_that_says_what_it_likes__is_counted_and_nobody_else_is_hurt") {
  SecureRig secure;
  Rig& rig = secure.rig;
  RawPeer peer(rig, "p");
  Hello hello;
  hello.attempt = 1;
  hello.secured = true;
  hello.datagram_bytes = 8192;
  peer.send(peer.hello(hello));
  hello.cookie = peer.cookie();
  const Buffer nonsense = bytes_of("GET / HTTP/1.1\r\n\r\n");
  Secured stranger(secure.of_a->handshake(trust::HandshakeSide::dialler));
  REQUIRE(stranger.begin());
  const Buffer words(stranger.unheard().begin(), stranger.unheard().end());
  bool begins_well = true;
  SECTION("no TLS") {
    hello.data = nonsense;
    begins_well = false;
  }
  SECTION("TLS, and then none") { hello.data = words; }
  SECTION("datagrams that are too short") {
    hello.datagram_bytes = 100;
    begins_well = false;
  }
  peer.send(peer.hello(hello));
  if (begins_well) {
    const auto answer = open_packet(peer.got.back());
    REQUIRE(answer->header.kind == PacketKind::handshake);
    const auto piece = decode_handshake_piece(answer->body);
    REQUIRE(piece);
    const PacketHeader header{PacketKind::handshake, packet_version, answer->header.source, 5, piece->key, 0};
    const auto said = static_cast<uint32_t>(piece->bytes.size());
    const auto say = [&](const HandshakePiece& each) {
      peer.send(peer.packet(header, [&](wire::Writer& out) { encode(out, each); }));
    };
    say({77, 8192, said + 1, 0, {}});  // it has taken more than was said
    CHECK(rig.b.counters.get(Counter::acks_rejected) == 1);
    say({78, 8192, 0, 0, {}});  // another key than its hello's
    CHECK(rig.b.counters.get(Counter::datagrams_rejected) == 1);
    say({77, 8192, 0, static_cast<uint32_t>(words.size()) + 9, nonsense});  // it leaves a gap
    say({77, 8192, said, static_cast<uint32_t>(words.size()), nonsense});
  }
  rig.pass(20s);
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
  CHECK(rig.b.sink.requests.empty());
  rig.connect();
}

TEST_CASE("secure_datagrams__half_open_handshakes_in_a_crowd__others_still_get_in_soon") {
  ports::TransportOptions few;
  few.pending_requests_max = 8;
  SecureRig secure({}, few);
  Rig& rig = secure.rig;
  std::vector<std::unique_ptr<RawPeer>> half;
  for (size_t i = 0; i < 8; ++i) {
    half.push_back(std::make_unique<RawPeer>(rig, "h" + std::to_string(i)));
    Secured stranger(secure.of_a->handshake(trust::HandshakeSide::dialler));
    REQUIRE(stranger.begin());
    Hello hello;
    hello.attempt = 1;
    hello.secured = true;
    hello.datagram_bytes = 8192;
    hello.data = stranger.unheard();
    half.back()->send(half.back()->hello(hello));
    hello.cookie = half.back()->cookie();
    half.back()->send(half.back()->hello(hello));
  }
  const Instant began = rig.world.now();
  rig.connect();
  CHECK(rig.world.now() - began <= 6 * connection::silence_when_crowded_max);
  CHECK(rig.b.counters.get(Counter::hello_rejected) >= 1);
}

TEST_CASE("secure_datagrams__many_at_once__all_get_in_though_each_turn_takes_a_few") {
  SecureRig secure;
  Rig& rig = secure.rig;
  const size_t count = 5 * connection::handshakes_per_turn_max;
  const std::string uri = rig.b.transport->uri();
  for (size_t i = 0; i < count; ++i) {
    ports::DialRequest dial;
    dial.uri = uri;
    REQUIRE(rig.a.transport->dial(dial));
  }
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return rig.b.sink.requests.size() == count; }));
  for (const ConnectionId request : rig.b.sink.requests) REQUIRE(rig.b.transport->accept(request) == Status::success);
  rig.world.wake(rig.b.node);
  REQUIRE(rig.run([&] { return rig.a.sink.connected.size() == count; }));
}

}  // namespace
}  // namespace ccixfer::datagram::testing
