// Connections that say nothing.
#include "tests/unit/stream/rig.h"

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
  CHECK(rig.now - began <= 5 * silence_when_crowded_max);
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests.front()) == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected.front().status == Status::success);
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

TEST_CASE("silent_diallers__of_several__the_one_that_came_first_is_due_first") {
  const auto at = [](int64_t ms) { return Instant{} + std::chrono::milliseconds(ms); };
  SilentDiallers silent;
  CHECK(silent.deadline() == never);
  silent.remove(3);  // it was never there
  silent.add(5, at(2));
  silent.add(1, at(3));
  silent.add(9, at(1));
  CHECK(silent.deadline() == at(1) + silence_when_crowded_max);
  CHECK(silent.first_due(silent.deadline() - Duration(1)) == std::nullopt);
  CHECK(silent.first_due(silent.deadline()) == 9u);
  silent.remove(9);
  silent.remove(9);
  CHECK(silent.first_due(never) == 5u);
  silent.remove(5);
  CHECK(silent.first_due(at(3) + silence_when_crowded_max) == 1u);
  silent.remove(1);
  CHECK(silent.first_due(never - Duration(1)) == std::nullopt);
}

}  // namespace
}  // namespace ccixfer::stream::testing
