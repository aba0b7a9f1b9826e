// What a routing transport tells who is above it, of a connection that was left in the middle of its end.
#include <catch2/catch.hpp>

#include "routing/transport/routed_transport.h"
#include "tests/unit/cci/fake_transport.h"
#include "tests/unit/routing/recorder.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using ports::ConnectionId;

TEST_CASE("routed_direct__lost_with_an_operation_in_flight__told_when_it_has_ended") {
  const bool left = GENERATE(false, true);
  cci::CountingEntropy entropy;
  Counters counters;
  auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  auto log = std::make_shared<cci::FakeTransport::Log>();
  auto below = std::make_unique<cci::FakeTransport>(log);
  cci::FakeTransport& network = *below;
  RoutedOptions options;
  options.subnet = {1, 1};
  auto lower_endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(below), memory, counters);
  auto transport = make_routed_transport(options, std::move(lower_endpoint), memory, entropy, counters);
  Recorder above;
  transport->bind(above, *memory);
  const auto happens = [&](std::function<void(ports::TransportSink&)> step) {
    network.plan(std::move(step));
    transport->turn(Instant{});
  };
  ports::DialRequest dial;
  dial.uri = "fake://2";
  const auto connection = transport->dial(dial);
  REQUIRE(connection);
  transport->turn(Instant{});
  REQUIRE(log->dialled.size() == 1);
  const ConnectionId lower{100, 1};
  happens([&](ports::TransportSink& sink) { sink.on_connected(lower, Status::success, {2000}, ""); });
  REQUIRE(above.connected == Status::success);
  const std::vector<std::byte> source(100);
  ports::RmaRequest request;
  request.source = source;
  request.local.region = memory->register_region(Bytes(source));
  request.remote.handle.kind = ports::HandleKind::region;
  REQUIRE(transport->rma(*connection, request, 7) == Status::success);
  transport->turn(Instant{});
  REQUIRE(log->rmas.size() == 1);
  happens([&](ports::TransportSink& sink) { sink.on_disconnected(lower, Status::timed_out, "nobody there"); });
  CHECK(above.lost.empty());  // each operation's end comes first
  if (left) transport->disconnect(*connection);
  transport->turn(Instant{});
  CHECK(above.completed.empty());
  happens([&](ports::TransportSink& sink) { sink.on_completion(lower, log->rmas[0].token, Status::disconnected); });
  transport->turn(Instant{});
  CHECK(above.completed == std::vector<uint64_t>{7});
  CHECK(above.lost == (left ? std::vector<std::string>{} : std::vector<std::string>{"nobody there"}));
}
