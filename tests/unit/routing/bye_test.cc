// How a routing endpoint leaves a connection, over a network of which the test decides when it has room.
#include <catch2/catch.hpp>

#include "routing/transport/messages.h"
#include "routing/transport/routed_connections.h"
#include "routing/transport/routed_transport.h"
#include "tests/unit/cci/fake_transport.h"
#include "tests/unit/routing/recorder.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using ports::ConnectionId;

namespace {

struct Met {
  Met() {
    auto below = std::make_unique<cci::FakeTransport>(log);
    network = below.get();
    RoutedOptions options;
    options.subnet = {1, 1};
    options.routers = {"fake://router"};
    auto lower_endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(below), memory, counters);
    transport = make_routed_transport(options, std::move(lower_endpoint), memory, entropy, counters);
    transport->bind(above, *memory);
  }
  void happens(std::function<void(ports::TransportSink&)> step) {
    network->plan(std::move(step));
    transport->turn(now);
  }
  ConnectionId dial(const std::string& uri) {
    ports::DialRequest request;
    request.uri = uri;
    above.connected.reset();
    const auto made = transport->dial(request);
    REQUIRE(made);
    transport->turn(now);
    lower = ConnectionId{next_lower++, 1};
    happens([&](ports::TransportSink& sink) { sink.on_connected(lower, Status::success, {2000}, ""); });
    return *made;
  }
  template <typename Message>
  void hears(const Message& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    happens([&](ports::TransportSink& sink) { REQUIRE(cci::deliver(sink, lower, as_text(Bytes(bytes)))); });
  }
  void hears_bytes(const std::vector<std::byte>& bytes) {
    happens([&](ports::TransportSink& sink) { REQUIRE(cci::deliver(sink, lower, as_text(Bytes(bytes)))); });
  }
  ConnectionId open() {
    const ConnectionId connection = dial("cci://1:2:10.0.0.9:7000");
    hears(ConnectReply{Status::success, {}, 1392, 64u << 10, {}, 0});
    REQUIRE(above.connected == Status::success);
    return connection;
  }
  Status send(ConnectionId connection, std::string_view text) {
    const Bytes part = as_bytes(text);
    return transport->send(connection, {&part, 1}, 77);
  }
  [[nodiscard]] std::optional<MessageKind> said_last() const {
    return log->sends.empty() ? std::nullopt : kind_of(as_bytes(log->sends.back().bytes));
  }

  cci::CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::shared_ptr<cci::FakeTransport::Log> log = std::make_shared<cci::FakeTransport::Log>();
  cci::FakeTransport* network = nullptr;
  Recorder above;
  std::unique_ptr<ports::Transport> transport;
  Instant now{};
  ConnectionId lower;
  uint32_t next_lower = 100;
};

}  // namespace

TEST_CASE("routed_end__left_while_there_is_no_room_below__says_bye_before_it_leaves") {
  Met met;
  const ConnectionId connection = met.dial("cci://1:2:10.0.0.9:7000");
  REQUIRE(met.said_last() == MessageKind::connect_request);
  met.hears(ConnectReply{Status::success, {}, 1392, 64u << 10, {}, 0});
  REQUIRE(met.above.connected == Status::success);
  met.log->answer = GENERATE(Status::no_buffers, Status::again);
  met.transport->disconnect(connection);
  for (int i = 0; i < 3; ++i) met.transport->turn(met.now);
  CHECK(met.said_last() == MessageKind::connect_ack);
  CHECK(met.log->disconnected.empty());
  met.log->answer = Status::success;
  met.transport->turn(met.now);
  CHECK(met.said_last() == MessageKind::bye);
  CHECK(met.log->disconnected == std::vector<ConnectionId>{met.lower});
  CHECK(met.above.lost.empty());
}

// What the far end says meanwhile makes it wait no longer.
TEST_CASE("routed_end__left_with_a_message_that_nobody_answers__waits_for_it_ten_seconds") {
  Met met;
  const ConnectionId connection = met.open();
  REQUIRE(met.send(connection, "the last") == Status::success);
  met.transport->turn(met.now);
  REQUIRE(met.said_last() == MessageKind::message);
  met.transport->disconnect(connection);
  met.transport->turn(met.now);
  for (int i = 1; i < 10; ++i) {
    met.now += std::chrono::seconds(1);
    std::vector<std::byte> more;
    encode_message_header(static_cast<uint64_t>(i - 1), more);
    met.hears_bytes(more);
    CHECK(met.said_last() == MessageKind::message_ack);
    CHECK(met.log->disconnected.empty());
  }
  met.now = Instant{} + leave_timeout - std::chrono::nanoseconds(1);
  met.transport->turn(met.now);
  CHECK(met.log->disconnected.empty());
  met.now = Instant{} + leave_timeout;
  met.transport->turn(met.now);
  CHECK(met.said_last() == MessageKind::bye);
  CHECK(met.log->disconnected == std::vector<ConnectionId>{met.lower});
  CHECK(met.above.completed == std::vector<uint64_t>{77});
  CHECK(met.above.lost.empty());
}

TEST_CASE("routed_end__left_and_the_last_message_is_answered__says_bye_at_once") {
  Met met;
  const ConnectionId connection = met.open();
  REQUIRE(met.send(connection, "the last") == Status::success);
  met.transport->turn(met.now);
  met.transport->disconnect(connection);
  met.transport->turn(met.now);
  CHECK(met.send(connection, "behind it") == Status::disconnected);
  met.now += std::chrono::seconds(3);
  met.hears(MessageAck{1, Status::success});
  met.transport->turn(met.now);
  CHECK(met.said_last() == MessageKind::bye);
  CHECK(met.log->disconnected == std::vector<ConnectionId>{met.lower});
  CHECK(met.above.completed == std::vector<uint64_t>{77});
  CHECK(met.above.lost.empty());
}

TEST_CASE("routed_end__words_of_the_far_end__are_told_without_what_would_change_a_terminal") {
  Met met;
  static_cast<void>(met.open());
  met.hears(Bye{Status::disconnected, "all \x1b[31mred\n"});
  met.transport->turn(met.now);
  REQUIRE(met.above.lost.size() == 1);
  CHECK(met.above.lost[0].find("all ") == 0);
  CHECK(met.above.lost[0].find("red") != std::string::npos);
  for (const char control : {'\x1b', '\n'}) CHECK(met.above.lost[0].find(control) == std::string::npos);
}

// It has ended, and its end is not told yet, because something is still to go out below.
TEST_CASE("routed_end__left_between_its_end_and_the_word_of_it__is_told_nothing") {
  const bool left = GENERATE(true, false);
  Met met;
  const ConnectionId connection = met.open();
  met.log->answer = Status::no_buffers;
  REQUIRE(met.send(connection, "waits") == Status::success);
  met.transport->turn(met.now);
  met.hears(Bye{Status::disconnected, "going"});
  met.transport->turn(met.now);
  REQUIRE(met.above.lost.empty());
  CHECK(met.send(connection, "more") == Status::not_found);
  if (left) met.transport->disconnect(connection);
  if (left) met.transport->disconnect(connection);  // a second time: nothing
  met.log->answer = Status::success;
  for (int i = 0; i < 3; ++i) met.transport->turn(met.now);
  CHECK(met.above.lost == (left ? std::vector<std::string>{} : std::vector<std::string>{"going"}));
  CHECK(met.log->disconnected == std::vector<ConnectionId>{met.lower});
  CHECK(met.above.completed == std::vector<uint64_t>{77});
}

TEST_CASE("routed_end__ends_with_operations_behind_a_fence__each_is_told_once") {
  Met met;
  const ConnectionId connection = met.open();
  REQUIRE(met.send(connection, "first") == Status::success);
  const std::vector<std::byte> source(100);
  ports::RmaRequest write;
  write.source = source;
  write.remote.handle = {ports::HandleKind::region, 1, 2, 3};
  write.fence = true;
  REQUIRE(met.transport->rma(connection, write, 88) == Status::success);
  const Bytes part = as_bytes("behind");
  REQUIRE(met.transport->send(connection, {&part, 1}, 99) == Status::success);
  met.transport->turn(met.now);
  CHECK(met.log->sends.size() == 3);  // the request, its ack, the first message
  met.hears(Bye{Status::disconnected, "going"});
  met.transport->turn(met.now);
  CHECK(met.above.lost == std::vector<std::string>{"going"});
  CHECK(met.above.completed == std::vector<uint64_t>{77, 99, 88});
}

TEST_CASE("routed_direct__left__gives_its_place_among_all_that_there_may_be_back") {
  Met met;
  const ConnectionId connection = met.dial("fake://2");
  REQUIRE(met.above.connected == Status::success);
  met.transport->disconnect(connection);
  met.transport->turn(met.now);
  CHECK(met.log->disconnected == std::vector<ConnectionId>{met.lower});
  CHECK(met.above.lost.empty());
  ports::DialRequest request;
  request.uri = "fake://2";
  for (uint32_t i = 0; i < routed_connections_max; ++i) REQUIRE(met.transport->dial(request));
  CHECK_FALSE(met.transport->dial(request));
}

TEST_CASE("routed_end__asked_for_one_connection_too_many__refuses_it_until_one_has_ended") {
  const ports::Role role = GENERATE(ports::Role::application, ports::Role::hop);
  Met met;
  ports::DialRequest request;
  request.uri = "fake://2";
  std::vector<ConnectionId> all;
  for (uint32_t i = 0; i < routed_connections_max; ++i) all.push_back(met.transport->dial(request).value());
  const auto is_asked = [&](uint32_t index) {
    met.happens([&](ports::TransportSink& sink) {
      sink.on_connect_request({index, 1}, role, ports::Attribute::reliable_ordered, as_bytes("hello"));
    });
  };
  is_asked(90000);
  REQUIRE(met.log->rejected.size() == 1);
  CHECK(met.log->rejected[0].first == ConnectionId{90000, 1});
  CHECK(met.log->rejected[0].second == "too many connections");
  CHECK(met.counters.get(Counter::connections_refused) > 0);
  CHECK(met.log->accepted.empty());
  CHECK(met.above.asked.empty());
  met.transport->disconnect(all.back());
  met.transport->turn(met.now);
  is_asked(90001);
  CHECK(met.log->rejected.size() == 1);
  // A router is let in first, and asks then.
  CHECK(met.log->accepted.size() == (role == ports::Role::hop ? 1 : 0));
  CHECK(met.above.asked.size() == (role == ports::Role::hop ? 0 : 1));
  is_asked(90002);
  CHECK(met.log->rejected.size() == 2);
}

// As a network that has told the far end all of it and still refers to the bytes: each is over when that is.
TEST_CASE("routed_end_rma__two_writes_whose_sources_are_lent__each_ends_with_its_own") {
  Met met;
  const ConnectionId connection = met.dial("cci://1:2:10.0.0.9:7000");
  met.hears(ConnectReply{Status::success, {}, 1392, 64u << 10, {}, 0});
  REQUIRE(met.above.connected == Status::success);
  const std::vector<std::byte> source(1000);
  std::vector<ports::Ticket> lent;
  std::vector<uint64_t> cookies;
  for (const uint64_t token : {1u, 2u}) {
    ports::RmaRequest write;
    write.source = source;
    write.local.region = met.memory->register_region(Bytes(source));
    write.remote.handle.kind = ports::HandleKind::region;
    REQUIRE(met.transport->rma(connection, write, token) == Status::success);
    met.transport->turn(met.now);
    REQUIRE(met.said_last() == MessageKind::write_request);
    const auto asked = decode_fragment(as_bytes(met.log->sends.back().bytes));
    REQUIRE(asked);
    ports::RemoteRef exposed;
    exposed.handle = asked->exposed;
    const ports::Admission read = met.network->target().begin_read(met.lower.packed(), exposed, source.size());
    REQUIRE(read.status == Status::success);
    REQUIRE(met.network->target().lend(read.ticket));
    lent.push_back(read.ticket);
    cookies.push_back(asked->cookie);
  }
  for (const uint64_t cookie : cookies) met.hears(FragmentAck{cookie, Status::success});
  met.transport->turn(met.now);
  CHECK(met.above.completed.empty());
  const size_t first = GENERATE(size_t{0}, size_t{1});
  for (const size_t which : {first, 1 - first}) {
    met.network->target().end_read(lent[which]);
    met.transport->turn(met.now);
    REQUIRE_FALSE(met.above.completed.empty());
    CHECK(met.above.completed.back() == which + 1);
  }
  CHECK(met.above.completed.size() == 2);
}
