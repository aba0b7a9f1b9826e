// What may be asked of the transport, when, and that each call from above wakes up who waits for it.
#include "tests/unit/stream/own_trust.h"
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

ports::TransportOptions without_keepalive() {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  return options;
}

ports::RmaRequest write_of(Bytes source) {
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;
  request.source = source;
  return request;
}

TEST_CASE("calls__on_what_is_no_connection_yet_or_no_more__refused_and_nothing_happens") {
  Rig rig;
  const Buffer message = filled(10, 1);
  const auto statuses = [&](ConnectionId id) {
    return std::vector{rig.a.transport->accept(id), rig.a.transport->reject(id, "no"), rig.send(rig.a, id, message, 1),
                       rig.a.transport->rma(id, write_of(message), 2)};
  };
  using List = std::vector<Status>;
  const List unknown(4, Status::not_found);
  const List early = {Status::invalid, Status::invalid, Status::not_found, Status::not_found};
  for (const ConnectionId nobody : {ConnectionId{}, ConnectionId{0, 1}, ConnectionId{5, 1}}) CHECK(statuses(nobody) == unknown);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  const ConnectionId id = *rig.a.transport->dial(dial);
  CHECK(statuses(id) == early);
  rig.a.transport->hint(id, 1, 1);
  rig.settle();
  CHECK(statuses(id) == early);  // it waits for the peer's decision
  const ConnectionId request = rig.b.sink.requests.at(0);
  CHECK(rig.send(rig.b, request, message, 1) == Status::not_found);
  CHECK(rig.b.transport->rma(request, write_of(message), 2) == Status::not_found);
  REQUIRE(rig.b.transport->accept(request) == Status::success);
  CHECK(rig.b.transport->accept(request) == Status::invalid);
  CHECK(rig.b.transport->reject(request, "too late") == Status::invalid);
  rig.settle();
  CHECK(rig.a.transport->accept(id) == Status::invalid);
  CHECK(rig.a.transport->reject(id, "too late") == Status::invalid);
  CHECK(rig.send(rig.a, id, message, 3) == Status::success);
  const ConnectionId former{id.index, id.generation - 1}, later{id.index, id.generation + 1};
  CHECK(statuses(former) == unknown);
  CHECK(statuses(later) == unknown);
  for (const ConnectionId wrong : {former, later, ConnectionId{}, ConnectionId{9, 9}}) {
    rig.a.transport->disconnect(wrong);
    rig.a.transport->abort(wrong);
    rig.a.transport->resume(wrong);
    rig.a.transport->hint(wrong, 1, 1);
    rig.a.transport->set_send_timeout(wrong, 1s);
    rig.a.transport->set_keepalive(wrong, 1s);
    CHECK_FALSE(rig.a.transport->delivered_bytes(wrong));
    CHECK_FALSE(rig.a.transport->received_bytes(wrong));
    CHECK(rig.a.transport->hops(wrong).empty());
  }
  rig.settle();
  CHECK(rig.a.status_of(3) == Status::success);
  CHECK(rig.a.sink.completions.size() == 1);
}

TEST_CASE("calls__after_our_disconnect__nothing_more_is_issued") {
  Rig rig;
  rig.connect();
  const Buffer message = filled(10, 1);
  rig.b.sink.buffers = 0;
  REQUIRE(rig.send(rig.a, rig.at_a, message, 1) == Status::success);  // b does not take it: we keep closing
  rig.a.transport->disconnect(rig.at_a);
  const auto refused = [&] {
    CHECK(rig.send(rig.a, rig.at_a, message, 2) == Status::disconnected);
    CHECK(rig.a.transport->rma(rig.at_a, write_of(message), 3) == Status::disconnected);
    rig.a.transport->hint(rig.at_a, 1, 1);
    rig.a.transport->disconnect(rig.at_a);
  };
  refused();  // not acted upon yet
  rig.settle();
  refused();
  REQUIRE(rig.b.sink.disconnected.empty());
  rig.b.sink.buffers = 1;
  rig.pass(1s);
  CHECK(rig.a.status_of(1) == Status::success);
  CHECK(rig.a.sink.completions.size() == 1);
  CHECK(rig.a.sink.disconnected.empty());  // who left is not told
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected[0].status == Status::disconnected);
  CHECK(rig.send(rig.a, rig.at_a, message, 4) == Status::not_found);
}

// Its answer to our message says that it takes no more, before it says goodbye.
// Whatever it waits for: its memory is wanted back at once.
TEST_CASE("calls__abort__ends_what_is_in_flight_in_the_next_turn_also_of_one_that_was_left") {
  Rig rig;
  rig.connect();
  rig.b.sink.buffers = 0;
  const Buffer message = filled(10, 1);
  REQUIRE(rig.send(rig.a, rig.at_a, message, 1) == Status::success);
  rig.settle();
  const bool left = GENERATE(false, true);
  if (left) rig.a.transport->disconnect(rig.at_a);
  rig.settle();
  REQUIRE(rig.a.sink.completions.empty());
  rig.a.transport->abort(rig.at_a);
  CHECK(rig.send(rig.a, rig.at_a, message, 2) == Status::disconnected);
  rig.settle();
  REQUIRE(rig.a.sink.completions.size() == 1);
  CHECK(rig.a.status_of(1) == Status::disconnected);
  CHECK(rig.hub.links[0].ends[0] == nullptr);
  CHECK(rig.b.sink.disconnected.size() == 1);
}

TEST_CASE("calls__dialled_ahead__the_peer_is_asked_at_once_when_it_is_known_what_for") {
  const bool proves = GENERATE(false, true);
  const auto trust = [&] { return proves ? std::make_shared<ccixfer::testing::OwnTrust>() : nullptr; };
  Rig rig({}, trust(), trust());
  ports::DialRequest dial;
  dial.uri = "mem://b";
  dial.ahead = true;
  REQUIRE(rig.a.transport->dials_ahead());
  const ConnectionId id = *rig.a.transport->dial(dial);
  rig.settle();
  CHECK(rig.b.sink.requests.empty());
  CHECK(rig.a.sink.connected.empty());
  CHECK(rig.a.transport->ask({9, 9}, filled(10, 1)) == Status::not_found);
  CHECK(rig.a.transport->ask(id, filled(ports::connect_data_bytes_max + 1, 1)) == Status::invalid);
  REQUIRE(rig.a.transport->ask(id, filled(10, 1)) == Status::success);
  CHECK(rig.a.transport->ask(id, filled(10, 1)) == Status::invalid);
  rig.a.transport->turn(rig.now);
  rig.b.transport->turn(rig.now);
  REQUIRE(rig.b.sink.requests.size() == 1);  // in one flight: the proof of both ends is done
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::success);
  rig.settle();
  REQUIRE(rig.a.sink.connected.size() == 1);
  CHECK(rig.a.sink.connected[0].status == Status::success);
  REQUIRE(rig.send(rig.a, id, filled(10, 1), 1) == Status::success);
  rig.settle();
  CHECK(rig.b.sink.messages.size() == 1);
}

TEST_CASE("calls__dialled_ahead_and_left__the_peer_sees_a_dialler_that_said_nothing") {
  Rig rig;
  ports::DialRequest dial;
  dial.uri = "mem://b";
  dial.ahead = true;
  const ConnectionId id = *rig.a.transport->dial(dial);
  rig.settle();
  rig.a.transport->disconnect(id);
  CHECK(rig.a.transport->ask(id, {}) == Status::not_found);
  rig.settle();
  CHECK(rig.b.sink.requests.empty());
  CHECK(rig.b.sink.disconnected.empty());
}

// Nothing is in flight on what is not open yet: it is left as by a disconnect, and the peer has its answer.
TEST_CASE("calls__abort_of_a_request_or_a_dial__is_a_disconnect") {
  Rig rig;
  ports::DialRequest dial;
  dial.uri = "mem://b";
  const auto id = rig.a.transport->dial(dial);
  REQUIRE(id);
  SECTION("the request") {
    rig.settle();
    REQUIRE(rig.b.sink.requests.size() == 1);
    rig.b.transport->abort(rig.b.sink.requests[0]);
    rig.settle();
    REQUIRE(rig.a.sink.connected.size() == 1);
    CHECK(rig.a.sink.connected[0].status == Status::refused);
    CHECK(rig.a.sink.connected[0].reason == "disconnected");
    CHECK(rig.b.sink.accepted.empty());
    CHECK(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::not_found);
  }
  SECTION("the dial, at any time") {
    if (GENERATE(false, true)) rig.settle();
    rig.a.transport->abort(*id);
    rig.settle();
    REQUIRE(rig.a.sink.connected.size() == 1);
    CHECK(rig.a.sink.connected[0].status == Status::cancelled);
    CHECK(rig.hub.links.at(0).ends[0] == nullptr);
  }
}

TEST_CASE("calls__to_a_peer_that_leaves__nothing_more_is_issued") {
  Rig rig;
  rig.connect();
  const Buffer message = filled(10, 1);
  rig.a.sink.buffers = 0;
  REQUIRE(rig.send(rig.b, rig.at_b, message, 1) == Status::success);  // b keeps closing
  rig.b.transport->disconnect(rig.at_b);
  rig.settle();
  REQUIRE(rig.a.sink.disconnected.empty());
  REQUIRE(rig.send(rig.a, rig.at_a, message, 2) == Status::success);
  rig.settle();
  CHECK(rig.a.status_of(2) == Status::disconnected);
  REQUIRE(rig.a.sink.disconnected.empty());
  CHECK(rig.send(rig.a, rig.at_a, message, 3) == Status::disconnected);
  CHECK(rig.a.transport->rma(rig.at_a, write_of(message), 4) == Status::disconnected);
}

TEST_CASE("calls__bounds_of_a_connection__are_those_agreed_and_each_is_reached") {
  ports::TransportOptions options = without_keepalive();
  options.sends_in_flight_max = 5;
  options.rmas_in_flight_max = 3;
  Rig rig(options);
  rig.connect();
  const Buffer largest(max_send_offered_bytes), larger(max_send_offered_bytes + 1), bytes(10);
  CHECK(rig.send(rig.a, rig.at_a, larger, 1) == Status::message_size);
  ports::RmaRequest request = write_of(bytes);
  request.has_completion_message = true;
  request.completion_message = larger;
  CHECK(rig.a.transport->rma(rig.at_a, request, 2) == Status::message_size);
  request.completion_message = largest;
  request.fence = true;
  request.source = {};
  CHECK(rig.a.transport->rma(rig.at_a, request, 2) == Status::invalid);
  request.write = false;
  CHECK(rig.a.transport->rma(rig.at_a, request, 2) == Status::invalid);
  request.write = true;
  request.source = bytes;
  Buffer target(10);
  request.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  for (uint64_t token = 10; token < 12; ++token) REQUIRE(rig.send(rig.a, rig.at_a, largest, token) == Status::success);
  for (uint64_t token = 20; token < 23; ++token) REQUIRE(rig.a.transport->rma(rig.at_a, request, token) == Status::success);
  CHECK(rig.a.transport->rma(rig.at_a, request, 23) == Status::no_buffers);
  // Those that wait for the fence count as well.
  for (uint64_t token = 12; token < 15; ++token) REQUIRE(rig.send(rig.a, rig.at_a, bytes, token) == Status::success);
  CHECK(rig.send(rig.a, rig.at_a, bytes, 15) == Status::no_buffers);
  rig.settle();
  for (const uint64_t token : {10u, 11u, 12u, 13u, 14u, 20u, 21u, 22u}) CHECK(rig.a.status_of(token) == Status::success);
  CHECK(rig.a.sink.completions.size() == 8);
  CHECK(rig.b.sink.messages.size() == 8);
}

TEST_CASE("calls__unreliable_connection__has_no_rma") {
  Rig rig;
  rig.connect(ports::Attribute::unreliable);
  const Buffer bytes(10);
  CHECK(rig.a.transport->rma(rig.at_a, write_of(bytes), 1) == Status::invalid);
  CHECK(rig.send(rig.a, rig.at_a, bytes, 2) == Status::success);
  rig.settle();
  CHECK(rig.b.sink.messages.size() == 1);
}

TEST_CASE("calls__dials_that_cannot_be__refused_before_anything_is_sent") {
  ports::TransportOptions options = without_keepalive();
  options.connections_max = 2;
  Rig rig(options);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  for (const auto attribute : {ports::Attribute::multicast_send, ports::Attribute::multicast_receive}) {
    dial.attribute = attribute;
    const auto refused = rig.a.transport->dial(dial);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::usage);
  }
  dial.attribute = ports::Attribute::reliable_ordered;
  Buffer data(ports::connect_data_bytes_max + 1);
  dial.data = data;
  REQUIRE_FALSE(rig.a.transport->dial(dial));
  dial.uri = "other://b";
  dial.data = {};
  REQUIRE_FALSE(rig.a.transport->dial(dial));
  CHECK(rig.hub.links.empty());
  dial.uri = "mem://b";
  dial.data = Bytes(data).first(ports::connect_data_bytes_max);
  for (int i = 0; i < 2; ++i) REQUIRE(rig.a.transport->dial(dial));
  const auto crowded = rig.a.transport->dial(dial);
  REQUIRE_FALSE(crowded);
  CHECK(crowded.error().kind == ErrorKind::network);
  CHECK(rig.a.net->accept_paused);  // the same bound
  rig.settle();
  REQUIRE(rig.b.sink.requests.size() == 2);
  CHECK(rig.b.net->accept_paused);
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "no") == Status::success);
  rig.settle();
  CHECK_FALSE(rig.a.net->accept_paused);
  CHECK(rig.a.transport->dial(dial));
}

// --- Who waits on the handle is woken for each call from above, once ---

TEST_CASE("calls__from_above__set_the_deadline_to_now_and_only_the_first_of_a_turn_does") {
  Rig rig(without_keepalive());
  rig.connect();
  Buffer bytes(10);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  rig.settle();
  const ConnectionId request = rig.b.sink.requests.back();
  End* end = &rig.a;
  std::function<void()> call;
  SECTION("dial") {
    call = [&] { REQUIRE(rig.a.transport->dial(dial)); };
  }
  SECTION("disconnect") {
    call = [&] { rig.a.transport->disconnect(rig.at_a); };
  }
  SECTION("abort") {
    call = [&] { rig.a.transport->abort(rig.at_a); };
  }
  SECTION("rma") {
    call = [&] { REQUIRE(rig.a.transport->rma(rig.at_a, write_of(bytes), 1) == Status::success); };
  }
  SECTION("resume") {
    call = [&] { rig.a.transport->resume(rig.at_a); };
  }
  SECTION("hint") {
    call = [&] { rig.a.transport->hint(rig.at_a, 1, 1); };
  }
  SECTION("keepalive") {
    call = [&] { rig.a.transport->set_keepalive(rig.at_a, 1s); };
  }
  SECTION("accept") {
    end = &rig.b;
    call = [&] { REQUIRE(rig.b.transport->accept(request) == Status::success); };
  }
  SECTION("reject") {
    end = &rig.b;
    call = [&] { REQUIRE(rig.b.transport->reject(request, "no") == Status::success); };
  }
  SECTION("disconnect of a request") {
    end = &rig.b;
    call = [&] { rig.b.transport->disconnect(request); };
  }
  rig.now += 1s;
  rig.settle();
  REQUIRE(end->net->deadline > rig.now);
  const uint64_t before = end->net->deadlines_set;
  call();
  CHECK(end->net->deadline == rig.now);
  CHECK(end->net->deadlines_set == before + 1);
  rig.a.transport->resume(rig.at_a);
  if (end == &rig.a) CHECK(end->net->deadlines_set == before + 1);
  rig.settle();
  CHECK(end->net->deadline > rig.now);
  rig.b.transport->resume(rig.at_b);
  CHECK((rig.b.net->deadline == rig.now || rig.hub.links.front().ends[1] == nullptr));
}

// A sink that does something when a message has come.
struct Acting final : ports::TransportSink {
  explicit Acting(Recorder& r) : recorder(r) {}
  Recorder& recorder;
  std::function<void()> act;
  void on_connect_request(ConnectionId id, ports::Role role, ports::Attribute attribute, Bytes data) override {
    recorder.on_connect_request(id, role, attribute, data);
  }
  void on_connected(ConnectionId id, Status status, ports::ConnectionLimits limits, std::string_view reason) override {
    recorder.on_connected(id, status, limits, reason);
  }
  void on_accepted(ConnectionId id, Status status, ports::ConnectionLimits limits) override {
    recorder.on_accepted(id, status, limits);
  }
  MutableBytes on_message_begin(ConnectionId id, uint32_t length) override { return recorder.on_message_begin(id, length); }
  void on_message_end(ConnectionId id, bool complete) override {
    recorder.on_message_end(id, complete);
    act();
  }
  void on_completion(ConnectionId id, uint64_t token, ports::OperationResult ending) override {
    recorder.on_completion(id, token, ending);
  }
  void on_disconnected(ConnectionId id, Status status, std::string_view reason) override {
    recorder.on_disconnected(id, status, reason);
  }
  void on_keepalive_timeout(ConnectionId id) override { recorder.on_keepalive_timeout(id); }
};

TEST_CASE("calls__from_within_a_turn__are_the_next_turns_and_later_ones_still_wake") {
  Rig rig(without_keepalive());
  Acting acting(rig.b.sink);
  rig.b.transport->bind(acting, rig.b.memory);
  rig.connect();
  uint64_t within = 0;
  acting.act = [&] {
    const uint64_t before = rig.b.net->deadlines_set;
    CHECK(rig.send(rig.b, rig.at_b, filled(10, 2), 7) == Status::success);
    rig.b.transport->resume(rig.at_b);
    within = rig.b.net->deadlines_set - before;
  };
  REQUIRE(rig.send(rig.a, rig.at_a, filled(10, 1), 1) == Status::success);
  rig.settle();
  CHECK(within == 0);  // the turn's end sets it
  CHECK(rig.b.status_of(7) == Status::success);
  REQUIRE(rig.b.net->deadline > rig.now);
  rig.b.transport->resume(rig.at_b);
  CHECK(rig.b.net->deadline == rig.now);
}

// --- Calls of the network ---

// Of a long message the rest and what is behind it come by one call.
TEST_CASE("calls__of_the_network__a_payload_and_what_is_behind_it_are_one") {
  Rig rig(without_keepalive());
  RawPeer peer(rig, "p");
  peer.open();
  const Buffer payload = filled(8000, 1);
  Buffer bytes;
  for (uint64_t number = 0; number < 2; ++number) {
    Buffer header;
    wire::Writer writer(header);
    wire::encode(writer, wire::Message{number, 0, wire::payload_check_of(payload)}, static_cast<uint32_t>(payload.size()));
    bytes.insert(bytes.end(), header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }
  const auto split = static_cast<std::ptrdiff_t>(5000);
  peer.write({bytes.begin(), bytes.begin() + split});
  const uint64_t before = rig.b.net->calls;
  peer.write({bytes.begin() + split, bytes.end()});
  REQUIRE(rig.b.sink.messages.size() == 2);
  CHECK(rig.b.sink.messages[1] == payload);
  CHECK(rig.b.net->calls - before == 3);  // what came, that there is no more, and one acknowledgement of both
}

}  // namespace
}  // namespace ccixfer::stream::testing
