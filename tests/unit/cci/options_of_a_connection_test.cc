// An endpoint's own options and those of its connections: which holds, from when on, and what is refused.
#include <catch2/catch.hpp>

#include "core/cci/endpoint.h"
#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using namespace std::chrono_literals;
using ports::ConnectionId;
using ports::TransportSink;

namespace {

// What reaches the network below.
class Told final : public ports::Transport {
 public:
  struct Log {
    std::vector<std::pair<ConnectionId, Duration>> send_timeouts, keepalives;
    std::vector<ConnectionId> aborted, disconnected;
    std::vector<uint64_t> sent;  // tokens
    Status answer = Status::success;
  };
  explicit Told(std::shared_ptr<Log> log) : log_(std::move(log)) {}
  void bind(ports::TransportSink& sink, ports::RmaTarget&) override { sink_ = &sink; }
  std::string uri() const override { return "told://1"; }
  uint32_t max_send_bytes() const override { return 4096; }
  Result<ConnectionId> dial(const ports::DialRequest&) override { return ConnectionId{next_++, 1}; }
  Status accept(ConnectionId) override { return Status::success; }
  Status reject(ConnectionId, std::string_view) override { return Status::success; }
  void disconnect(ConnectionId connection) override { log_->disconnected.push_back(connection); }
  void abort(ConnectionId connection) override { log_->aborted.push_back(connection); }
  Status send(ConnectionId, std::span<const Bytes>, uint64_t token) override {
    log_->sent.push_back(token);
    return log_->answer;
  }
  Status rma(ConnectionId, const ports::RmaRequest&, uint64_t) override { return Status::success; }
  void set_send_timeout(ConnectionId connection, Duration timeout) override {
    log_->send_timeouts.emplace_back(connection, timeout);
  }
  void set_keepalive(ConnectionId connection, Duration timeout) override { log_->keepalives.emplace_back(connection, timeout); }
  std::vector<ports::HopInfo> hops(ConnectionId) const override { return {ports::HopInfo{}}; }
  std::optional<uint64_t> delivered_bytes(ConnectionId) const override { return 5; }
  std::optional<uint64_t> received_bytes(ConnectionId) const override { return 6; }
  void turn(Instant) override {
    for (auto& step : std::exchange(planned_, {})) step(*sink_);
  }
  Instant next_deadline() const override { return never; }
  int os_handle() const override { return -1; }
  void plan(std::function<void(TransportSink&)> step) { planned_.push_back(std::move(step)); }

 private:
  std::shared_ptr<Log> log_;
  uint32_t next_ = 1;
  ports::TransportSink* sink_ = nullptr;
  std::vector<std::function<void(TransportSink&)>> planned_;
};

struct Fixture {
  explicit Fixture(const EndpointOptions& options = {}) {
    auto owned = std::make_unique<Told>(log);
    transport = owned.get();
    endpoint = std::make_unique<Endpoint>(options, std::move(owned), memory, counters);
  }
  void happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
  }
  Connection dial() { return endpoint->connect("told://2", {}).value(); }
  void opens(Connection connection) {
    happen([&](TransportSink& sink) { sink.on_connected(connection, Status::success, {2000}, ""); });
    while (endpoint->get_event()) {
    }
  }
  Connection connected() {
    const Connection connection = dial();
    opens(connection);
    return connection;
  }

  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<MemoryTable> memory = std::make_shared<MemoryTable>(entropy, counters);
  std::shared_ptr<Told::Log> log = std::make_shared<Told::Log>();
  Told* transport = nullptr;
  std::unique_ptr<Endpoint> endpoint;
};

using Set = std::vector<std::pair<ConnectionId, Duration>>;

}  // namespace

TEST_CASE("endpoint_options__without_any__no_connection_is_told_anything") {
  Fixture f;
  const Connection connection = f.connected();
  CHECK(f.log->send_timeouts.empty());
  CHECK(f.log->keepalives.empty());
  CHECK(f.endpoint->send_timeout(connection) == forever);
  CHECK(f.endpoint->keepalive(connection) == Duration::zero());
}

// Which transports have groups is theirs to say.
TEST_CASE("connection_of_a_group__a_receiver_sends_nothing_and_neither_end_does_rma") {
  for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
    Fixture f;
    const Connection connection = f.endpoint->connect("told://2", {.attribute = attribute}).value();
    f.opens(connection);
    std::vector<std::byte> memory(100);
    const bool sends = attribute == Attribute::multicast_send;
    CHECK(f.endpoint->send(connection, Bytes(memory), 1) == (sends ? Status::success : Status::invalid));
    RmaOptions write;
    write.local = f.memory->register_region(memory, 0);
    write.remote.handle = f.memory->register_region(memory, access_read | access_write);
    write.length_bytes = memory.size();
    CHECK(f.endpoint->rma(connection, write) == Status::invalid);
  }
}

TEST_CASE("endpoint_options__its_own__hold_for_connections_that_open_from_then_on_and_once") {
  Fixture f;
  const Connection before = f.connected();
  REQUIRE(f.endpoint->set_send_timeout(3s) == Status::success);
  REQUIRE(f.endpoint->set_keepalive(4s) == Status::success);
  CHECK(f.endpoint->send_timeout() == 3s);
  CHECK(f.endpoint->keepalive() == 4s);
  const Connection after = f.connected();
  f.endpoint->turn(Instant{} + 1s);
  CHECK(f.log->send_timeouts == Set{{after, 3s}});
  CHECK(f.log->keepalives == Set{{after, 4s}});
  CHECK(f.endpoint->send_timeout(after) == Duration(3s));
  CHECK(f.endpoint->keepalive(after) == Duration(4s));
  CHECK(f.endpoint->send_timeout(before) == forever);
  CHECK(f.endpoint->keepalive(before) == Duration::zero());
}

TEST_CASE("endpoint_options__what_the_application_set_while_it_was_dialled__is_kept") {
  EndpointOptions options;
  options.send_timeout = 3s;
  options.keepalive = 4s;
  Fixture f(options);
  const Connection one = f.dial(), other = f.dial();
  REQUIRE(f.endpoint->set_send_timeout(one, 7s) == Status::success);
  REQUIRE(f.endpoint->set_keepalive(other, 8s) == Status::success);
  f.opens(one);
  f.opens(other);
  CHECK(f.log->send_timeouts == Set{{one, 7s}, {other, 3s}});
  CHECK(f.log->keepalives == Set{{other, 8s}, {one, 4s}});
}

TEST_CASE("endpoint_options__left_in_the_turn_in_which_it_opened__is_told_nothing") {
  EndpointOptions options;
  options.send_timeout = 3s;
  options.keepalive = 4s;
  Fixture f(options);
  const Connection connection = f.dial();
  f.happen([&](TransportSink& sink) {
    sink.on_connected(connection, Status::success, {2000}, "");
    sink.on_disconnected(connection, Status::disconnected, "gone");
  });
  CHECK(f.log->send_timeouts.empty());
  CHECK(f.log->keepalives.empty());
}

TEST_CASE("endpoint_options__that_are_none__invalid_and_nothing_changes") {
  Fixture f;
  const Connection connection = f.connected();
  for (const Duration bad : {Duration::zero(), Duration(-1)}) {
    CHECK(f.endpoint->set_send_timeout(bad) == Status::invalid);
    CHECK(f.endpoint->set_send_timeout(connection, bad) == Status::invalid);
  }
  CHECK(f.endpoint->set_keepalive(Duration(-1)) == Status::invalid);
  CHECK(f.endpoint->set_keepalive(connection, Duration(-1)) == Status::invalid);
  CHECK(f.endpoint->send_timeout() == forever);
  CHECK(f.endpoint->keepalive() == Duration::zero());
  CHECK(f.endpoint->send_timeout(connection) == forever);
  CHECK(f.endpoint->keepalive(connection) == Duration::zero());
  CHECK(f.log->send_timeouts.empty());
  CHECK(f.log->keepalives.empty());
  // The shortest that there are; and no keepalive is one.
  CHECK(f.endpoint->set_send_timeout(connection, Duration(1)) == Status::success);
  CHECK(f.endpoint->set_keepalive(connection, Duration::zero()) == Status::success);
  CHECK(f.log->send_timeouts == Set{{connection, Duration(1)}});
  CHECK(f.log->keepalives == Set{{connection, Duration::zero()}});
}

TEST_CASE("endpoint_options__of_a_connection_that_is_none__not_found_and_no_answers") {
  Fixture f;
  const Connection connection = f.connected();
  CHECK(f.endpoint->delivered_bytes(connection) == 5u);
  CHECK(f.endpoint->received_bytes(connection) == 6u);
  CHECK(f.endpoint->hops(connection).size() == 1);
  CHECK(f.endpoint->max_send_bytes(connection) == 2000);
  f.endpoint->disconnect(connection);
  CHECK(f.endpoint->set_send_timeout(connection, 3s) == Status::not_found);
  CHECK(f.endpoint->set_keepalive(connection, 3s) == Status::not_found);
  CHECK_FALSE(f.endpoint->send_timeout(connection));
  CHECK_FALSE(f.endpoint->keepalive(connection));
  CHECK_FALSE(f.endpoint->delivered_bytes(connection));
  CHECK_FALSE(f.endpoint->received_bytes(connection));
  CHECK(f.endpoint->hops(connection).empty());
  CHECK(f.endpoint->max_send_bytes(connection) == 0);
  f.endpoint->set_context(connection, 9);
  CHECK(f.log->send_timeouts.empty());
  CHECK(f.log->keepalives.empty());
}

TEST_CASE("endpoint__a_connection_is_left_or_aborted__once_and_its_dial_gives_its_room_back") {
  const bool aborts = GENERATE(true, false);
  EndpointOptions options;
  options.send_operations_max = 1;
  Fixture f(options);
  const auto leave = [&](Connection connection) { aborts ? f.endpoint->abort(connection) : f.endpoint->disconnect(connection); };
  const Connection first = f.dial();
  const auto refused = f.endpoint->connect("told://2", {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::network);
  leave(first);
  leave(first);
  const Connection second = f.connected();
  leave(second);
  leave(second);
  CHECK((aborts ? f.log->aborted : f.log->disconnected) == std::vector<ConnectionId>{first, second});
  CHECK((aborts ? f.log->disconnected : f.log->aborted).empty());
  CHECK_FALSE(f.endpoint->get_event());
  CHECK(f.endpoint->connect("told://2", {}));
}

TEST_CASE("endpoint__half_of_the_operations_are_in_flight__a_connection_with_its_share_gets_no_more") {
  EndpointOptions options;
  options.send_operations_max = 8;
  Fixture f(options);
  f.endpoint->set_send_share(1);
  const Connection greedy = f.connected(), other = f.connected();
  const auto send = [&](Connection connection) { return f.endpoint->send(connection, as_bytes("x"), 0, true); };
  for (int i = 0; i < 4; ++i) CHECK(send(greedy) == Status::success);
  CHECK(send(greedy) == Status::no_buffers);
  CHECK(send(other) == Status::success);
  CHECK(send(other) == Status::no_buffers);
  CHECK(f.endpoint->connect("told://3", {}));  // takes no connection's share
  f.endpoint->disconnect(other);               // and what is in flight of it stays so
  const Connection third = f.connected();
  CHECK(send(third) == Status::success);
  CHECK(send(third) == Status::no_buffers);
  const auto ends = [&](Connection connection, size_t number) {
    f.happen([&, token = f.log->sent[number]](TransportSink& sink) { sink.on_completion(connection, token, Status::success); });
  };
  ends(third, 5);
  CHECK(send(third) == Status::success);
  for (size_t i = 0; i < 3; ++i) ends(greedy, i);
  CHECK(send(greedy) == Status::no_buffers);  // it has one, and half of all are in flight
  ends(greedy, 3);
  CHECK(send(greedy) == Status::success);
  CHECK(send(greedy) == Status::no_buffers);
  const Connection fourth = f.connected();
  f.log->answer = Status::no_buffers;
  CHECK(send(fourth) == Status::no_buffers);  // of its transport, and that counts for nothing
  f.log->answer = Status::success;
  CHECK(send(fourth) == Status::success);
  CHECK(send(fourth) == Status::no_buffers);
}
