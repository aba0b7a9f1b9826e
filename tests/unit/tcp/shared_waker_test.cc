// Endpoints of one loop, which waits in the waker that their networks share, and for nothing else: no wait has a limit.
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "core/cci/endpoint.h"
#include "core/host/entropy.h"
#include "tests/unit/tcp/nets.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::tcp {
namespace {

using cci::Connection;
using cci::EventType;

struct Party {
  explicit Party(const std::shared_ptr<host::Waker>& waker) {
    memory = std::make_shared<cci::MemoryTable>(entropy, counters);
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                               make("127.0.0.1", true, ByReference::never, waker), counters);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
  }
  Counters counters;
  host::SystemEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
};

struct Loop {
  std::shared_ptr<host::Waker> waker = make_waker();
  Party one{waker}, two{waker};
  host::SystemClock clock;
  std::deque<std::pair<const Party*, cci::Event>> events;

  // Until `wanted` has happened at `party`.
  cci::Event until(const Party& party, EventType wanted) {
    for (;;) {
      const Instant now = clock.now();
      for (const Party* each : {&one, &two}) {
        each->endpoint->turn(now);
        while (auto event = each->endpoint->get_event()) events.emplace_back(each, std::move(*event));
      }
      for (auto it = events.begin(); it != events.end(); ++it) {
        if (it->first != &party || it->second.type != wanted) continue;
        cci::Event event = std::move(it->second);
        events.erase(it);
        return event;
      }
      waker->wait(clock.now(), never);
    }
  }
};

TEST_CASE("shared_waker__two_endpoints_and_waits_without_a_limit__everything_comes") {
  Loop loop;
  REQUIRE(loop.one.endpoint->connect(loop.two.endpoint->uri(), {}));
  cci::Event request = loop.until(loop.two, EventType::connect_request);
  REQUIRE(loop.two.endpoint->accept(request, 2) == Status::success);
  const cci::Event connected = loop.until(loop.one, EventType::connect);
  REQUIRE(connected.status == Status::success);
  const Connection at_acceptor = loop.until(loop.two, EventType::accept).connection;
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE(loop.one.endpoint->send(connected.connection, as_bytes("there"), i) == Status::success);
    static_cast<void>(loop.until(loop.two, EventType::receive));
    REQUIRE(loop.two.endpoint->send(at_acceptor, as_bytes("back"), i) == Status::success);
    static_cast<void>(loop.until(loop.one, EventType::receive));
    CHECK(loop.until(loop.one, EventType::send).context == i);
  }
  // Deadlines are the waker's too: nobody decides on this request, and nothing else would end the wait.
  cci::ConnectOptions soon;
  soon.timeout = 5ms;
  REQUIRE(loop.one.endpoint->connect(loop.two.endpoint->uri(), soon));
  CHECK(loop.until(loop.one, EventType::connect).status == Status::timed_out);
  loop.one.endpoint->disconnect(connected.connection);
  static_cast<void>(loop.until(loop.two, EventType::disconnected));
}

// The loop goes on with those that are left.
TEST_CASE("shared_waker__an_endpoint_ends__the_other_goes_on") {
  Loop loop;
  auto third = std::make_unique<Party>(loop.waker);
  const auto dialled = loop.one.endpoint->connect(third->endpoint->uri(), {});
  REQUIRE(dialled);
  third.reset();
  CHECK(loop.until(loop.one, EventType::connect).status != Status::success);
  REQUIRE(loop.one.endpoint->connect(loop.two.endpoint->uri(), {}));
  static_cast<void>(loop.until(loop.two, EventType::connect_request));
}

}  // namespace
}  // namespace ccixfer::tcp
