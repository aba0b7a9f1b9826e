// The dialling side beside an acceptor that answers by hand, and both sides beside peers that stop answering.
#include "tests/unit/datagram/rig.h"
#include "transports/connection/limits.h"

namespace ccixfer::datagram::testing {
namespace {

// Speaks to end `a` of a rig, which dials it.
class RawAcceptor final : public DatagramEvents {
 public:
  explicit RawAcceptor(Rig& rig) : rig_(rig), net_(rig.fabric, rig.world.add_node("q"), "q", 1) {}
  void received(std::span<const Datagram> batch) override {
    for (const Datagram& datagram : batch) {
      a = datagram.peer;
      got.emplace_back(datagram.bytes.begin(), datagram.bytes.end());
    }
  }
  void resolved(uint64_t, Status, const Address&, std::string_view) override {}
  void writable() override {}

  ConnectionId dial(ports::DialRequest request = {}) {
    request.uri = "sim-datagram://q:1";
    const auto id = rig_.a.transport->dial(request);
    REQUIRE(id);
    rig_.world.wake(rig_.a.node);
    settle();
    REQUIRE_FALSE(got.empty());
    source = header().source;
    key = header().key;
    return *id;
  }
  void settle(Duration time = 5ms) {
    rig_.pass(time);
    net_.poll(rig_.world.now(), *this);
  }
  [[nodiscard]] PacketHeader header() const { return open_packet(got.back())->header; }
  [[nodiscard]] Hello hello() const { return decode_hello(open_packet(got.back())->body).value(); }
  [[nodiscard]] size_t count(PacketKind kind) const {
    size_t count = 0;
    for (const Buffer& datagram : got) count += open_packet(datagram)->header.kind == kind ? 1u : 0u;
    return count;
  }
  void send(const PacketHeader& to, const std::function<void(wire::Writer&)>& body) {
    Buffer bytes;
    wire::Writer out(bytes);
    begin_packet(out, to);
    body(out);
    end_packet(out);
    const Datagram one{a, bytes};
    REQUIRE(net_.send({&one, 1}).taken == 1);
    settle();
  }
  void retry(uint64_t with_key, uint64_t issued = 7) {
    send({PacketKind::retry, packet_version, source, 0, with_key, 0}, [&](wire::Writer& out) { encode(out, Cookie{issued, 9}); });
  }
  void refuse(uint64_t with_key) {
    send({PacketKind::refuse, packet_version, source, 0, with_key, 0}, [](wire::Writer& out) {
      encode(out, wire::EndNotice{Status::not_implemented, "not \n here"});
    });
  }
  void frames(const std::function<void(wire::Writer&)>& body) {
    send({PacketKind::data, packet_version, source, 3, key, number++}, body);
  }
  [[nodiscard]] static HelloReplyFrame reply() { return {1, 55, {4000, 16, 8}, 8192}; }
  void open() {
    frames([](wire::Writer& out) {
      encode(out, reply());
      encode(out, AcceptFrame{});
    });
    REQUIRE(rig_.a.sink.connected.back().status == Status::success);
    got.clear();
  }
  void ack_all() {
    uint64_t largest = 0;
    for (const Buffer& datagram : got) {
      const PacketHeader one = open_packet(datagram)->header;
      if (one.kind == PacketKind::data) largest = std::max(largest, one.number);
    }
    frames([&](wire::Writer& out) {
      reliability::Ack ack;
      ack.count = 1;
      ack.list[0] = {0, largest};
      encode_ack(out, ack, 100);
    });
  }

  Address a;
  std::deque<Buffer> got;
  uint32_t source = 0;
  uint64_t key = 0, number = 0;

 private:
  Rig& rig_;
  sim::SimDatagramNet net_;
};

TEST_CASE("dialler__hello__says_what_was_asked_and_comes_again_with_a_longer_pause") {
  Rig rig;
  RawAcceptor q(rig);
  ports::DialRequest request;
  request.role = ports::Role::router;
  request.attribute = ports::Attribute::reliable_unordered;
  const Buffer data = filled(100, 3);
  request.data = data;
  q.dial(request);
  REQUIRE(q.got.size() == 1);
  REQUIRE(q.got.back().size() >= hello_bytes_min);
  REQUIRE(q.header().kind == PacketKind::hello);
  REQUIRE(q.header().key != 0);
  REQUIRE(q.hello().attempt == 1);
  REQUIRE(q.hello().role == ports::Role::router);
  REQUIRE(q.hello().attribute == ports::Attribute::reliable_unordered);
  REQUIRE(Buffer(q.hello().data.begin(), q.hello().data.end()) == data);
  REQUIRE_FALSE(q.hello().cookie);
  q.settle(hello_pause_first - 20ms);
  REQUIRE(q.got.size() == 1);
  q.settle(30ms);
  REQUIRE(q.got.size() == 2);
  REQUIRE(q.hello().attempt == 2);
  q.settle(2 * hello_pause_first - 30ms);
  REQUIRE(q.got.size() == 2);
  q.settle(40ms);
  REQUIRE(q.got.size() == 3);
  q.settle(6s);  // 1, 2 s, and 2 s again
  REQUIRE(q.got.size() == 6);
}

TEST_CASE("dialler__retry__its_cookie_comes_back_at_once_and_only_once") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.retry(q.key + 1);  // a guess
  REQUIRE(q.got.size() == 1);
  q.send({PacketKind::retry, packet_version, q.source + 1, 0, q.key, 0}, [&](wire::Writer& out) {
    encode(out, Cookie{7, 9});
  });  // of nobody
  REQUIRE(q.got.size() == 1);
  q.send({PacketKind::retry, packet_version, q.source, 0, q.key, 0}, [](wire::Writer& out) { out.u64(1); });  // half a cookie
  REQUIRE(q.got.size() == 1);
  q.retry(q.key);
  REQUIRE(q.got.size() == 2);
  REQUIRE(q.hello().cookie);
  REQUIRE(q.hello().cookie->issued_at_ns == 7);
  REQUIRE(q.hello().attempt == 2);
  q.retry(q.key, 8);  // another one does not make it hurry
  REQUIRE(q.got.size() == 2);
  q.settle(hello_pause_first);
  REQUIRE(q.got.size() == 3);
  REQUIRE(q.hello().cookie->issued_at_ns == 8);
}

TEST_CASE("dialler__a_late_retry__its_answer_comes_again_after_the_first_pause") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.settle(4s);  // the pause is 2 s by now
  q.retry(q.key);
  const size_t before = q.got.size();
  REQUIRE(q.hello().cookie);
  q.settle(hello_pause_first + 20ms);
  REQUIRE(q.got.size() == before + 1);
}

TEST_CASE("dialler__retries_go_on__somebody_is_there_and_it_waits_as_long_as_asked") {
  Rig rig;
  RawAcceptor q(rig);
  ports::DialRequest request;
  request.timeout = 25s;
  q.dial(request);
  for (int i = 0; i < 24; ++i) {
    q.settle(995ms);
    q.retry(q.key);
    REQUIRE(rig.a.sink.connected.empty());
  }
  q.settle(2s);
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::timed_out);
  REQUIRE(rig.a.sink.connected[0].reason == "no answer in time");
}

TEST_CASE("dialler__refusals__from_whom_it_asked_only") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.refuse(q.key + 1);
  q.send({PacketKind::refuse, packet_version, q.source, 0, q.key, 0}, [](wire::Writer& out) { out.u8(1); });  // malformed
  REQUIRE(rig.a.sink.connected.empty());
  REQUIRE(rig.a.counters.get(Counter::frames_rejected) == 1);
  RawPeer stranger(rig, "p");  // the same words from another address
  stranger.b = q.a;
  stranger.send(stranger.packet({PacketKind::refuse, packet_version, q.source, 0, q.key, 0}, [](wire::Writer& out) {
    encode(out, wire::EndNotice{Status::not_implemented, ""});
  }));
  REQUIRE(rig.a.sink.connected.empty());
  q.refuse(q.key);
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::not_implemented);
  REQUIRE(rig.a.sink.connected[0].reason == "not %0A here");
  q.refuse(q.key);
  REQUIRE(rig.a.sink.connected.size() == 1);
}

// Who refuses for its version's sake says so in its own.
TEST_CASE("dialler__other_versions__only_refusals_are_read") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  const uint8_t other = packet_version + 1;
  const uint64_t before = rig.a.counters.get(Counter::datagrams_rejected);
  q.send({PacketKind::retry, other, q.source, 0, q.key, 0}, [](wire::Writer& out) { encode(out, Cookie{7, 9}); });
  REQUIRE(q.got.size() == 1);
  REQUIRE(rig.a.counters.get(Counter::datagrams_rejected) == before + 1);
  q.send({PacketKind::data, other, q.source, 3, q.key, 0}, [](wire::Writer& out) { encode(out, RawAcceptor::reply()); });
  REQUIRE(rig.a.counters.get(Counter::datagrams_rejected) == before + 2);
  q.send({PacketKind::refuse, other, q.source, 0, q.key, 0}, [](wire::Writer& out) {
    encode(out, wire::EndNotice{Status::version, "newer"});
  });
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::version);
}

TEST_CASE("peer__end_notices_that_say_nothing_known__are_malformed") {
  for (const unsigned status : {0u, 200u, static_cast<unsigned>(Status::success)}) {
    Rig rig;
    RawPeer peer(rig, "p");
    peer.open();
    peer.frames([&](wire::Writer& out) {
      out.u8(static_cast<uint8_t>(FrameKind::bye));
      out.u8(static_cast<uint8_t>(status));
      out.text16("bye");
    });
    REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  }
}

TEST_CASE("frames__bytes_that_have_two_values__any_third_is_malformed") {
  const auto decodes = [](const std::function<void(wire::Writer&)>& body) {
    Buffer bytes;
    wire::Writer out(bytes);
    body(out);
    wire::Reader in(bytes);
    return decode_frame(in).has_value();
  };
  for (unsigned value = 0; value < 4; ++value) {
    REQUIRE(decodes([&](wire::Writer& out) {
              out.u8(static_cast<uint8_t>(FrameKind::rma_end));
              out.u64(1 << 16);
              out.u8(static_cast<uint8_t>(Status::rma_handle));
              out.u8(static_cast<uint8_t>(value));
              out.u64(0);
            }) == (value <= 1));
    REQUIRE(decodes([&](wire::Writer& out) {
              out.u8(static_cast<uint8_t>(FrameKind::message));
              out.u64(1);
              out.u32(0);
              out.u8(static_cast<uint8_t>(value));
              out.bytes16({});
            }) == (value <= 1));
  }
  for (const bool reject : {true, false}) {
    Buffer bytes;
    wire::Writer out(bytes);
    encode(out, EndNoticeFrame{reject, {Status::refused, "no"}});
    wire::Reader in(bytes);
    REQUIRE(std::get<EndNoticeFrame>(decode_frame(in).value()).reject == reject);
  }
  REQUIRE_FALSE(decodes([](wire::Writer& out) { encode(out, MessageFrame{0, 0, true, Buffer(1)}); }));  // nothing, with bytes
  REQUIRE_FALSE(decodes([](wire::Writer& out) { encode(out, RmaEndFrame{1 << 16, Status::success, false}); }));
  REQUIRE(decodes([](wire::Writer& out) { encode(out, RmaEndFrame{1 << 16, Status::success, true}); }));
  REQUIRE_FALSE(decodes([](wire::Writer& out) { encode(out, RmaReadFrame{1 << 16, 0, {}}); }));
  REQUIRE_FALSE(decodes([](wire::Writer& out) { encode(out, RmaReadDataFrame{1 << 16, 0, {}}); }));
  for (const Status status : {Status::success, Status::receiver_not_ready, Status::disconnected, Status::timed_out}) {
    MessageAckFrame ack;
    ack.status = status;
    REQUIRE(decodes([&](wire::Writer& out) { encode(out, ack); }) == (status != Status::timed_out));
  }
}

TEST_CASE("datagram__keepalive_set_anew__its_probes_count_from_then") {
  ports::TransportOptions options;
  options.keepalive = 0s;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.b.transport->set_keepalive(id, 1s);
  rig.world.wake(rig.b.node);
  rig.pass(3500ms);  // silent: three probes went out, the next is the end
  peer.got.clear();
  rig.b.transport->set_keepalive(id, 1s);
  rig.world.wake(rig.b.node);
  rig.pass(3500ms);
  REQUIRE(rig.b.sink.keepalives == 0);
  rig.pass(1s);
  REQUIRE(rig.b.sink.keepalives == 1);
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.pass(20s);
  REQUIRE(rig.b.sink.keepalives == 1);  // one event, and then none
}

TEST_CASE("dialler__limits_that_cannot_be_used__version") {
  const std::vector<std::function<void(HelloReplyFrame&)>> changes{
      [](HelloReplyFrame& f) { f.key = 0; },
      [](HelloReplyFrame& f) { f.offer.max_send_bytes = ports::max_send_bytes_floor - 1; },
      [](HelloReplyFrame& f) { f.offer.sends_in_flight_max = 0; },
      [](HelloReplyFrame& f) { f.offer.rmas_in_flight_max = 0; },
      [](HelloReplyFrame& f) { f.datagram_bytes = datagram_bytes_min - 1; },
  };
  for (size_t i = 0; i <= changes.size(); ++i) {
    Rig rig;
    RawAcceptor q(rig);
    q.dial();
    HelloReplyFrame frame = RawAcceptor::reply();
    frame.offer = {ports::max_send_bytes_floor, 1, 1};
    frame.datagram_bytes = datagram_bytes_min;
    if (i < changes.size()) changes[i](frame);
    q.frames([&](wire::Writer& out) { encode(out, frame); });
    const bool fine = i == changes.size();
    REQUIRE(rig.a.sink.connected.size() == (fine ? 0 : 1));
    REQUIRE(rig.a.counters.get(Counter::hello_rejected) == (fine ? 0 : 1));
    if (!fine) REQUIRE(rig.a.sink.connected[0].status == Status::version);
  }
}

TEST_CASE("dialler__data_before_the_acceptance__waits_for_it_and_greetings_come_twice") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  const auto message = [](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("x")}); };
  q.frames(message);  // it overtook both
  q.frames([](wire::Writer& out) { encode(out, AcceptFrame{}); });
  REQUIRE(rig.a.sink.connected.empty());
  q.frames([](wire::Writer& out) { encode(out, RawAcceptor::reply()); });
  REQUIRE(rig.a.sink.connected.empty());
  q.frames(message);
  REQUIRE(rig.a.sink.messages.empty());
  q.frames([](wire::Writer& out) { encode(out, RawAcceptor::reply()); });
  q.frames([](wire::Writer& out) { encode(out, AcceptFrame{}); });
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::success);
  q.frames(message);
  REQUIRE(rig.a.sink.messages.size() == 1);
  q.frames([](wire::Writer& out) { encode(out, AcceptFrame{}); });
  q.frames([](wire::Writer& out) { encode(out, RawAcceptor::reply()); });
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.disconnected.empty());
}

TEST_CASE("dialler__greetings_and_data_in_one_packet__the_same_order_holds") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.frames([](wire::Writer& out) {
    encode(out, RawAcceptor::reply());
    encode(out, MessageFrame{0, 0, false, as_bytes("x")});
  });
  REQUIRE(rig.a.sink.messages.empty());
  REQUIRE(rig.a.sink.connected.empty());
  q.frames([](wire::Writer& out) {
    encode(out, RawAcceptor::reply());
    encode(out, AcceptFrame{});
    encode(out, MessageFrame{0, 0, false, as_bytes("y")});
  });
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.messages.size() == 1);
  REQUIRE(rig.a.sink.disconnected.empty());
}

TEST_CASE("dialler__its_round_trip__of_the_hello_that_was_answered") {
  Rig rig;
  RawAcceptor q(rig);
  const ConnectionId id = q.dial();
  q.settle(760ms);  // the second and third hello go out meanwhile
  REQUIRE(q.hello().attempt == 3);
  HelloReplyFrame reply = RawAcceptor::reply();
  reply.attempt = 3;
  q.frames([&](wire::Writer& out) {
    encode(out, reply);
    encode(out, AcceptFrame{});
  });
  const auto hops = rig.a.transport->hops(id);
  REQUIRE(hops.size() == 1);
  REQUIRE(hops[0].transport == "sim-datagram");
  REQUIRE(hops[0].node == "sim-datagram://q:1");
  REQUIRE(hops[0].round_trip > 0ns);
  REQUIRE(hops[0].round_trip < 100ms);

  for (const uint32_t attempt : {0u, 9u}) {  // of none that went out: it is not known
    Rig other;
    RawAcceptor there(other);
    const ConnectionId second = there.dial();
    reply.attempt = attempt;
    there.frames([&](wire::Writer& out) {
      encode(out, reply);
      encode(out, AcceptFrame{});
    });
    REQUIRE(other.a.transport->hops(second)[0].round_trip == 0ns);
  }
}

TEST_CASE("dialler__gives_up_while_it_waits__cancelled_and_the_acceptor_is_told") {
  Rig rig;
  RawAcceptor q(rig);
  const ConnectionId before = q.dial();
  rig.a.transport->disconnect(before);
  rig.world.wake(rig.a.node);
  q.settle();
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::cancelled);
  const ConnectionId after_reply = q.dial();
  q.frames([](wire::Writer& out) { encode(out, RawAcceptor::reply()); });
  q.got.clear();
  rig.a.transport->disconnect(after_reply);
  rig.a.transport->disconnect(after_reply);  // once
  rig.world.wake(rig.a.node);
  q.settle();
  REQUIRE(rig.a.sink.connected.size() == 2);
  REQUIRE(rig.a.sink.connected[1].status == Status::cancelled);
  REQUIRE_FALSE(q.got.empty());
  wire::Reader in(open_packet(q.got.back())->body);
  bool told = false;
  while (in.remaining() > 0) {
    const auto frame = decode_frame(in);
    REQUIRE(frame);
    told = told || std::holds_alternative<EndNoticeFrame>(*frame);
  }
  REQUIRE(told);
}

TEST_CASE("acceptor__dialler_never_acknowledges__timed_out_after_the_handshake_timeout") {
  ports::TransportOptions options;
  options.keepalive = 0s;
  options.handshake_timeout = 4s;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  Hello greeting = RawPeer::usual();
  peer.send(peer.hello(greeting));
  greeting.cookie = peer.cookie();
  peer.send(peer.hello(greeting));
  REQUIRE(rig.b.sink.requests.size() == 1);
  rig.pass(30s);  // to decide takes as long as it takes
  REQUIRE(rig.b.sink.disconnected.empty());
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::success);
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::invalid);
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "") == Status::invalid);
  rig.world.wake(rig.b.node);
  rig.pass(3900ms);
  REQUIRE(rig.b.sink.accepted.empty());
  rig.pass(200ms);
  REQUIRE(rig.b.sink.accepted.size() == 1);
  REQUIRE(rig.b.sink.accepted[0].status == Status::timed_out);
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::not_found);
}

TEST_CASE("acceptor__leaves_before_the_dialler_knows__cancelled_and_after_it_silently") {
  for (const bool early : {true, false}) {
    Rig rig;
    ports::DialRequest dial;
    dial.uri = "sim-datagram://b:1";
    REQUIRE(rig.a.transport->dial(dial));
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] { return rig.b.sink.requests.size() == 1; }));
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::success);
    rig.world.wake(rig.b.node);
    if (!early) REQUIRE(rig.run([&] { return rig.b.sink.accepted.size() == 1; }));
    rig.b.transport->disconnect(rig.b.sink.requests[0]);
    rig.b.transport->disconnect(rig.b.sink.requests[0]);
    rig.world.wake(rig.b.node);
    REQUIRE(rig.run([&] { return rig.a.sink.disconnected.size() == 1; }));
    REQUIRE(rig.b.sink.accepted.size() == 1);
    REQUIRE(rig.b.sink.accepted[0].status == (early ? Status::cancelled : Status::success));
    REQUIRE(rig.b.sink.disconnected.empty());
  }
}

TEST_CASE("peer__never_answers_a_goodbye__its_place_is_free_after_a_while") {
  ports::TransportOptions options;
  options.connections_max = 1;
  options.keepalive = 0s;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  peer.frames([](wire::Writer& out) { out.u8(99); });  // a violation: it is cut off
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.send(id, Buffer(1), 1) == Status::not_found);
  ports::DialRequest dial;
  dial.uri = "sim-datagram://a:1";
  REQUIRE_FALSE(rig.b.transport->dial(dial));  // no place yet
  REQUIRE(rig.b.transport->dial(dial).error().message == "too many connections");
  rig.pass(connection::goodbye_wait_max + 100ms);
  REQUIRE(rig.b.transport->dial(dial));
}

TEST_CASE("peer__answers_a_goodbye__its_place_is_free_at_once") {
  ports::TransportOptions options;
  options.connections_max = 1;
  Rig rig({}, options);
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { out.u8(99); });
  const bool by_notice = GENERATE(true, false);
  if (by_notice) {
    peer.frames([](wire::Writer& out) { encode(out, EndNoticeFrame{false, {Status::disconnected, ""}}); });
  } else {
    peer.send(peer.packet({PacketKind::gone, packet_version, peer.index, 0, 77, 0}, [](wire::Writer&) {}));
  }
  ports::DialRequest dial;
  dial.uri = "sim-datagram://a:1";
  REQUIRE(rig.b.transport->dial(dial));
}

TEST_CASE("datagram__calls_that_cannot_be__refused_at_once") {
  Rig rig;
  rig.connect();
  ports::DialRequest dial;
  dial.uri = "sim-datagram://b:1";
  const Buffer data(ports::connect_data_bytes_max + 1);
  dial.data = data;
  REQUIRE(rig.a.transport->dial(dial).error().kind == ErrorKind::usage);
  dial.data = Bytes(data).first(ports::connect_data_bytes_max);
  REQUIRE(rig.a.transport->dial(dial));
  dial.uri = "b";
  REQUIRE(rig.a.transport->dial(dial).error().kind == ErrorKind::usage);
  for (const auto attribute : {ports::Attribute::multicast_send, ports::Attribute::multicast_receive}) {
    dial.uri = "sim-datagram://b:1";
    dial.attribute = attribute;
    REQUIRE(rig.a.transport->dial(dial).error().kind == ErrorKind::usage);  // no name of a group
  }
  const ConnectionId none{9, 1};
  REQUIRE(rig.a.send(none, Buffer(1), 1) == Status::not_found);
  REQUIRE(rig.a.rma(none, {}, 1) == Status::not_found);
  REQUIRE(rig.a.transport->accept(none) == Status::not_found);
  REQUIRE(rig.a.transport->reject(none, "") == Status::not_found);
  REQUIRE(rig.a.transport->accept(rig.at_a) == Status::invalid);  // not a request
  REQUIRE(rig.a.transport->hops(none).empty());
  rig.a.transport->set_keepalive(none, 1s);
  rig.a.transport->set_send_timeout(none, 1s);
  rig.a.transport->hint(none, 1, 1);
  rig.a.transport->disconnect(none);
  const uint32_t most = rig.a.transport->max_send_bytes();
  REQUIRE(rig.a.send(rig.at_a, Buffer(most + 1), 1) == Status::message_size);
  REQUIRE(rig.a.send(rig.at_a, Buffer(most), 1) == Status::success);
  Buffer memory(10);
  ports::RmaRequest request;
  request.write = true;
  request.remote.handle = rig.b.memory.register_region(memory, cci::access_write);
  REQUIRE(rig.a.rma(rig.at_a, request, 2) == Status::invalid);  // of no bytes
  request.source = memory;
  request.has_completion_message = true;
  const Buffer words(most + 1);
  request.completion_message = words;
  REQUIRE(rig.a.rma(rig.at_a, request, 2) == Status::message_size);
  request.completion_message = Bytes(words).first(most);
  REQUIRE(rig.a.rma(rig.at_a, request, 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2) == Status::success; }));
  REQUIRE(rig.b.sink.messages.size() == 2);
  rig.a.transport->disconnect(rig.at_a);
  REQUIRE(rig.a.send(rig.at_a, Buffer(1), 3) == Status::disconnected);
  REQUIRE(rig.a.rma(rig.at_a, request, 3) == Status::disconnected);
  rig.connect(ports::Attribute::unreliable);
  REQUIRE(rig.a.rma(rig.at_a, request, 4) == Status::invalid);
}

TEST_CASE("datagram__as_many_in_flight_as_agreed__no_buffers_beyond") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 3;
  options.rmas_in_flight_max = 2;
  Rig rig({}, options);
  rig.connect();
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(rig.a.send(rig.at_a, Buffer(1), i) == Status::success);
  REQUIRE(rig.a.send(rig.at_a, Buffer(1), 3) == Status::no_buffers);
  Buffer memory(10);
  ports::RmaRequest request;
  request.write = true;
  request.source = memory;
  request.remote.handle = rig.b.memory.register_region(memory, cci::access_write);
  for (uint64_t i = 10; i < 12; ++i) REQUIRE(rig.a.rma(rig.at_a, request, i) == Status::success);
  REQUIRE(rig.a.rma(rig.at_a, request, 12) == Status::no_buffers);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 5; }));
  request.fence = true;
  REQUIRE(rig.a.rma(rig.at_a, request, 13) == Status::success);
  for (uint64_t i = 20; i < 23; ++i) REQUIRE(rig.a.send(rig.at_a, Buffer(1), i) == Status::success);  // behind the fence
  REQUIRE(rig.a.send(rig.at_a, Buffer(1), 23) == Status::no_buffers);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 9; }));
}

}  // namespace
}  // namespace ccixfer::datagram::testing
