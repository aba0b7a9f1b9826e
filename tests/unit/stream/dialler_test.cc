// The dialling side beside an acceptor that answers by hand, and calls that cannot be.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;
using wire::Kind;
using wire::Writer;

TEST_CASE("dialler__hello__says_what_was_asked") {
  Rig rig;
  RawAcceptor q(rig);
  ports::DialRequest request;
  request.role = ports::Role::router;
  request.attribute = ports::Attribute::reliable_unordered;
  const Buffer data = filled(100, 3);
  request.data = data;
  q.dial(request);
  const auto hello = wire::decode_hello(q.got);
  REQUIRE(hello);
  REQUIRE(hello->magic == wire::magic);
  REQUIRE(hello->version == wire::version);
  REQUIRE(hello->role == ports::Role::router);
  REQUIRE(hello->attribute == ports::Attribute::reliable_unordered);
  REQUIRE(Buffer(hello->data.begin(), hello->data.end()) == data);
  REQUIRE(hello->offer.max_send_bytes == max_send_offered_bytes);
  REQUIRE(hello->offer.sends_in_flight_max == ports::TransportOptions{}.sends_in_flight_max);
  REQUIRE(hello->offer.rmas_in_flight_max == ports::TransportOptions{}.rmas_in_flight_max);
}

TEST_CASE("dialler__answers_that_cannot_be__each_its_status") {
  struct Case {
    Status status;
    std::string reason;
    std::function<void(wire::HelloReply&)> change;
  };
  const std::string limits = "the peer's version or limits cannot be used";
  const std::vector<Case> cases{
      {Status::version, limits, [](wire::HelloReply& r) { r.version = wire::version + 1; }},
      {Status::version, limits, [](wire::HelloReply& r) { r.version = wire::version - 1; }},
      {Status::version, limits, [](wire::HelloReply& r) { r.offer.max_send_bytes = ports::max_send_bytes_floor - 1; }},
      {Status::version, limits, [](wire::HelloReply& r) { r.offer.sends_in_flight_max = 0; }},
      {Status::version, limits, [](wire::HelloReply& r) { r.offer.rmas_in_flight_max = 0; }},
      {Status::version, "what answers there is not a ccixfer: not an answer of this protocol",
       [](wire::HelloReply& r) { r.magic ^= 1; }},
      {Status::not_implemented, "no %0A more",
       [](wire::HelloReply& r) {
         r.status = Status::not_implemented;
         r.reason = "no \n more";
       }},
  };
  for (const Case& one : cases) {
    Rig rig;
    RawAcceptor q(rig);
    q.dial();
    wire::HelloReply reply = RawAcceptor::usual();
    one.change(reply);
    q.reply(reply);
    INFO(one.reason);
    REQUIRE(rig.a.sink.connected.size() == 1);
    REQUIRE(rig.a.sink.connected[0].status == one.status);
    REQUIRE(rig.a.sink.connected[0].reason == one.reason);
    q.read();
    REQUIRE(q.closed);
  }
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  wire::HelloReply least = RawAcceptor::usual();
  least.offer = {ports::max_send_bytes_floor, 1, 1};
  q.reply(least);
  q.empty(Kind::connect_accept);
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::success);
  REQUIRE(q.kinds().back() == Kind::connect_ack);
}

TEST_CASE("dialler__rejected_or_left__the_peers_status_and_words") {
  const bool by_bye = GENERATE(false, true);
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.reply(RawAcceptor::usual());
  REQUIRE(rig.a.sink.connected.empty());
  q.frame([&](Writer& w) {
    if (by_bye) {
      wire::encode_bye(w, {Status::disconnected, "go \n away"});
    } else {
      wire::encode_reject(w, {Status::refused, "go \n away"});
    }
  });
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::refused);
  REQUIRE(rig.a.sink.connected[0].reason == "go %0A away");
}

TEST_CASE("dialler__end_notices_of_success_or_cut_off__are_malformed") {
  for (const bool open : {false, true}) {
    for (const bool of_success : {false, true}) {
      Rig rig;
      RawAcceptor q(rig);
      q.dial();
      if (open) {
        q.open();
      } else {
        q.reply(RawAcceptor::usual());
      }
      Buffer notice;
      Writer writer(notice);
      const Kind kind = open ? Kind::bye : Kind::connect_reject;
      // A frame whose header is whole, and what stands in it is no end notice.
      if (of_success) {
        open ? wire::encode_bye(writer, {Status::success, ""}) : wire::encode_reject(writer, {Status::success, ""});
        q.frame([&](Writer& w) { w.bytes(notice); });
      } else {
        q.empty(kind);
      }
      REQUIRE(rig.a.counters.get(Counter::frames_rejected) == 1);
      if (open) REQUIRE(rig.a.sink.disconnected.size() == 1);
      if (!open) REQUIRE(rig.a.sink.connected.size() == 1);
    }
  }
}

TEST_CASE("dialler__its_round_trip_and_its_name__are_what_hops_tell") {
  Rig rig;
  RawAcceptor q(rig);
  const ConnectionId id = q.dial();
  rig.now += 7ms;
  q.reply(RawAcceptor::usual());
  const auto hops = rig.a.transport->hops(id);
  REQUIRE(hops.size() == 1);
  REQUIRE(hops[0].transport == "mem");
  REQUIRE(hops[0].node == "mem://q");
  REQUIRE(hops[0].round_trip == 7ms);
}

TEST_CASE("dialler__gives_up_while_it_waits__cancelled_and_its_stream_ends") {
  for (const bool replied : {false, true}) {
    Rig rig;
    RawAcceptor q(rig);
    const ConnectionId id = q.dial();
    if (replied) q.reply(RawAcceptor::usual());
    rig.a.transport->disconnect(id);
    rig.a.transport->disconnect(id);
    rig.settle();
    q.read();
    REQUIRE(rig.a.sink.connected.size() == 1);
    REQUIRE(rig.a.sink.connected[0].status == Status::cancelled);
    REQUIRE(q.closed);
    q.empty(Kind::connect_accept);  // too late
    REQUIRE(rig.a.sink.connected.size() == 1);
  }
}

TEST_CASE("dialler__data_before_the_acceptance__is_a_violation") {
  Rig rig;
  RawAcceptor q(rig);
  q.dial();
  q.reply(RawAcceptor::usual());
  q.message(0);
  REQUIRE(rig.a.counters.get(Counter::frames_rejected) == 1);
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::error);
  REQUIRE(rig.a.sink.messages.empty());
}

TEST_CASE("stream__calls_that_cannot_be__refused_at_once") {
  Rig rig;
  rig.connect();
  ports::DialRequest dial;
  dial.uri = "mem://b";
  const Buffer data(ports::connect_data_bytes_max + 1);
  dial.data = data;
  REQUIRE(rig.a.transport->dial(dial).error().message == "connect data longer than 1024 bytes");
  dial.data = Bytes(data).first(ports::connect_data_bytes_max);
  REQUIRE(rig.a.transport->dial(dial));
  for (const auto attribute : {ports::Attribute::multicast_send, ports::Attribute::multicast_receive}) {
    dial.attribute = attribute;
    REQUIRE(rig.a.transport->dial(dial).error().message == "multicast is not implemented on this transport");
  }
  const Buffer one(1);
  for (const ConnectionId none : {ConnectionId{99, 1}, ConnectionId{rig.at_a.index, rig.at_a.generation + 1}, ConnectionId{0, 0}}) {
    REQUIRE(rig.send(rig.a, none, one, 1) == Status::not_found);
    REQUIRE(rig.a.transport->rma(none, {}, 1) == Status::not_found);
    REQUIRE(rig.a.transport->accept(none) == Status::not_found);
    REQUIRE(rig.a.transport->reject(none, "") == Status::not_found);
    REQUIRE(rig.a.transport->hops(none).empty());
    REQUIRE_FALSE(rig.a.transport->delivered_bytes(none));
    REQUIRE_FALSE(rig.a.transport->received_bytes(none));
    rig.a.transport->set_keepalive(none, 1s);
    rig.a.transport->set_send_timeout(none, 1s);
    rig.a.transport->hint(none, 1, 1);
    rig.a.transport->disconnect(none);
    rig.a.transport->abort(none);
    rig.a.transport->resume(none);
  }
  REQUIRE(rig.a.transport->accept(rig.at_a) == Status::invalid);
  REQUIRE(rig.a.transport->reject(rig.at_a, "") == Status::invalid);
  const uint32_t most = rig.a.transport->max_send_bytes();
  REQUIRE(rig.send(rig.a, rig.at_a, Buffer(most + 1), 1) == Status::message_size);
  REQUIRE(rig.send(rig.a, rig.at_a, Buffer(most), 1) == Status::success);
  Buffer memory(10);
  ports::RmaRequest request;
  request.write = true;
  request.remote.handle = rig.b.memory.register_region(memory, cci::access_read | cci::access_write);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 2) == Status::invalid);  // of no bytes
  request.write = false;
  request.source = memory;
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 2) == Status::invalid);  // the other side has some
  request.write = true;
  const Buffer words(most + 1);
  request.completion_message = words;  // not said that there is one
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 2) == Status::success);
  request.has_completion_message = true;
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 3) == Status::message_size);
  request.completion_message = Bytes(words).first(most);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 3) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 3; }));
  REQUIRE(rig.a.status_of(3) == Status::success);
  REQUIRE(rig.b.sink.messages.size() == 2);
  rig.a.transport->disconnect(rig.at_a);
  REQUIRE(rig.send(rig.a, rig.at_a, one, 4) == Status::disconnected);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 4) == Status::disconnected);
  rig.connect(ports::Attribute::unreliable);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 5) == Status::invalid);
}

TEST_CASE("stream__as_many_as_agreed__no_buffers_and_no_places_beyond") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 3;
  options.rmas_in_flight_max = 2;
  options.connections_max = 2;
  Rig rig(options);
  rig.connect();
  const Buffer one(1);
  rig.b.sink.buffers = 0;  // nothing ends
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(rig.send(rig.a, rig.at_a, one, i) == Status::success);
  REQUIRE(rig.send(rig.a, rig.at_a, one, 3) == Status::no_buffers);
  Buffer memory(10);
  ports::RmaRequest request;
  request.write = true;
  request.source = memory;
  request.remote.handle = rig.b.memory.register_region(memory, cci::access_write);
  for (uint64_t i = 10; i < 12; ++i) REQUIRE(rig.a.transport->rma(rig.at_a, request, i) == Status::success);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 12) == Status::no_buffers);
  rig.b.sink.buffers = 100;
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 5; }));
  // Behind a fence messages wait, and count.
  request.fence = true;
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 13) == Status::success);
  for (uint64_t i = 20; i < 23; ++i) REQUIRE(rig.send(rig.a, rig.at_a, one, i) == Status::success);
  REQUIRE(rig.send(rig.a, rig.at_a, one, 23) == Status::no_buffers);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 9; }));
  REQUIRE(rig.b.sink.messages.size() == 6);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  REQUIRE(rig.a.transport->dial(dial).error().message == "too many connections");
}

TEST_CASE("stream__keepalive_set_anew__its_probes_count_from_then") {
  ports::TransportOptions options;
  options.keepalive = 0s;
  Rig rig(options);
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.b.transport->set_keepalive(id, 1s);
  rig.pass(3500ms);  // silent: three probes went out, the next is the end
  rig.b.transport->set_keepalive(id, 1s);
  rig.pass(3500ms);
  REQUIRE(rig.b.sink.keepalive_timeouts == 0);
  rig.pass(1s);
  REQUIRE(rig.b.sink.keepalive_timeouts == 1);
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.pass(20s);
  REQUIRE(rig.b.sink.keepalive_timeouts == 1);
  rig.b.transport->set_keepalive(id, forever);
  rig.pass(20s);
  REQUIRE(rig.b.sink.keepalive_timeouts == 1);
}

TEST_CASE("stream__the_first_keepalive__counts_from_the_handshake") {
  ports::TransportOptions options;
  options.keepalive = 2s;
  Rig rig(options);
  rig.pass(100s);  // the clock is far from where it began
  RawPeer peer(rig, "p");
  peer.open();
  rig.pass(1900ms);
  peer.read();
  REQUIRE(peer.got.empty());  // no probe before its time
  rig.pass(200ms);
  peer.read();
  REQUIRE(peer.kinds() == std::vector{Kind::keepalive});
}

}  // namespace
}  // namespace ccixfer::stream::testing
