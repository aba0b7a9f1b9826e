// Connections that say nothing.
#include "tests/unit/stream/rig.h"
#include "transports/connection/limits.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

ports::TransportOptions few() {
  ports::TransportOptions options;
  options.pending_requests_max = 8;
  return options;
}

TEST_CASE("engine__as_many_silent_connections_as_may_be_pending__others_still_get_in_soon") {
  Rig rig(few());
  std::vector<std::unique_ptr<RawPeer>> silent;
  const auto dial_silently = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) silent.push_back(std::make_unique<RawPeer>(rig, "s" + std::to_string(silent.size())));
  };
  dial_silently(20);
  rig.settle();
  CHECK(rig.b.net->accept_paused);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  const Instant began = rig.now;
  const auto asked = [&] {
    dial_silently(rig.hub.links.size() < 60 ? 1 : 0);  // they go on
    return !rig.b.sink.requests.empty();
  };
  REQUIRE(rig.run(asked, 9s));
  CHECK(rig.now - began <= 5 * connection::silence_when_crowded_max);
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests.front()) == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected.front().status == Status::success);
}

// Whatever it is of which there are no more: connections, or descriptors for their streams.
TEST_CASE("engine__as_many_silent_connections_as_there_can_be__others_still_get_in_soon") {
  ports::TransportOptions options;
  const bool out_of_descriptors = GENERATE(false, true);
  if (!out_of_descriptors) options.connections_max = 8;
  Rig rig(options);
  if (out_of_descriptors) rig.b.net->streams_max = 8;
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (size_t i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawPeer>(rig, "s" + std::to_string(i)));
  rig.settle();
  CHECK(rig.b.net->accept_paused == !out_of_descriptors);
  CHECK(rig.b.net->accept_starves() == out_of_descriptors);
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  const Instant began = rig.now;
  REQUIRE(rig.run([&] { return !rig.b.sink.requests.empty(); }, 9s));
  CHECK(rig.now - began <= 4 * connection::silence_when_crowded_max);
}

TEST_CASE("engine__silent_connections_that_keep_nobody_out__have_the_time_of_the_handshake") {
  Rig rig(few());
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (size_t i = 0; i < 6; ++i) silent.push_back(std::make_unique<RawPeer>(rig, "s" + std::to_string(i)));
  rig.pass(5s);
  rig.connect();
  for (const auto& peer : silent) {
    peer->read();
    CHECK_FALSE(peer->closed);
  }
  rig.pass(6s);
  for (const auto& peer : silent) {
    peer->read();
    CHECK(peer->closed);
  }
}

// Whoever has said hello waits for our application, and keeps its place.
TEST_CASE("engine__requests_that_the_application_has_not_decided__are_not_dropped") {
  ports::TransportOptions patient = few();
  patient.keepalive = Duration{0};
  Rig rig(patient);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (size_t i = 0; i < 12; ++i) {
    peers.push_back(std::make_unique<RawPeer>(rig, "p" + std::to_string(i)));
    peers.back()->hello(RawPeer::usual());
  }
  rig.pass(60s);
  CHECK(rig.b.sink.requests.size() == 8);
  CHECK(rig.b.sink.disconnected.empty());
}

}  // namespace
}  // namespace ccixfer::stream::testing
