// What an endpoint and its memory table keep of operations and regions is used again, and nothing of the last one is left in it.
#include <catch2/catch.hpp>
#include <set>

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
  Connection connection;

  Fixture() {
    auto owned = std::make_unique<FakeTransport>(log);
    transport = owned.get();
    endpoint = std::make_unique<Endpoint>(EndpointOptions{}, std::move(owned), memory, counters);
    const Result<Connection> made = endpoint->connect("fake://2", {});
    REQUIRE(made);
    connection = *made;
    happen([&](TransportSink& sink) { sink.on_connected(connection, Status::success, {2000}, ""); });
    REQUIRE(next().type == EventType::connect);
  }
  void happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
  }
  Event next() {
    std::optional<Event> event = endpoint->get_event();
    REQUIRE(event);
    return std::move(*event);
  }
  uint64_t send(uint64_t context) {
    REQUIRE(endpoint->send(connection, as_bytes("x"), context) == Status::success);
    return log->sends.back().token;
  }
};

ports::RemoteRef part_of(const ports::Handle& handle) {
  ports::RemoteRef reference;
  reference.handle = handle;
  reference.offset_bytes = 10;
  return reference;
}

uint32_t record_of(uint64_t token) { return static_cast<uint32_t>(token); }

}  // namespace

TEST_CASE("operations__many_one_after_another__reuse_records_and_never_a_token") {
  Fixture fixture;
  std::set<uint64_t> tokens;
  std::set<uint32_t> records;
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t first = fixture.send(2 * i), second = fixture.send(2 * i + 1);
    for (const uint64_t token : {first, second}) {
      CHECK(tokens.insert(token).second);
      records.insert(record_of(token));
    }
    fixture.happen([&](TransportSink& sink) {
      sink.on_completion(fixture.connection, first, Status::success);
      sink.on_completion(fixture.connection, first, Status::error);  // its record may be another's by now
      sink.on_completion(fixture.connection, second, Status::success);
    });
    for (uint64_t which = 0; which < 2; ++which) {
      const Event event = fixture.next();
      CHECK(event.status == Status::success);
      CHECK(event.context == 2 * i + which);
    }
    CHECK_FALSE(fixture.endpoint->get_event());
  }
  CHECK(records.size() == 2);  // as many as were ever in flight at a time
}

TEST_CASE("operations__an_end_told_again_when_the_record_is_anothers__is_not_the_others_end") {
  Fixture fixture;
  const uint64_t first = fixture.send(1);
  fixture.happen([&](TransportSink& sink) { sink.on_completion(fixture.connection, first, Status::success); });
  CHECK(fixture.next().context == 1);
  const uint64_t second = fixture.send(2);
  REQUIRE(record_of(second) == record_of(first));
  fixture.happen([&](TransportSink& sink) {
    sink.on_completion(fixture.connection, first, Status::error);
    sink.on_local_completion(fixture.connection, first);
    sink.on_completion(fixture.connection, (uint64_t{1} << 32) | 1000, Status::error);  // no such record
  });
  CHECK_FALSE(fixture.endpoint->get_event());
  fixture.happen([&](TransportSink& sink) { sink.on_completion(fixture.connection, second, Status::success); });
  const Event event = fixture.next();
  CHECK(event.context == 2);
  CHECK(event.status == Status::success);
}

TEST_CASE("operations__the_transport_takes_none__the_record_is_the_next_ones") {
  Fixture fixture;
  fixture.log->answer = Status::no_buffers;
  for (int i = 0; i < 100; ++i) {
    CHECK(fixture.endpoint->send(fixture.connection, as_bytes("x"), 0) == Status::no_buffers);
  }
  fixture.log->answer = Status::success;
  CHECK(record_of(fixture.send(1)) == 0);
}

TEST_CASE("memory_table__successor_of_a_filling_region__is_read_at_once_and_often") {
  Fixture fixture;
  MemoryTable& memory = *fixture.memory;
  std::vector<std::byte> bytes(100, std::byte{7});
  ports::FillProgress fill;
  fill.once = true;
  const ports::Handle arriving = memory.register_filling(bytes, &fill);
  REQUIRE(memory.deregister_region(arriving) == Status::success);
  const ports::Handle whole = memory.register_region(std::span<std::byte>(bytes), access_read);
  REQUIRE(whole.number == arriving.number);
  for (int i = 0; i < 2; ++i) {
    const ports::Admission part = memory.begin_read(1, part_of(whole), 50);
    REQUIRE(part.status == Status::success);
    CHECK_FALSE(memory.read_waits(part.ticket, 0, 50));
    CHECK(memory.fill_of(part.ticket) == nullptr);
    CHECK(memory.read_span(part.ticket, 0).size() == 50);
    memory.end_read(part.ticket);
  }
  CHECK_FALSE(fill.taken);
}
