// What an idle routed connection costs a process at its end, with the connection to its router.
#include <cstdio>

#include "routing/transport/routed_connection.h"
#include "routing/transport/routed_transport.h"
#include "tests/sim/deadlock/idle_process.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

constexpr size_t own_bytes_max = 1024;  // beside the connection below

// An application in the middle with a routed endpoint, of which left and right are routers.
struct RoutedEnd : Three {
  RoutedEnd() {
    right.beyond.push_back({"tcp", "tcp://10.3.0.1:7000", 1, 3, milliseconds(1), 0});
    const HeapScope counted(&middle.account);
    RoutedOptions options;
    options.subnet = {1, 2};
    options.routers = {"mem://10.2.0.2:7000"};
    auto transport =
        make_routed_transport(options, middle.listen(hub, "10.1.0.1:7000"), middle.memory, middle.entropy, middle.counters);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), middle.memory, middle.counters);
    turn = [this](Instant at) {
      endpoint->turn(at);
      while (auto event = endpoint->get_event()) take(*event);
    };
  }
  void take(cci::Event& event) {
    if (event.type == cci::EventType::connect_request) REQUIRE(endpoint->accept(event, 1) == Status::success);
    if (event.type != cci::EventType::connect && event.type != cci::EventType::accept) return;
    REQUIRE(event.status == Status::success);
    ++opened;
  }
  void accept(size_t more) {
    const size_t before = opened;
    open_left(more);
    REQUIRE(run([&] { return opened == before + more; }));
    rest();
  }
  void dial(size_t more) {
    const size_t before = opened;
    for (size_t i = 0; i < more; ++i) {
      const HeapScope counted(&middle.account);
      REQUIRE(endpoint->connect("cci://1:9:10.9.0.9:7000", {}));
    }
    REQUIRE(run([&] { return opened == before + more; }));
    rest();
  }
  std::unique_ptr<cci::Endpoint> endpoint;
  size_t opened = 0;
};

void print(const char* what, size_t whole, size_t below) {
  std::printf(
      "an idle routed connection that was %s: %zu bytes of its end: %zu its own (a record of %zu), and %zu the connection below\n",
      what, whole, whole - below, sizeof(RoutedConnection), below);
}

}  // namespace

TEST_CASE("routed_idle__a_connection_that_was_accepted__costs_its_end_little_beside_the_hop") {
  RoutedEnd end;
  const size_t whole = bytes_of_one(end, [&](size_t more) { end.accept(more); });
  Plain plain;
  const size_t below = bytes_of_one(plain, [&](size_t more) { plain.accept(more); });
  REQUIRE(whole > below);
  print("accepted", whole, below);
  CHECK(whole - below <= own_bytes_max);
}

TEST_CASE("routed_idle__a_connection_that_was_dialled__costs_its_end_little_beside_the_hop") {
  RoutedEnd end;
  const size_t whole = bytes_of_one(end, [&](size_t more) { end.dial(more); });
  Plain plain;
  const size_t below = bytes_of_one(plain, [&](size_t more) { plain.dial(more); });
  REQUIRE(whole > below);
  print("dialled", whole, below);
  CHECK(whole - below <= own_bytes_max);
}
