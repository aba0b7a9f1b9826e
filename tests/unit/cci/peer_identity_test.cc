// Who a peer is: the name that it has in counters and logs, and the events that say it.
#include <catch2/catch.hpp>
#include <utility>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::host_in;
using ports::PeerIdentity;
using ports::TransportSink;

namespace {

constexpr ports::ConnectionId dialler{7, 1};

struct Met {
  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<FakeTransport::Log> log = std::make_shared<FakeTransport::Log>();
  FakeTransport* transport = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  Met() {
    auto made = std::make_unique<FakeTransport>(log);
    transport = made.get();
    endpoint =
        std::make_unique<Endpoint>(EndpointOptions{}, std::move(made), std::make_shared<MemoryTable>(entropy, counters), counters);
    log->peer = {"cx1abc", "10.0.0.7"};
  }
  Event happen(std::function<void(TransportSink&)> step) {
    transport->plan(std::move(step));
    endpoint->turn(Instant{});
    std::optional<Event> event = endpoint->get_event();
    REQUIRE(event);
    return std::move(*event);
  }
  Event request() {
    return happen(
        [](TransportSink& sink) { sink.on_connect_request(dialler, ports::Role::application, Attribute::reliable_ordered, {}); });
  }
  Event connect(Status status) {
    const Result<Connection> connection = endpoint->connect("fake://2", {});
    REQUIRE(connection);
    return happen([&](TransportSink& sink) { sink.on_connected(*connection, status, {2000}, ""); });
  }
};

}  // namespace

TEST_CASE("peer_identity__name__what_is_proved_or_else_where_it_is") {
  CHECK(PeerIdentity{"cx1abc", "10.0.0.7"}.name() == "cx1abc (proved)");
  CHECK(PeerIdentity{"", "10.0.0.7"}.name() == "10.0.0.7");
  CHECK(PeerIdentity{"10.0.0.7", ""}.name() != PeerIdentity{"", "10.0.0.7"}.name());
  CHECK(PeerIdentity{"a\nb", ""}.name().find('\n') == std::string::npos);
  CHECK(PeerIdentity{"", "a\nb"}.name().find('\n') == std::string::npos);
  CHECK(PeerIdentity{}.name() == "somebody");
  CHECK_FALSE(PeerIdentity{}.is_known());
  CHECK(PeerIdentity{"cx1abc", ""}.is_known());
  CHECK(PeerIdentity{"", "10.0.0.7"}.is_known());
}

TEST_CASE("peer_identity__host_in_a_uri__without_scheme_port_and_brackets") {
  CHECK(host_in("tcp://10.0.0.7:7000") == "10.0.0.7");
  CHECK(host_in("tcp://[fe80::1%eth0]:7000") == "fe80::1%eth0");
  CHECK(host_in("tcp://storage.example:7000") == "storage.example");
  CHECK(host_in("shm://place") == "place");
  CHECK(host_in("10.0.0.7:7000").empty());
  CHECK(host_in("").empty());
}

TEST_CASE("event__connect_request__says_who_dials_for_as_long_as_it_is_held") {
  Met met;
  Event request = met.request();
  met.log->peer = {};
  CHECK(request.peer() == PeerIdentity{"cx1abc", "10.0.0.7"});
  Event moved(std::move(request));
  CHECK(moved.peer().proved == "cx1abc");
  CHECK_FALSE(request.peer().is_known());  // NOLINT(bugprone-use-after-move): what is left is looked at
  request = std::move(moved);
  CHECK(request.peer().proved == "cx1abc");
  met.endpoint.reset();
  CHECK(request.peer().address == "10.0.0.7");
}

TEST_CASE("event__connect__says_who_answered_only_if_somebody_did") {
  Met met;
  const Event connected = met.connect(Status::success);
  CHECK(connected.peer() == PeerIdentity{"cx1abc", "10.0.0.7"});
  CHECK(met.endpoint->peer(connected.connection) == PeerIdentity{"cx1abc", "10.0.0.7"});
  CHECK_FALSE(met.endpoint->peer(dialler).is_known());
  CHECK_FALSE(met.connect(Status::refused).peer().is_known());
  met.log->peer = {};
  CHECK_FALSE(met.connect(Status::success).peer().is_known());
}
