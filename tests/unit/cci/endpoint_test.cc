// An endpoint over a transport that the test plays: which events follow which call and report, and what is refused.
#include "core/cci/endpoint.h"

#include <catch2/catch.hpp>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::ConnectionId;
using ports::ConnectionLimits;
using ports::TransportSink;

namespace {

constexpr ConnectionId peer{7, 1};

struct Fixture {
  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<MemoryTable> memory = std::make_shared<MemoryTable>(entropy, counters);
  std::shared_ptr<FakeTransport::Log> log = std::make_shared<FakeTransport::Log>();
  FakeTransport* transport = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> bytes = std::vector<std::byte>(1000);

  explicit Fixture(EndpointOptions options = {}, uint32_t max_send_bytes = 4096) {
    auto owned = std::make_unique<FakeTransport>(log, max_send_bytes);
    transport = owned.get();
    endpoint = std::make_unique<Endpoint>(options, std::move(owned), memory, counters);
  }
  void happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
  }
  Connection connected(Attribute attribute = Attribute::reliable_ordered, uint32_t max_send_bytes = 2000, uint64_t context = 5) {
    ConnectOptions options;
    options.attribute = attribute;
    options.context = context;
    const Result<Connection> connection = endpoint->connect("fake://2", options);
    REQUIRE(connection);
    happen([&](TransportSink& sink) { sink.on_connected(*connection, Status::success, {max_send_bytes}, ""); });
    const Event event = next();
    REQUIRE(event.type == EventType::connect);
    REQUIRE(event.connection == *connection);
    REQUIRE(event.context == context);
    return *connection;
  }
  Event request(ConnectionId id = peer) {
    happen([&](TransportSink& sink) {
      sink.on_connect_request(id, ports::Role::hop, Attribute::reliable_unordered, as_bytes("hello"));
    });
    return next();
  }
  Event next() {
    std::optional<Event> event = endpoint->get_event();
    REQUIRE(event);
    return std::move(*event);
  }
  bool quiet() { return !endpoint->get_event().has_value(); }
};

RmaOptions rma_options(Fixture& f) {
  RmaOptions options;
  options.local = f.memory->register_region(f.bytes, 0);
  options.remote.handle = f.memory->register_region(f.bytes, access_read | access_write);
  options.length_bytes = 100;
  options.context = 31;
  return options;
}

}  // namespace

TEST_CASE("endpoint__nothing_happened__no_event_and_the_transports_facts") {
  Fixture f;
  CHECK(f.quiet());
  CHECK(f.endpoint->uri() == "fake://1");
  CHECK(f.endpoint->os_handle() == 17);
  CHECK(f.endpoint->next_deadline() == Instant{Duration{42}});
  CHECK(&f.endpoint->memory() == f.memory.get());
  CHECK(&f.endpoint->mailboxes() == &f.memory->mailboxes());
}

TEST_CASE("connect__bad_arguments__usage_at_once_and_nothing_dialled") {
  Fixture f;
  ConnectOptions options;
  const auto is_usage = [&](std::string_view uri) {  // error() of what succeeded would be anything
    const Result<Connection> connection = f.endpoint->connect(uri, options);
    return !connection && connection.error().kind == ErrorKind::usage;
  };
  const std::vector<std::byte> data(1025);
  options.data = data;
  CHECK(is_usage("fake://2"));
  options.data = Bytes(data).first(1024);
  CHECK(is_usage(""));
  CHECK(is_usage("nonsense"));
  options.timeout = Duration{-1};
  CHECK(is_usage("fake://2"));
  options.timeout = forever;
  options.attribute = Attribute::unreliable;
  CHECK(f.log->dialled.empty());
  CHECK(f.endpoint->connect("fake://2", options));
  CHECK(f.log->dialled.size() == 1);
}

TEST_CASE("connect__fails__event_with_context_reason_and_no_connection") {
  for (const Status status : {Status::refused, Status::timed_out, Status::no_route, Status::unreachable, Status::version}) {
    Fixture f;
    const Result<Connection> connection = f.endpoint->connect("fake://2", {.context = 9});
    REQUIRE(connection);
    CHECK(f.endpoint->send(*connection, as_bytes("early"), 0) == Status::again);
    f.happen([&](TransportSink& sink) { sink.on_connected(*connection, status, {}, "why"); });
    const Event event = f.next();
    CHECK(event.type == EventType::connect);
    CHECK(event.status == status);
    CHECK_FALSE(event.connection);
    CHECK(event.context == 9);
    CHECK(event.reason == "why");
    CHECK(f.endpoint->send(*connection, as_bytes("late"), 0) == Status::not_found);
    CHECK(f.endpoint->max_send_bytes(*connection) == 0);
  }
}

TEST_CASE("connect__lost_while_connecting__one_connect_event") {
  Fixture f;
  const Result<Connection> connection = f.endpoint->connect("fake://2", {.context = 9});
  f.happen([&](TransportSink& sink) {
    sink.on_disconnected(*connection, Status::disconnected, "gone");
    sink.on_connected(*connection, Status::success, {100}, "");
  });
  CHECK(f.next().status == Status::disconnected);
  CHECK(f.quiet());
}

TEST_CASE("connect__left_before_its_end__no_event") {
  Fixture f({.send_operations_max = 1});
  const Result<Connection> connection = f.endpoint->connect("fake://2", {});
  CHECK_FALSE(f.endpoint->connect("fake://2", {}));  // one operation is in flight
  f.endpoint->disconnect(*connection);
  f.happen([&](TransportSink& sink) { sink.on_connected(*connection, Status::success, {100}, ""); });
  CHECK(f.quiet());
  CHECK(f.endpoint->connect("fake://2", {}));  // and it counts no longer
}

TEST_CASE("request__accepted__data_role_and_an_accept_event") {
  Fixture f;
  Event request = f.request();
  CHECK(request.type == EventType::connect_request);
  CHECK(request.role == ports::Role::hop);
  CHECK(request.attribute == Attribute::reliable_unordered);
  CHECK(as_text(request.data()) == "hello");
  CHECK(f.endpoint->accept(request, 77) == Status::success);
  CHECK(f.log->accepted == std::vector{peer});
  CHECK(f.endpoint->accept(request, 77) == Status::invalid);
  CHECK(f.endpoint->reject(request) == Status::invalid);
  CHECK(f.endpoint->send(peer, as_bytes("early"), 0) == Status::success);  // it follows the acceptance
  CHECK(as_text(request.data()) == "hello");                               // until the event is let go of
  { const Event gone = std::move(request); }
  CHECK(f.log->rejected.empty());
  f.happen([&](TransportSink& sink) { sink.on_accepted(peer, Status::success, {1500}); });
  const Event accepted = f.next();
  CHECK(accepted.type == EventType::accept);
  CHECK(accepted.status == Status::success);
  CHECK(accepted.connection == peer);
  CHECK(accepted.context == 77);
  CHECK(f.endpoint->max_send_bytes(peer) == 1500);
  CHECK(f.endpoint->hops(peer).size() == 1);
  CHECK(f.endpoint->hops({99, 1}).empty());
}

TEST_CASE("request__rejected_or_forgotten__the_peer_is_told_once") {
  Fixture f;
  {
    Event request = f.request();
    CHECK(f.endpoint->reject(request, std::string(5000, 'x')) == Status::success);
    CHECK(f.endpoint->reject(request) == Status::invalid);
    CHECK(f.endpoint->accept(request, 0) == Status::invalid);
  }
  REQUIRE(f.log->rejected.size() == 1);
  CHECK(f.log->rejected[0].second.size() == 1024);
  { const Event forgotten = f.request({8, 1}); }
  REQUIRE(f.log->rejected.size() == 2);
  CHECK(f.log->rejected[1].first == ConnectionId{8, 1});
  Event moved = f.request({9, 1});
  moved = f.request({10, 1});  // the one that is overwritten
  CHECK(f.log->rejected.size() == 3);
  CHECK(f.log->rejected[2].first == ConnectionId{9, 1});
}

TEST_CASE("request__decided_on_a_wrong_event__invalid") {
  Fixture f, g;
  Event none;
  CHECK(f.endpoint->accept(none, 0) == Status::invalid);
  Event foreign = g.request();
  CHECK(f.endpoint->accept(foreign, 0) == Status::invalid);
  CHECK(f.endpoint->reject(foreign) == Status::invalid);
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) { deliver(sink, connection, "x"); });
  Event message = f.next();
  CHECK(f.endpoint->accept(message, 0) == Status::invalid);
  CHECK(f.log->accepted.empty());
}

TEST_CASE("request__peer_gone_before_the_decision__not_found_and_no_reject") {
  Fixture f;
  {
    Event request = f.request();
    f.happen([](TransportSink& sink) { sink.on_disconnected(peer, Status::disconnected, "tired"); });
    CHECK(f.quiet());
    CHECK(f.endpoint->accept(request, 0) == Status::not_found);
    CHECK(f.endpoint->reject(request) == Status::not_found);
  }
  CHECK(f.log->rejected.empty());
  CHECK(f.log->accepted.empty());
}

TEST_CASE("accept__fails_later__accept_event_with_the_status") {
  Fixture f;
  Event request = f.request();
  REQUIRE(f.endpoint->accept(request, 3) == Status::success);
  f.happen([](TransportSink& sink) { sink.on_disconnected(peer, Status::timed_out, "no ack"); });
  const Event event = f.next();
  CHECK(event.type == EventType::accept);
  CHECK(event.status == Status::timed_out);
  CHECK_FALSE(event.connection);
  CHECK(event.context == 3);
  CHECK(f.quiet());
}

TEST_CASE("requests__more_than_the_bound__the_rest_rejected_after_the_turn") {
  Fixture f;
  f.happen([](TransportSink& sink) {
    for (uint32_t i = 0; i < 4100; ++i) sink.on_connect_request({i, 1}, ports::Role::application, Attribute::reliable_ordered, {});
  });
  CHECK(f.log->rejected.size() == 4);
}

TEST_CASE("send__bad_arguments__statuses_and_nothing_sent") {
  Fixture f;
  const Connection connection = f.connected(Attribute::reliable_ordered, 2000);
  const std::vector<std::byte> big(2001);
  CHECK(f.endpoint->send(connection, big, 0) == Status::message_size);
  const std::vector<Bytes> parts{Bytes(big).first(1000), Bytes(big).first(1001)};
  CHECK(f.endpoint->send(connection, parts, 0) == Status::message_size);
  CHECK(f.endpoint->send({1234, 1}, as_bytes("x"), 0) == Status::not_found);
  CHECK(f.endpoint->send({connection.index, connection.generation + 1}, as_bytes("x"), 0) == Status::not_found);
  CHECK(f.endpoint->send({}, as_bytes("x"), 0) == Status::not_found);
  CHECK(f.endpoint->send(connection, Bytes(static_cast<const std::byte*>(nullptr), 5), 0) == Status::invalid);
  CHECK(f.log->sends.empty());
  CHECK(f.endpoint->send(connection, Bytes{}, 0) == Status::success);  // zero length is legal
  CHECK(f.endpoint->send(connection, std::span<const Bytes>{}, 0) == Status::success);
  CHECK(f.endpoint->send(connection, Bytes(big).first(2000), 0) == Status::success);
  const std::vector<Bytes> two{as_bytes("ab"), as_bytes("cd")};
  CHECK(f.endpoint->send(connection, two, 0) == Status::success);
  CHECK(f.log->sends.back().bytes == "abcd");
}

TEST_CASE("send__completions__in_the_transports_order_with_context_and_status") {
  Fixture f;
  const Connection connection = f.connected();
  REQUIRE(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  REQUIRE(f.endpoint->send(connection, as_bytes("b"), 2, true) == Status::success);
  REQUIRE(f.endpoint->send(connection, as_bytes("c"), 3, true) == Status::success);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->sends[2].token, Status::receiver_not_ready);
    sink.on_completion(connection, f.log->sends[1].token, Status::success);
    sink.on_completion(connection, f.log->sends[0].token, Status::success);
    sink.on_completion(connection, f.log->sends[0].token, Status::success);  // an operation ends once
    sink.on_completion(connection, ~uint64_t{0}, Status::success);
  });
  const Event failed = f.next();  // silent, but a failure never is
  CHECK(failed.type == EventType::send);
  CHECK(failed.status == Status::receiver_not_ready);
  CHECK(failed.context == 3);
  const Event sent = f.next();
  CHECK(sent.context == 1);
  CHECK(sent.connection == connection);
  CHECK(f.quiet());
}

TEST_CASE("send__too_many__no_buffers_until_an_event_is_taken") {
  Fixture f({.send_operations_max = 3});
  const Connection connection = f.connected();
  REQUIRE(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  REQUIRE(f.endpoint->send(connection, as_bytes("b"), 2, true) == Status::success);
  REQUIRE(f.endpoint->send(connection, as_bytes("c"), 3) == Status::success);
  CHECK(f.endpoint->send(connection, as_bytes("d"), 4) == Status::no_buffers);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->sends[0].token, Status::success);
    sink.on_completion(connection, f.log->sends[1].token, Status::success);
  });
  CHECK(f.endpoint->send(connection, as_bytes("d"), 4) == Status::success);     // the silent one left no event
  CHECK(f.endpoint->send(connection, as_bytes("e"), 5) == Status::no_buffers);  // the queue is bounded with them
  CHECK(f.next().context == 1);
  CHECK(f.endpoint->send(connection, as_bytes("e"), 5) == Status::success);
}

TEST_CASE("send__refused_by_the_transport__its_status_and_no_event") {
  Fixture f({.send_operations_max = 1});
  const Connection connection = f.connected();
  f.log->answer = Status::no_buffers;
  for (int i = 0; i < 3; ++i) CHECK(f.endpoint->send(connection, as_bytes("a"), 1) == Status::no_buffers);
  f.log->answer = Status::disconnected;
  CHECK(f.endpoint->send(connection, as_bytes("a"), 1) == Status::disconnected);
  f.log->answer = Status::success;
  CHECK(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  CHECK(f.quiet());
}

TEST_CASE("receive__messages__aligned_in_order_and_valid_while_held") {
  Fixture f;
  const Connection connection = f.connected();
  f.endpoint->set_context(connection, 66);
  f.happen([&](TransportSink& sink) {
    CHECK(deliver(sink, connection, "one"));
    CHECK(deliver(sink, connection, "broken", false));
    CHECK(deliver(sink, connection, ""));
    CHECK(deliver(sink, connection, std::string(4096, 'z')));
    CHECK_FALSE(deliver(sink, connection, std::string(4097, 'z')));  // longer than this endpoint takes
    CHECK_FALSE(deliver(sink, {999, 1}, "from nowhere"));
  });
  std::vector<Event> held;
  for (int i = 0; i < 3; ++i) held.push_back(f.next());
  CHECK(f.quiet());
  for (const Event& event : held) {
    CHECK(event.type == EventType::receive);
    CHECK(event.connection == connection);
    CHECK(event.context == 66);
    CHECK(reinterpret_cast<uintptr_t>(event.data().data()) % 8 == 0);
  }
  CHECK(as_text(held[0].data()) == "one");
  CHECK(held[1].data().empty());
  CHECK(held[1].data().data() != nullptr);
  CHECK(held[2].data().size() == 4096);
}

TEST_CASE("receive__all_buffers_held__not_ready_until_one_is_returned_in_any_order") {
  Fixture f({.receive_buffers = 3});
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) {
    for (int i = 0; i < 3; ++i) CHECK(deliver(sink, connection, std::to_string(i)));
    CHECK_FALSE(deliver(sink, connection, "no room"));
  });
  CHECK(f.counters.get(Counter::messages_not_ready) == 1);
  std::vector<std::optional<Event>> held;
  for (int i = 0; i < 3; ++i) held.emplace_back(f.next());
  for (const size_t index : {1u, 2u, 0u}) {
    held[index].reset();
    f.happen([&](TransportSink& sink) {
      CHECK(deliver(sink, connection, "again"));
      CHECK_FALSE(deliver(sink, connection, "no room"));
    });
    held[index] = f.next();
    CHECK(as_text(held[index]->data()) == "again");
  }
  CHECK(f.counters.get(Counter::messages_received) == 6);
}

TEST_CASE("receive__left_in_the_middle_of_a_message__buffer_kept_until_its_end") {
  Fixture f({.receive_buffers = 1});
  const Connection first = f.connected();
  const Connection second = f.connected();
  MutableBytes into;
  f.happen([&](TransportSink& sink) { into = sink.on_message_begin(first, 8); });
  REQUIRE(into.data() != nullptr);
  f.endpoint->disconnect(first);
  f.happen([&](TransportSink& sink) {
    CHECK_FALSE(deliver(sink, second, "mine?"));  // the transport still writes into it
    sink.on_message_end(first, true);
    CHECK(deliver(sink, second, "mine"));
  });
  CHECK(as_text(f.next().data()) == "mine");
  CHECK(f.quiet());
}

TEST_CASE("receive__messages_that_break_off__no_event_and_their_buffer_is_the_next_ones") {
  Fixture f({.receive_buffers = 1});
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) {
    REQUIRE(sink.on_message_begin(connection, 8).data() != nullptr);
    sink.on_message_end(connection, false);
    CHECK(deliver(sink, connection, "whole"));
  });
  CHECK(as_text(f.next().data()) == "whole");
}

TEST_CASE("disconnected__by_the_peer__buffer_back_one_event_and_the_id_is_dead") {
  Fixture f({.receive_buffers = 1});
  const Connection connection = f.connected();
  const Connection other = f.connected();
  REQUIRE(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  f.happen([&](TransportSink& sink) {
    CHECK(sink.on_message_begin(connection, 8).data() != nullptr);
    sink.on_completion(connection, f.log->sends[0].token, Status::disconnected);
    sink.on_disconnected(connection, Status::success, "bye");
    sink.on_disconnected(connection, Status::success, "bye");
    CHECK(deliver(sink, other, "x"));
  });
  CHECK(f.next().status == Status::disconnected);
  const Event gone = f.next();
  CHECK(gone.type == EventType::disconnected);
  CHECK(gone.status == Status::disconnected);
  CHECK(gone.reason == "bye");
  CHECK(gone.context == 5);
  CHECK(f.next().type == EventType::receive);
  CHECK(f.quiet());
  CHECK(f.endpoint->send(connection, as_bytes("a"), 1) == Status::not_found);
  f.endpoint->disconnect(connection);
  CHECK(f.log->disconnected.empty());
}

TEST_CASE("disconnect__our_own__operations_still_end_and_nothing_else_comes") {
  Fixture f;
  const Connection connection = f.connected();
  REQUIRE(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  f.endpoint->disconnect(connection);
  f.endpoint->disconnect(connection);
  CHECK(f.log->disconnected.size() == 1);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->sends[0].token, Status::success);
    sink.on_disconnected(connection, Status::success, "");
    sink.on_keepalive_timeout(connection);
  });
  CHECK(f.next().context == 1);
  CHECK(f.quiet());
}

TEST_CASE("keepalive__fires_again_before_the_event_is_taken__one_event") {
  Fixture f;
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) {
    sink.on_keepalive_timeout(connection);
    sink.on_keepalive_timeout(connection);
  });
  const Event event = f.next();
  CHECK(event.type == EventType::keepalive_timed_out);
  CHECK(event.connection == connection);
  CHECK(f.quiet());
  f.happen([&](TransportSink& sink) { sink.on_keepalive_timeout(connection); });
  CHECK(f.next().type == EventType::keepalive_timed_out);
}

TEST_CASE("device_failed__an_event_of_the_endpoint_that_says_why") {
  Fixture f;
  const Connection connection = f.connected();
  f.happen([](TransportSink& sink) { sink.on_device_failed("tcp://10.0.0.1:7000: gone"); });
  const Event event = f.next();
  CHECK(event.type == EventType::device_failed);
  CHECK(event.status == Status::device_dead);
  CHECK(event.reason == "tcp://10.0.0.1:7000: gone");
  CHECK(f.quiet());
  CHECK(f.endpoint->max_send_bytes(connection) > 0);  // it ends when the transport says so
}

TEST_CASE("rma__bad_arguments__statuses_and_nothing_issued") {
  Fixture f;
  const Connection connection = f.connected(Attribute::reliable_ordered, 50);
  const RmaOptions good = rma_options(f);
  RmaOptions bad = good;
  const auto status = [&](bool write = true) {
    bad.write = write;
    const Status answer = f.endpoint->rma(connection, bad);
    bad = good;
    return answer;
  };
  bad.length_bytes = 0;
  CHECK(status() == Status::invalid);
  bad.local_offset_bytes = 901;
  CHECK(status() == Status::range);
  bad.local_offset_bytes = ~uint64_t{0} - 5;
  CHECK(status() == Status::range);
  bad.length_bytes = ~uint64_t{0};
  CHECK(status() == Status::range);
  bad.local = {};
  CHECK(status() == Status::rma_handle);
  bad.local.key ^= 1;
  CHECK(status() == Status::rma_handle);
  bad.local = f.memory->register_region(Bytes(f.bytes));
  CHECK(status(false) == Status::rma_op);
  bad.remote.handle = {};
  CHECK(status() == Status::rma_handle);
  bad.remote.handle.kind = static_cast<ports::HandleKind>(99);
  CHECK(status() == Status::rma_handle);
  bad.remote.handle.kind = ports::HandleKind::mailbox;
  bad.remote.offset_bytes = ~uint64_t{0} - 50;
  CHECK(status() == Status::rma_handle);
  const std::vector<std::byte> message(51);
  bad.completion_message = message;
  CHECK(status() == Status::message_size);
  bad.completion_message = Bytes(static_cast<const std::byte*>(nullptr), 1);
  CHECK(status() == Status::invalid);
  CHECK(f.endpoint->rma({55, 5}, good) == Status::not_found);
  CHECK(f.endpoint->rma(f.connected(Attribute::unreliable), good) == Status::invalid);
  CHECK(f.log->rmas.empty());
  CHECK(f.endpoint->rma(connection, good) == Status::success);
}

TEST_CASE("rma__issued__ranges_flags_and_completion") {
  Fixture f;
  const Connection connection = f.connected();
  RmaOptions options = rma_options(f);
  options.local_offset_bytes = 900;
  options.remote.offset_bytes = 12345;  // the target checks it
  options.completion_message = as_bytes("done");
  options.fence = true;
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  const ports::RmaRequest& write = f.log->rmas[0].rma;
  CHECK(write.write);
  CHECK(write.source.data() == f.bytes.data() + 900);
  CHECK(write.source.size() == 100);
  CHECK(write.destination.empty());
  CHECK(write.remote.offset_bytes == 12345);
  CHECK(write.remote.put.source == 0);  // a region: no put
  CHECK(write.fence);
  CHECK(write.has_completion_message);
  CHECK(f.log->rmas[0].completion_message == "done");
  options.write = false;
  options.fence = false;
  options.silent = true;
  options.completion_message = Bytes{};  // a message of no bytes is one
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  const ports::RmaRequest& read = f.log->rmas[1].rma;
  CHECK(read.destination.data() == f.bytes.data() + 900);
  CHECK(read.source.empty());
  CHECK(read.has_completion_message);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->rmas[0].token, Status::rma_op);
    sink.on_completion(connection, f.log->rmas[1].token, Status::success);
  });
  const Event event = f.next();
  CHECK(event.type == EventType::send);
  CHECK(event.status == Status::rma_op);
  CHECK(event.context == 31);
  CHECK(f.quiet());
}

TEST_CASE("rma__to_a_mailbox__nameless_puts_are_named_named_ones_kept") {
  Fixture f;
  const Connection connection = f.connected();
  RmaOptions options = rma_options(f);
  options.remote.handle = {};
  options.remote.handle.kind = ports::HandleKind::mailbox;
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  options.write = false;  // get
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  CHECK_FALSE(f.log->rmas[2].rma.write);
  f.log->rmas.pop_back();
  options.write = true;
  options.remote.put.source = 4;
  options.remote.put.operation = 2;
  options.remote.put.epoch = 6;
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  CHECK(f.log->rmas[0].rma.remote.put.source != 0);
  CHECK(f.log->rmas[0].rma.remote.put.operation != f.log->rmas[1].rma.remote.put.operation);
  CHECK(f.log->rmas[2].rma.remote.put.source == 4);
  CHECK(f.log->rmas[2].rma.remote.put.operation == 2);
  CHECK(f.log->rmas[2].rma.remote.put.epoch == 6);
}

TEST_CASE("endpoint__destroyed_with_everything_in_flight__held_events_stay_valid") {
  Fixture f;
  const Connection connection = f.connected();
  REQUIRE(f.endpoint->send(connection, as_bytes("a"), 1) == Status::success);
  REQUIRE(f.endpoint->rma(connection, rma_options(f)) == Status::success);
  (void)f.endpoint->connect("fake://3", {});
  Event request = f.request();
  f.happen([&](TransportSink& sink) {
    deliver(sink, connection, "kept");
    deliver(sink, connection, "queued");
    CHECK(sink.on_message_begin(connection, 8).data() != nullptr);
    sink.on_connect_request({20, 1}, ports::Role::application, Attribute::reliable_ordered, as_bytes("queued"));
  });
  Event kept = f.next();
  f.endpoint.reset();
  CHECK(f.log->destroyed);
  CHECK(as_text(kept.data()) == "kept");
  CHECK(as_text(request.data()) == "hello");
  kept = {};
  request = {};  // no endpoint to reject it any more
  CHECK(f.log->rejected.empty());
}

TEST_CASE("event__moved__one_owner_of_the_buffer") {
  Fixture f({.receive_buffers = 1});
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) { deliver(sink, connection, "one"); });
  Event a = f.next();
  Event b = std::move(a);
  CHECK(as_text(b.data()) == "one");
  CHECK(a.data().empty());  // NOLINT: the moved-from state is the point
  Event& alias = b;
  b = std::move(alias);
  CHECK(as_text(b.data()) == "one");
  f.happen([&](TransportSink& sink) { CHECK_FALSE(deliver(sink, connection, "two")); });
  b = Event{};
  f.happen([&](TransportSink& sink) { CHECK(deliver(sink, connection, "two")); });
}
