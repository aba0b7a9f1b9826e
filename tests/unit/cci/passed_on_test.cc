// What the endpoint only passes on, and places that are used again.
#include <catch2/catch.hpp>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::ConnectionId;
using ports::TransportSink;

namespace {

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
  Connection connected() {
    const Result<Connection> connection = endpoint->connect("fake://2", {});
    REQUIRE(connection);
    happen([&](TransportSink& sink) { sink.on_connected(*connection, Status::success, {2000}, ""); });
    REQUIRE(endpoint->get_event()->type == EventType::connect);
    return *connection;
  }
};

}  // namespace

TEST_CASE("connect__ahead__only_where_the_transport_can") {
  Fixture f;
  CHECK_FALSE(f.endpoint->dials_ahead());
  CHECK_FALSE(f.endpoint->connect("fake://2", {.ahead = true}));
  CHECK(f.log->dialled.empty());
  const Result<Connection> connection = f.endpoint->connect("fake://2", {});
  REQUIRE(connection);
  CHECK(f.endpoint->ask(*connection, {}) == Status::not_implemented);
  CHECK(f.endpoint->ask({77, 1}, {}) == Status::not_found);
}

TEST_CASE("rma__each_option__reaches_the_transport_as_it_was_given") {
  Fixture f;
  const Connection connection = f.connected();
  RmaOptions plain;
  plain.local = f.memory->register_region(f.bytes, 0);
  plain.remote.handle = f.memory->register_region(f.bytes, access_read | access_write);
  plain.length_bytes = 100;
  plain.write = true;
  const auto passed_on = [&](const RmaOptions& options) {
    REQUIRE(f.endpoint->rma(connection, options) == Status::success);
    return f.log->rmas.back().rma;
  };
  const ports::RmaRequest base = passed_on(plain);
  CHECK(base.write);
  CHECK_FALSE(base.fence);
  CHECK_FALSE(base.source_is_file);
  CHECK_FALSE(base.buffer_is_posted);
  CHECK_FALSE(base.local_completion);
  CHECK_FALSE(base.has_completion_message);
  CHECK(base.source.size() == 100);
  CHECK(base.destination.empty());
  RmaOptions one = plain;
  one.fence = true;
  CHECK(passed_on(one).fence);
  one = plain;
  one.source_is_file = true;
  CHECK(passed_on(one).source_is_file);
  one = plain;
  one.buffer_is_posted = true;
  CHECK(passed_on(one).buffer_is_posted);
  one = plain;
  one.local_completion = true;
  CHECK(passed_on(one).local_completion);
  one = plain;
  one.local_offset_bytes = 7;
  CHECK(passed_on(one).source.data() == f.bytes.data() + 7);
  one = plain;
  one.write = false;
  const ports::RmaRequest read = passed_on(one);
  CHECK_FALSE(read.write);
  CHECK(read.source.empty());
  CHECK(read.destination.size() == 100);
}

TEST_CASE("memory_table__places_of_regions_that_went__each_taken_by_one_new_region") {
  Fixture f;
  std::vector<std::byte> other(50);
  const ports::Handle gone = f.memory->register_region(f.bytes, access_write);
  REQUIRE(f.memory->deregister_region(gone) == Status::success);
  const ports::Handle first = f.memory->register_region(f.bytes, access_write);
  const ports::Handle second = f.memory->register_region(other, access_write);
  CHECK(first.number == gone.number);
  CHECK(second.number != first.number);
  CHECK(f.memory->deregister_region(gone) == Status::rma_handle);
  CHECK(f.memory->deregister_region(first) == Status::success);
  CHECK(f.memory->deregister_region(second) == Status::success);
}

TEST_CASE("memory_table__a_ticket_is_ended_by_the_other_side__refused_and_it_goes_on") {
  Fixture f;
  ports::RemoteRef ref;
  ref.handle = f.memory->register_region(f.bytes, access_read | access_write);
  const ports::Admission read = f.memory->begin_read(1, ref, 10);
  REQUIRE(read.status == Status::success);
  CHECK(f.memory->end_write(read.ticket, true).status == Status::error);
  CHECK(f.memory->read_span(read.ticket, 0).size() == 10);
  f.memory->end_read(read.ticket);
  CHECK(f.memory->read_span(read.ticket, 0).empty());
}

TEST_CASE("message__begins_within_another__is_not_taken_and_the_first_is_whole") {
  Fixture f;
  const Connection connection = f.connected();
  f.happen([&](TransportSink& sink) {
    const MutableBytes into = sink.on_message_begin(connection, 3);
    REQUIRE(into.size() == 3);
    CHECK(sink.on_message_begin(connection, 5).data() == nullptr);
    std::memcpy(into.data(), "one", 3);
    sink.on_message_end(connection, true);
    CHECK(deliver(sink, connection, "two"));
  });
  for (const std::string_view text : {"one", "two"}) {
    const std::optional<Event> event = f.endpoint->get_event();
    REQUIRE(event);
    CHECK(event->type == EventType::receive);
    CHECK(as_text(event->data()) == text);
  }
}
