// Calls of the routing transport by who is above it, in each phase of a connection, over a network that does what the test says.
#include <catch2/catch.hpp>

#include "routing/transport/messages.h"
#include "routing/transport/routed_operations.h"
#include "routing/transport/routed_transport.h"
#include "tests/unit/cci/fake_transport.h"
#include "tests/unit/routing/recorder.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using ports::ConnectionId;

namespace {

struct Above {
  explicit Above(RoutedOptions options = {}) {
    options.subnet = {1, 1};
    options.routers = {"fake://9"};
    options.scheme = "fake";
    auto below = std::make_unique<cci::FakeTransport>(log);
    network = below.get();
    transport =
        make_routed_transport(options, std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(below), memory, counters),
                              memory, entropy, counters);
    transport->bind(sink, *memory);
  }
  void turn() { transport->turn(Instant{}); }
  void happens(std::function<void(ports::TransportSink&)> step) {
    network->plan(std::move(step));
    turn();
    turn();
  }
  void dial(const std::string& uri) {
    ports::DialRequest request;
    request.uri = uri;
    const auto made = transport->dial(request);
    REQUIRE(made);
    id = *made;
    turn();
    REQUIRE(log->dialled.size() == 1);
  }
  void lower_connected() {
    happens([&](ports::TransportSink& to) { to.on_connected(lower, Status::success, {2000}, ""); });
  }
  template <typename Message>
  void peer_says(const Message& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    happens([&](ports::TransportSink& to) { REQUIRE(cci::deliver(to, lower, as_text(Bytes(bytes)))); });
  }
  // Through a router, as far as it goes.
  void open(uint32_t fragment_bytes = 1u << 16) {
    dial("cci://1:2:10.0.0.9:7000");
    lower_connected();
    peer_says(ConnectReply{Status::success, {}, 1000, fragment_bytes, {}, 0});
    REQUIRE(sink.connected == Status::success);
    log->sends.clear();
  }
  Status send(size_t bytes = 1, uint64_t token = 1) {
    const std::vector<std::byte> message(bytes);
    const Bytes part(message);
    return transport->send(id, {&part, 1}, token);
  }
  Status write(size_t bytes, uint64_t token = 2, bool fence = false, std::string_view announcement = {}) {
    ports::RmaRequest request;
    request.source = Bytes(memory_of_it).first(bytes);
    request.local.region = memory->register_region(Bytes(memory_of_it));
    request.remote.handle.kind = ports::HandleKind::region;
    request.fence = fence;
    request.has_completion_message = !announcement.empty();
    request.completion_message = as_bytes(announcement);
    return transport->rma(id, request, token);
  }
  [[nodiscard]] std::vector<FragmentMessage> asked() const {
    std::vector<FragmentMessage> found;
    for (const auto& each : log->sends) {
      if (kind_of(as_bytes(each.bytes)) == MessageKind::write_request) found.push_back(*decode_fragment(as_bytes(each.bytes)));
    }
    return found;
  }

  cci::CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::shared_ptr<cci::FakeTransport::Log> log = std::make_shared<cci::FakeTransport::Log>();
  Recorder sink;
  std::vector<std::byte> memory_of_it = std::vector<std::byte>(8u << 20);
  cci::FakeTransport* network = nullptr;
  std::unique_ptr<ports::Transport> transport;
  ConnectionId id;
  const ConnectionId lower{100, 1};
};

}  // namespace

TEST_CASE("routed_calls__in_each_phase__what_the_port_says") {
  Above above;
  const auto answers = [&] { return std::pair{above.send(), above.write(10)}; };
  using Both = std::pair<Status, Status>;
  above.id = {0, 1};
  CHECK(answers() == Both{Status::not_found, Status::not_found});
  above.dial("cci://1:2:10.0.0.9:7000");
  CHECK(answers() == Both{Status::again, Status::again});
  above.lower_connected();
  CHECK(answers() == Both{Status::again, Status::again});  // the router was asked
  above.peer_says(ConnectReply{Status::success, {}, 1000, 1u << 16, {}, 0});
  CHECK(answers() == Both{Status::success, Status::success});
  CHECK(above.transport->hops(above.id).size() == 1);
  const ConnectionId open = above.id;
  above.id = {open.index, open.generation + 1};
  CHECK(answers() == Both{Status::not_found, Status::not_found});
  CHECK(above.transport->hops(above.id).empty());
  CHECK_FALSE(above.transport->delivered_bytes(above.id));
  CHECK_FALSE(above.transport->received_bytes(above.id));
  above.id = open;
  above.transport->disconnect(open);  // both operations are in flight
  CHECK(answers() == Both{Status::disconnected, Status::disconnected});
  above.turn();
  CHECK(answers() == Both{Status::disconnected, Status::disconnected});
  above.happens([&](ports::TransportSink& to) { to.on_disconnected(above.lower, Status::timed_out, "nobody"); });
  CHECK(answers() == Both{Status::not_found, Status::not_found});
  CHECK(above.sink.completed.size() == 2);
  CHECK(above.sink.lost.empty());  // of who has left
}

TEST_CASE("routed_calls__sizes_and_numbers__the_last_that_is_taken_the_first_that_is_not") {
  Above above;
  above.open();
  CHECK(above.send(1000) == Status::success);
  CHECK(above.send(1001) == Status::message_size);
  CHECK(above.write(10, 2, false, std::string(1000, 'x')) == Status::success);
  CHECK(above.write(10, 3, false, std::string(1001, 'x')) == Status::message_size);
  // Behind a fence they count as well.
  CHECK(above.write(10, 4, true) == Status::success);
  size_t taken = 1;
  while (taken < 1000 && above.send() == Status::success) ++taken;
  CHECK(taken == messages_in_flight_max);
  CHECK(above.send() == Status::no_buffers);
  size_t operations = 2;
  while (operations < 1000 && above.write(10) == Status::success) ++operations;
  CHECK(operations == routed_operations_max);
  CHECK(above.write(10) == Status::no_buffers);
}

TEST_CASE("routed_calls__directly__what_the_network_refuses_is_not_in_flight") {
  Above above;
  above.dial("fake://2");
  above.lower_connected();
  above.log->answer = Status::no_buffers;
  CHECK(above.send() == Status::no_buffers);
  CHECK(above.write(10) == Status::no_buffers);
  above.log->answer = Status::success;
  above.happens([&](ports::TransportSink& to) { to.on_disconnected(above.lower, Status::timed_out, "nobody"); });
  CHECK(above.sink.lost == std::vector<std::string>{"nobody"});
  CHECK(above.sink.completed.empty());
}

TEST_CASE("routed_calls__directly__each_option_of_an_rma_reaches_the_network") {
  Above above;
  above.dial("fake://2");
  above.lower_connected();
  const auto passed_on = [&](bool of_a_file, bool posted) {
    ports::RmaRequest request;
    request.source = Bytes(above.memory_of_it).first(10);
    request.local.region = above.memory->register_region(Bytes(above.memory_of_it));
    request.remote.handle.kind = ports::HandleKind::region;
    request.source_is_file = of_a_file;
    request.buffer_is_posted = posted;
    REQUIRE(above.transport->rma(above.id, request, 2) == Status::success);
    return above.log->rmas.back().rma;
  };
  CHECK(passed_on(true, false).source_is_file);
  CHECK_FALSE(passed_on(true, false).buffer_is_posted);
  CHECK(passed_on(false, true).buffer_is_posted);
  CHECK_FALSE(passed_on(false, true).source_is_file);
}

TEST_CASE("routed_calls__options_beyond_reason__are_brought_within_it") {
  const auto [wanted, at_once] = GENERATE(table<uint32_t, size_t>({{0, 1},
                                                                   {1, 1},
                                                                   {2, 2},
                                                                   {fragments_per_side_max / 4, fragments_per_side_max / 4},
                                                                   {UINT32_MAX, fragments_per_side_max / 4}}));
  RoutedOptions options;
  options.fragments_in_flight_max = wanted;
  options.fragment_bytes_max = 1;
  Above above(options);
  above.dial("cci://1:2:10.0.0.9:7000");
  above.lower_connected();
  REQUIRE(above.log->sends.size() == 1);
  const auto request = decode_connect_request(as_bytes(above.log->sends[0].bytes));
  REQUIRE(request);
  CHECK(request->fragment_bytes == fragment_bytes_floor);
  above.peer_says(ConnectReply{Status::success, {}, 1000, fragment_bytes_floor, {}, 0});
  above.log->sends.clear();
  const size_t length = (fragments_per_side_max / 4 + 3) * size_t{fragment_bytes_floor};
  above.memory_of_it.resize(std::max(above.memory_of_it.size(), length));
  REQUIRE(above.write(length) == Status::success);
  above.turn();
  INFO(wanted);
  CHECK(above.asked().size() == at_once);
}
