// Peers that keep to the letter of the protocol and not to its sense: they never answer, refuse for ever, ask and do not go on.
// What they cost is bounded, what waits for them ends, and others are served.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;
using wire::Kind;
using wire::Writer;

void keep_alive(RawPeer& peer) {
  peer.frame([](Writer& w) { wire::encode_empty(w, Kind::keepalive_ack); });
}

TEST_CASE("bad_input__never_acknowledges__window_bounds_it_and_the_timeout_ends_in_order") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.b.transport->set_send_timeout(id, 2s);
  uint64_t token = 0;
  while (rig.send(rig.b, id, filled(100, 1), token) == Status::success) ++token;
  REQUIRE(token == 16);  // the window that it offered
  for (int second = 0; second < 4; ++second) {
    keep_alive(peer);
    rig.pass(1s);
  }
  REQUIRE(rig.b.sink.completions.size() == 16);
  for (uint64_t i = 0; i < 16; ++i) {
    REQUIRE(rig.b.sink.completions[i].token == i);
    REQUIRE(rig.b.sink.completions[i].status == Status::timed_out);
  }
  REQUIRE(rig.b.sink.disconnected.empty());  // the application decides
  rig.connect();
}

TEST_CASE("bad_input__refuses_for_ever__retries_slow_down_and_end") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.b.transport->set_send_timeout(id, 10s);
  REQUIRE(rig.send(rig.b, id, filled(1000, 1), 1) == Status::success);
  rig.settle();
  const uint64_t before = rig.b.counters.get(Counter::bytes_out);
  // Each attempt is refused at once.
  for (int i = 0; i < 20'000 && rig.b.sink.completions.empty(); ++i) {
    peer.read();
    const bool came = !peer.got.empty();
    peer.got.clear();
    if (came) peer.frame([](Writer& w) { wire::encode(w, wire::MessageAck{0, Status::receiver_not_ready}); });
    rig.pass(1ms);
  }
  REQUIRE(rig.b.sink.completions.size() == 1);
  REQUIRE(rig.b.sink.completions[0].status == Status::receiver_not_ready);
  const uint64_t attempts = (rig.b.counters.get(Counter::bytes_out) - before) / 1000;
  REQUIRE(attempts <= 220);  // one in 50 ms, and a few at the beginning
  REQUIRE(attempts >= 100);
  rig.connect();
}

TEST_CASE("bad_input__never_answers_a_write_or_a_read__disconnect_ends_them_in_bounded_time") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  Buffer memory(1000);
  ports::RmaRequest request;
  request.remote.handle.kind = ports::HandleKind::region;
  const bool write = GENERATE(true, false);
  request.write = write;
  if (write) request.source = memory;
  if (!write) request.destination = memory;
  REQUIRE(rig.b.transport->rma(id, request, 5) == Status::success);
  for (int second = 0; second < 30; ++second) {
    keep_alive(peer);
    rig.pass(1s);
  }
  REQUIRE(rig.b.sink.completions.empty());
  rig.b.transport->disconnect(id);
  for (int second = 0; second < 11; ++second) {
    keep_alive(peer);
    rig.pass(1s);
  }
  REQUIRE(rig.b.status_of(5) == Status::disconnected);
  rig.pass(3s);
  peer.read();
  REQUIRE(peer.closed);
}

TEST_CASE("bad_input__opens_and_says_nothing__lost_with_a_reason") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  rig.pass(60s);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.sink.disconnected[0].id == id);
  REQUIRE(rig.b.sink.disconnected[0].status == Status::timed_out);
  REQUIRE_FALSE(rig.b.sink.disconnected[0].reason.empty());
  peer.read();
  REQUIRE(peer.closed);
  rig.connect();
}

TEST_CASE("bad_input__a_flood_of_undecided_requests__is_bounded_and_an_honest_one_passes") {
  ports::TransportOptions options;
  options.pending_requests_max = 8;
  Rig rig(options);
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 50; ++i) {
    flood.push_back(std::make_unique<RawPeer>(rig, "f" + std::to_string(i)));
    flood.back()->hello(RawPeer::usual());
  }
  REQUIRE(rig.b.sink.requests.size() == 8);
  REQUIRE(rig.b.net->accept_paused);
  // They are silent: thrown out, the next come, as many at a time.
  for (int i = 0; i < 10; ++i) {
    rig.pass(25s);
    REQUIRE(rig.b.sink.requests.size() - rig.b.sink.disconnected.size() <= 8);
  }
  REQUIRE(rig.b.sink.requests.size() == 50);
  REQUIRE(rig.b.sink.disconnected.size() == 50);
  // Deciding on one that has gone harms nobody.
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::not_found);
  REQUIRE(rig.b.transport->reject(rig.b.sink.requests[49], "late") == Status::not_found);
  rig.connect();
}

TEST_CASE("bad_input__hello_and_at_once_an_ack_nobody_waits_for__rejected_and_counted") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.hello(RawPeer::usual());
  REQUIRE(rig.b.sink.requests.size() == 1);
  peer.frame([](Writer& w) { wire::encode_empty(w, Kind::connect_ack); });
  REQUIRE(rig.b.counters.get(Counter::frames_rejected) == 1);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(peer.kinds().back() == Kind::bye);
  rig.connect();
}

}  // namespace
}  // namespace ccixfer::stream::testing
