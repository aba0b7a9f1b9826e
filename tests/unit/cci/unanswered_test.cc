// Operations that the target does not answer: a mailbox without negative acks, or one whose limit is used up.
#include <catch2/catch.hpp>

#include "core/cci/endpoint.h"
#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::TransportSink;

namespace {

constexpr ports::ConnectionId peer{7, 1};

struct Fixture {
  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<MemoryTable> memory = std::make_shared<MemoryTable>(entropy, counters);
  std::shared_ptr<FakeTransport::Log> log = std::make_shared<FakeTransport::Log>();
  FakeTransport* transport = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> bytes = std::vector<std::byte>(1000);

  Fixture() {
    auto owned = std::make_unique<FakeTransport>(log);
    transport = owned.get();
    endpoint = std::make_unique<Endpoint>(EndpointOptions{}, std::move(owned), memory, counters);
  }
  void happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
  }
  Connection connected(ports::Role role = ports::Role::application) {
    const Result<Connection> connection = endpoint->connect("fake://2", {.role = role});
    REQUIRE(connection);
    happen([&](TransportSink& sink) { sink.on_connected(*connection, Status::success, {2000}, ""); });
    REQUIRE(next().type == EventType::connect);
    return *connection;
  }
  Connection accepted_hop() {
    happen([&](TransportSink& sink) {
      sink.on_connect_request(peer, ports::Role::hop, Attribute::reliable_ordered, as_bytes("hello"));
    });
    Event asked = next();
    REQUIRE(endpoint->accept(asked, 8) == Status::success);
    happen([&](TransportSink& sink) { sink.on_accepted(peer, Status::success, {2000}); });
    REQUIRE(next().type == EventType::accept);
    return peer;
  }
  RmaOptions put() {
    RmaOptions options;
    options.local = memory->register_region(bytes, 0);
    options.remote.handle.kind = ports::HandleKind::mailbox;
    options.length_bytes = 100;
    options.context = 31;
    return options;
  }
  Event next() {
    std::optional<Event> event = endpoint->get_event();
    REQUIRE(event);
    return std::move(*event);
  }
  bool quiet() { return !endpoint->get_event().has_value(); }
};

}  // namespace

TEST_CASE("rma__the_target_withholds_its_answer__times_out_with_the_send_timeout") {
  Fixture f;
  const Connection connection = f.connected();
  const Connection patient = f.connected();  // no send timeout
  f.endpoint->set_send_timeout(connection, std::chrono::seconds(3));
  RmaOptions options = f.put();
  options.silent = true;  // a failure is never silent
  REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  REQUIRE(f.endpoint->rma(patient, options) == Status::success);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->rmas[0].token, Status::withheld);
    sink.on_completion(patient, f.log->rmas[1].token, Status::withheld);
  });
  CHECK(f.quiet());
  f.endpoint->turn(Instant(std::chrono::milliseconds(2999)));
  CHECK(f.quiet());
  f.endpoint->turn(Instant(std::chrono::seconds(3)));
  Event event = f.next();
  CHECK(event.status == Status::timed_out);
  CHECK(event.context == 31);
  CHECK(event.connection == connection);
  f.endpoint->turn(Instant(std::chrono::hours(9)));
  CHECK(f.quiet());
  f.endpoint->disconnect(patient);
  event = f.next();
  CHECK(event.status == Status::disconnected);
  CHECK(event.connection == patient);
  CHECK(f.quiet());
}

// Whoever waits for the handle alone is woken for it.
TEST_CASE("rma__the_target_withholds_its_answer__the_armed_handle_shows_its_timeout") {
  Fixture f;
  f.log->deadline = Instant(std::chrono::hours(1));
  const Connection connection = f.connected();
  f.endpoint->set_send_timeout(connection, std::chrono::milliseconds(200));
  REQUIRE(f.endpoint->rma(connection, f.put()) == Status::success);
  f.happen([&](TransportSink& sink) { sink.on_completion(connection, f.log->rmas[0].token, Status::withheld); });
  REQUIRE(f.endpoint->arm_os_handle() == Status::success);
  REQUIRE(f.endpoint->arm_os_handle(Instant(std::chrono::milliseconds(100))) == Status::success);
  f.endpoint->turn(Instant(std::chrono::milliseconds(200)));
  CHECK(f.next().status == Status::timed_out);
  REQUIRE(f.endpoint->arm_os_handle() == Status::success);
  using std::chrono::milliseconds;
  CHECK(f.log->armed == std::vector<Instant>{Instant(milliseconds(200)), Instant(milliseconds(100)), f.log->deadline});
}

TEST_CASE("rma__withheld_and_the_connection_is_lost__ends_before_the_disconnected_event") {
  Fixture f;
  const Connection connection = f.connected();
  REQUIRE(f.endpoint->rma(connection, f.put()) == Status::success);
  f.happen([&](TransportSink& sink) {
    sink.on_completion(connection, f.log->rmas[0].token, Status::withheld);
    sink.on_disconnected(connection, Status::disconnected, "gone");
  });
  CHECK(f.next().type == EventType::send);
  CHECK(f.next().type == EventType::disconnected);
  CHECK(f.quiet());
}

TEST_CASE("rma__withheld_on_a_hop__is_passed_on_at_once_for_the_end_to_wait") {
  Fixture f;
  for (const Connection connection : {f.connected(ports::Role::hop), f.accepted_hop()}) {
    REQUIRE(f.endpoint->rma(connection, f.put()) == Status::success);
    f.happen([&](TransportSink& sink) { sink.on_completion(connection, f.log->rmas.back().token, Status::withheld); });
    CHECK(f.next().status == Status::withheld);
  }
}

// Its application has left it, and the network's last word of what was in flight comes after that.
TEST_CASE("rma__withheld_after_its_connection_was_left__ends_once_with_what_the_target_said") {
  Fixture f;
  const bool twice = GENERATE(false, true);
  const Connection connection = f.connected();
  f.endpoint->set_send_timeout(connection, std::chrono::seconds(3));
  REQUIRE(f.endpoint->rma(connection, f.put()) == Status::success);
  if (twice) f.happen([&](TransportSink& sink) { sink.on_completion(connection, f.log->rmas[0].token, Status::withheld); });
  f.endpoint->disconnect(connection);
  f.happen([&](TransportSink& sink) { sink.on_completion(connection, f.log->rmas[0].token, Status::withheld); });
  const Event event = f.next();
  CHECK(event.type == EventType::send);
  CHECK(event.status == (twice ? Status::disconnected : Status::withheld));
  CHECK(event.context == 31);
  CHECK(event.connection == connection);
  f.endpoint->turn(Instant(std::chrono::hours(9)));
  CHECK(f.quiet());
}

TEST_CASE("rma__withheld_of_several__each_times_out_in_its_turn_or_goes_with_its_connection") {
  Fixture f;
  f.log->deadline = never;
  const Connection quick = f.connected();
  const Connection slow = f.connected();
  f.endpoint->set_send_timeout(quick, std::chrono::seconds(1));
  f.endpoint->set_send_timeout(slow, std::chrono::seconds(2));
  RmaOptions options = f.put();
  for (const Connection connection : {slow, quick, slow, quick}) {
    options.context += 1;  // 32, 33, 34, 35
    REQUIRE(f.endpoint->rma(connection, options) == Status::success);
  }
  f.happen([&](TransportSink& sink) {
    for (size_t i = 0; i < 4; ++i) sink.on_completion(i % 2 == 0 ? slow : quick, f.log->rmas[i].token, Status::withheld);
  });
  CHECK(f.quiet());
  CHECK(f.endpoint->next_deadline() == Instant(std::chrono::seconds(1)));
  f.endpoint->turn(Instant(std::chrono::seconds(1)));
  for (const uint64_t context : {33u, 35u}) {
    const Event event = f.next();
    CHECK(event.context == context);
    CHECK(event.status == Status::timed_out);
    CHECK(event.connection == quick);
  }
  CHECK(f.quiet());
  CHECK(f.endpoint->next_deadline() == Instant(std::chrono::seconds(2)));
  f.happen([&](TransportSink& sink) { sink.on_disconnected(slow, Status::disconnected, "gone"); });
  for (const uint64_t context : {32u, 34u}) {
    const Event event = f.next();
    CHECK(event.context == context);
    CHECK(event.status == Status::disconnected);
  }
  CHECK(f.next().type == EventType::disconnected);
  CHECK(f.quiet());
  CHECK(f.endpoint->next_deadline() == never);
}
