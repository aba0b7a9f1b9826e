// What an initiator is told besides how its operations end, whatever the transport says: local completions, hints.
#include <catch2/catch.hpp>

#include "core/cci/endpoint.h"
#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::TransportSink;

namespace {

struct Fixture {
  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<MemoryTable> memory = std::make_shared<MemoryTable>(entropy, counters);
  std::shared_ptr<FakeTransport::Log> log = std::make_shared<FakeTransport::Log>();
  FakeTransport* transport = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> bytes = std::vector<std::byte>(100);
  Connection connection;

  Fixture() {
    auto owned = std::make_unique<FakeTransport>(log);
    transport = owned.get();
    endpoint = std::make_unique<Endpoint>(EndpointOptions{.send_operations_max = 3}, std::move(owned), memory, counters);
    const Result<Connection> dialled = endpoint->connect("fake://2", {});
    REQUIRE(dialled);
    connection = *dialled;
    happen([&](TransportSink& sink) { sink.on_connected(connection, Status::success, {2000}, ""); });
    REQUIRE(taken() == std::vector<EventType>{EventType::connect});
  }
  void happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
  }
  Status write(bool silent = false) {
    RmaOptions options;
    options.local = memory->register_region(bytes, 0);
    options.remote.handle.kind = ports::HandleKind::region;
    options.length_bytes = 100;
    options.context = 31;
    options.local_completion = true;
    options.silent = silent;
    return endpoint->rma(connection, options);
  }
  uint64_t token() const { return log->rmas.back().token; }
  std::vector<EventType> taken() {
    std::vector<EventType> types;
    while (const auto event = endpoint->get_event()) types.push_back(event->type);
    return types;
  }
};

using Types = std::vector<EventType>;

}  // namespace

TEST_CASE("local_completion__told_by_the_transport_or_not__once_and_before_the_end") {
  Fixture f;
  REQUIRE(f.write() == Status::success);
  f.happen([&](TransportSink& sink) {
    sink.on_local_completion(f.connection, f.token());
    sink.on_local_completion(f.connection, f.token());
  });
  CHECK(f.taken() == Types{EventType::local_completion});
  f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.token(), Status::success); });
  CHECK(f.taken() == Types{EventType::send});
  f.happen([&](TransportSink& sink) { sink.on_local_completion(f.connection, f.token()); });  // too late
  CHECK(f.taken().empty());

  REQUIRE(f.write() == Status::success);
  f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.token(), Status::success); });
  CHECK(f.taken() == Types{EventType::local_completion, EventType::send});
  REQUIRE(f.write() == Status::success);
  f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.token(), Status::rma_op); });
  CHECK(f.taken() == Types{EventType::send});
}

// Each event that is still to be taken has its place among send_operations_max, silent operations' too.
TEST_CASE("local_completion__not_taken__counts_like_an_operation") {
  Fixture f;
  const auto room = [&f] {
    uint32_t count = 0;
    while (f.endpoint->send(f.connection, as_bytes("x"), 0, true) == Status::success) ++count;
    const size_t first = f.log->sends.size() - count;
    for (size_t i = first; i < f.log->sends.size(); ++i) {
      f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.log->sends[i].token, Status::success); });
    }
    return count;
  };
  CHECK(room() == 3);
  REQUIRE(f.write(true) == Status::success);
  CHECK(room() == 1);
  CHECK(f.write() == Status::success);  // the last place lets one more in
  CHECK(f.write() == Status::no_buffers);
  f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.token(), Status::rma_op); });
  CHECK(f.taken() == Types{EventType::send});
  CHECK(room() == 1);
  f.happen([&](TransportSink& sink) { sink.on_completion(f.connection, f.log->rmas[0].token, Status::success); });
  CHECK(room() == 2);
  CHECK(f.taken() == Types{EventType::local_completion});
  CHECK(room() == 3);
  f.log->answer = Status::disconnected;
  CHECK(f.write() == Status::disconnected);
  f.log->answer = Status::success;
  CHECK(room() == 3);
}

// Posting is no call of the endpoint: its next deadline and its handle tell that there is something to do.
TEST_CASE("hint__a_buffer_is_posted_for_a_refused_put__goes_out_with_the_next_turn") {
  Fixture f;
  rvma::MailboxTable& mailboxes = f.endpoint->mailboxes();
  REQUIRE(mailboxes.open(5, {.hints = true}) == Status::success);
  ports::RemoteRef put;
  put.handle = mailboxes.handle(5);
  const Instant now{std::chrono::seconds(1)};
  const Instant later = now + std::chrono::seconds(9);
  f.endpoint->turn(now);
  REQUIRE(f.transport->target().begin_write(f.connection.packed(), put, 8).status == Status::mailbox_empty);
  CHECK(f.endpoint->next_deadline() == Instant{Duration{42}});  // the transport's
  CHECK(f.endpoint->arm_os_handle(later) == Status::success);
  REQUIRE(mailboxes.post(5, f.bytes, 1) == Status::success);
  CHECK(f.endpoint->next_deadline() == now);
  CHECK(f.endpoint->arm_os_handle(later) == Status::success);
  CHECK(f.log->armed == std::vector<Instant>{Instant{Duration{42}}, now});
  f.endpoint->turn(now);
  REQUIRE(f.log->hints.size() == 1);
  CHECK(ports::ConnectionId::of(f.log->hints[0].connection) == f.connection);
  CHECK(f.log->hints[0].mailbox == 5);
  CHECK(f.log->hints[0].epoch == 0);
  CHECK(f.endpoint->next_deadline() == Instant{Duration{42}});
  f.endpoint->turn(now);
  CHECK(f.log->hints.size() == 1);
}

TEST_CASE("hint__more_than_anybody_takes__bounded_and_of_unknown_connections_none") {
  Fixture f;
  f.happen([&](TransportSink& sink) {
    for (uint64_t i = 0; i < 1000; ++i) sink.on_mailbox_ready(f.connection, i, i);
    sink.on_mailbox_ready({1, 99}, 7, 7);
  });
  const auto first = f.endpoint->get_event();
  REQUIRE(first);
  CHECK(first->type == EventType::mailbox_ready);
  CHECK(first->connection == f.connection);
  CHECK(first->mailbox == 0);
  CHECK(f.taken().size() == 255);
  f.happen([&](TransportSink& sink) { sink.on_mailbox_ready(f.connection, 5000, 3); });
  const auto again = f.endpoint->get_event();
  REQUIRE(again);
  CHECK(again->mailbox == 5000);
  CHECK(again->ending().epoch() == 3u);
}
