// Connections to peers of our own subnet: all that is asked of one is asked of its lower connection.
#include "routing/transport/direct_connections.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using test::RoutedParts;

namespace {

struct Met : RoutedParts {
  ~Met() { lower.reset(); }
  void on(std::optional<cci::Event> event) {
    REQUIRE(event);
    const bool of_operation = event->type == cci::EventType::send || event->type == cci::EventType::local_completion;
    RoutedConnection* found =
        of_operation ? connections.find_by_lower(event->connection) : connections.find(ports::ConnectionId::of(event->context));
    REQUIRE(found != nullptr);
    direct.on_event(*found, *event);
  }
  RoutedConnection& dial() {
    ports::DialRequest request;
    request.uri = "fake://2";
    const auto id = direct.dial(request, "fake://2");
    REQUIRE(id);
    return *connections.find(*id);
  }
  RoutedConnection& open() {
    RoutedConnection& connection = dial();
    on(connected(connection.hop.connection()));
    REQUIRE(above.connected == Status::success);
    return connection;
  }
  RoutedConnection& offer(uint32_t index = 7) {
    direct.on_request(request(index, ports::Role::application));
    return *connections.find(above.asked.back());
  }
  Status send(RoutedConnection& connection, uint64_t token) {
    const Bytes part = as_bytes("hello");
    return direct.send(connection, {&part, 1}, token);
  }
  Status write(RoutedConnection& connection, uint64_t token) {
    ports::RmaRequest request;
    request.source = Bytes(source);
    request.local.region = region;
    request.remote.handle.kind = ports::HandleKind::region;
    return direct.rma(connection, request, token);
  }
  void ends(const RoutedConnection& connection, uint64_t token, Status status = Status::success) {
    const cci::Connection hop = connection.hop.connection();
    on(happens([&](ports::TransportSink& sink) { sink.on_completion(hop, token, status); }));
  }
  void finish_all() {
    connections.serve_finishing([this](RoutedConnection& each) { direct.finish(each); });
  }
  // The slot that the next registration takes: one that was given back is taken again.
  ports::Handle next_handle() {
    const ports::Handle handle = memory->register_region(Bytes(source));
    REQUIRE(memory->deregister_region(handle) == Status::success);
    return handle;
  }
  std::vector<std::byte> source = std::vector<std::byte>(100);
  ports::Handle region = memory->register_region(Bytes(source));
  DirectConnections direct{*lower, *memory, connections, above, counters};
};

}  // namespace

TEST_CASE("direct_connections__dialled__is_open_with_the_lower_limits_or_gone") {
  Met met;
  RoutedConnection& open = met.dial();
  CHECK(met.log->dialled == std::vector<std::string>{"fake://2"});
  met.on(met.connected(open.hop.connection()));
  CHECK(open.phase == Phase::open);
  CHECK(met.above.connected == Status::success);
  CHECK(met.above.limits.max_send_bytes == 1016);
  const RoutedConnection& refused = met.dial();
  const ports::ConnectionId id = refused.id;
  met.on(met.connected(refused.hop.connection(), Status::refused, "no thanks"));
  CHECK(met.above.connected == Status::refused);
  CHECK(met.above.words == "no thanks");
  CHECK(met.connections.find(id) == nullptr);
  CHECK_FALSE(met.direct.dial(ports::DialRequest{}, "nonsense"));
}

TEST_CASE("direct_connections__offered__is_decided_below_and_dropped_when_that_fails") {
  Met met;
  RoutedConnection& accepted = met.offer();
  CHECK(met.direct.accept(accepted) == Status::success);
  CHECK(met.log->accepted == std::vector<ports::ConnectionId>{{7, 1}});
  met.on(met.happens([](ports::TransportSink& sink) { sink.on_accepted({7, 1}, Status::success, {1016}); }));
  CHECK(met.above.accepted == Status::success);
  CHECK(accepted.phase == Phase::open);

  RoutedConnection& rejected = met.offer(8);
  const ports::ConnectionId id = rejected.id;
  CHECK(met.direct.reject(rejected, "busy") == Status::success);
  CHECK(met.log->rejected.back().second == "busy");
  CHECK(met.connections.find(id) == nullptr);

  RoutedConnection& failed = met.offer(9);
  const ports::ConnectionId failed_id = failed.id;
  met.log->answer = Status::not_found;
  CHECK(met.direct.accept(failed) == Status::not_found);
  CHECK(met.connections.find(failed_id) == nullptr);
}

TEST_CASE("direct_connections__acceptance_that_is_not_acknowledged__is_told_and_gone") {
  Met met;
  RoutedConnection& connection = met.offer();
  const ports::ConnectionId id = connection.id;
  REQUIRE(met.direct.accept(connection) == Status::success);
  met.on(met.happens([](ports::TransportSink& sink) { sink.on_accepted({7, 1}, Status::timed_out, {}); }));
  CHECK(met.above.accepted == Status::timed_out);
  CHECK(met.connections.find(id) == nullptr);
}

TEST_CASE("direct_connections__a_message_before_the_acceptance__opens_it_and_is_delivered") {
  Met met;
  RoutedConnection& connection = met.offer();
  CHECK(met.direct.message_begins(connection, 5).data() == nullptr);
  REQUIRE(met.direct.accept(connection) == Status::success);
  met.above.has_buffer = true;
  const MutableBytes memory = met.direct.message_begins(connection, 5);
  CHECK(memory.data() == met.above.message.data());
  CHECK(met.above.accepted == Status::success);
  met.direct.message_ends(connection, true);
  CHECK(met.above.messages.size() == 1);
  met.direct.message_ends(connection, true);
  CHECK(met.above.messages.size() == 1);
}

TEST_CASE("direct_connections__rma__its_memory_is_registered_until_it_ends") {
  Met met;
  RoutedConnection& connection = met.open();
  const ports::Handle free_before = met.next_handle();
  REQUIRE(met.write(connection, 5) == Status::success);
  CHECK(met.next_handle().number != free_before.number);
  met.ends(connection, met.log->rmas.back().token);
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(connection.direct->sources.empty());
  CHECK(connection.direct->in_flight == 0);
  met.log->answer = Status::no_buffers;
  CHECK(met.write(connection, 6) == Status::no_buffers);
  CHECK(connection.direct->in_flight == 0);
}

TEST_CASE("direct_connections__left_with_a_send_in_flight__goes_silently_when_it_has_ended") {
  Met met;
  RoutedConnection& connection = met.open();
  const ports::ConnectionId id = connection.id;
  REQUIRE(met.send(connection, 5) == Status::success);
  met.direct.disconnect(connection);
  CHECK(met.log->disconnected.size() == 1);
  met.finish_all();
  CHECK(met.connections.find(id) != nullptr);
  met.ends(connection, met.log->sends.back().token, Status::disconnected);
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(met.connections.find(id) == nullptr);
  CHECK(met.above.lost.empty());
}

TEST_CASE("direct_connections__lost__is_told_once_unless_the_application_leaves_first") {
  const bool leaves = GENERATE(false, true);
  Met met;
  RoutedConnection& connection = met.open();
  const ports::ConnectionId id = connection.id;
  const cci::Connection hop = connection.hop.connection();
  met.on(met.happens([&](ports::TransportSink& sink) { sink.on_disconnected(hop, Status::unreachable, "cut"); }));
  CHECK(met.above.lost.empty());
  if (leaves) met.direct.disconnect(connection);
  met.finish_all();
  CHECK(met.above.lost == (leaves ? std::vector<std::string>{} : std::vector<std::string>{"cut"}));
  CHECK(met.connections.find(id) == nullptr);
}

TEST_CASE("direct_connections__left_while_it_is_dialled_or_offered__is_gone_at_once") {
  Met met;
  RoutedConnection& dialled = met.dial();
  RoutedConnection& offered = met.offer();
  const ports::ConnectionId first = dialled.id, second = offered.id;
  met.direct.disconnect(dialled);
  met.direct.disconnect(offered);
  CHECK(met.log->disconnected.size() == 1);
  CHECK(met.log->rejected.size() == 1);
  CHECK(met.connections.find(first) == nullptr);
  CHECK(met.connections.find(second) == nullptr);
}
