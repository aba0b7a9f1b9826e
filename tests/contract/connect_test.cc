// Points 2 to 5 of the conformance list: connecting.
#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

TEST_CASE("contract__connect_and_accept__both_ends_hear_of_it_with_their_contexts") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const auto data = pattern(ports::connect_data_bytes_max, 1);
  cci::ConnectOptions options;
  options.role = ports::Role::router;
  options.attribute = Attribute::reliable_unordered;
  options.data = data;
  options.context = 42;
  const auto dialled = a.endpoint->connect(b.endpoint->uri(), options);
  REQUIRE(dialled);
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(request->role == ports::Role::router);
  REQUIRE(request->attribute == Attribute::reliable_unordered);
  REQUIRE(std::equal(data.begin(), data.end(), request->data().begin(), request->data().end()));
  REQUIRE_FALSE(a.has(EventType::connect));
  REQUIRE(b.endpoint->accept(*request, 43) == Status::success);
  REQUIRE(b.endpoint->accept(*request, 43) == Status::invalid);
  REQUIRE(b.endpoint->reject(*request) == Status::invalid);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::success);
  REQUIRE(connected->context == 42);
  REQUIRE(connected->connection);
  const auto accepted = wait_event(lab, b, EventType::accept);
  REQUIRE(accepted);
  REQUIRE(accepted->status == Status::success);
  REQUIRE(accepted->context == 43);
  REQUIRE(a.endpoint->max_send_bytes(connected->connection) >= ports::max_send_bytes_floor);
  REQUIRE(a.endpoint->max_send_bytes(connected->connection) == b.endpoint->max_send_bytes(accepted->connection));
  const std::vector<ports::HopInfo> hops = a.endpoint->hops(connected->connection);
  REQUIRE(hops.size() == lab.hops());
  const bool secured = lab_name.find("secured") != std::string::npos;
  for (const ports::HopInfo& hop : hops) {
    REQUIRE(hop.peer.starts_with("cx1-") == secured);
    REQUIRE(hop.protection.empty() == !secured);
  }
  // Over routers whoever accepts is told of no path.
  const std::vector<ports::HopInfo> back = b.endpoint->hops(accepted->connection);
  REQUIRE(back.empty() == lab.routed());
  const std::string scheme = hops.front().transport + "://";
  REQUIRE(hops.front().node.starts_with(scheme));
  for (const ports::HopInfo& hop : back) REQUIRE((hop.node.starts_with(scheme) && hop.node.size() > scheme.size()));
}

// Every connection of one host is of the same peer, whatever its port. Over routers the far end is not known.
TEST_CASE("contract__peer_identity__is_the_same_on_every_connection") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  std::vector<ports::PeerIdentity> diallers, answerers;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
    auto request = wait_event(lab, b, EventType::connect_request);
    REQUIRE(request);
    diallers.push_back(request->peer());
    REQUIRE(b.endpoint->accept(*request, 1) == Status::success);
    const auto accepted = wait_event(lab, b, EventType::accept);
    REQUIRE(accepted);
    REQUIRE(b.endpoint->peer(accepted->connection) == diallers.back());
    const auto connected = wait_event(lab, a, EventType::connect);
    REQUIRE(connected);
    answerers.push_back(connected->peer());
    REQUIRE(a.endpoint->peer(connected->connection) == answerers.back());
  }
  REQUIRE(diallers[0] == diallers[1]);
  REQUIRE(answerers[0] == answerers[1]);
  REQUIRE(diallers[0].is_known() == !lab.routed());
  REQUIRE(answerers[0].is_known() == !lab.routed());
  const bool proved = lab_name.find("secured") != std::string::npos && !lab.routed();
  REQUIRE(diallers[0].proved.empty() == !proved);
  REQUIRE(answerers[0].proved.empty() == !proved);
  if (proved) REQUIRE(diallers[0].proved != answerers[0].proved);
  // The simulated nodes are on hosts of their own.
  const bool one_host =
      lab_name.starts_with("tcp") || lab_name.find("udp") != std::string::npos || lab_name.find("verbs") != std::string::npos;
  if (!lab.routed()) REQUIRE(one_host == (diallers[0].address == answerers[0].address));
}

TEST_CASE("contract__connect_data_too_long__refused_at_once") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const auto data = pattern(ports::connect_data_bytes_max + 1, 1);
  cci::ConnectOptions options;
  options.data = data;
  const auto dialled = a.endpoint->connect(b.endpoint->uri(), options);
  REQUIRE_FALSE(dialled);
  REQUIRE(dialled.error().kind == ErrorKind::usage);
}

TEST_CASE("contract__reject__refused_with_the_reason_and_the_context") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  cci::ConnectOptions options;
  options.context = 5;
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), options));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(b.endpoint->reject(*request, "closed on mondays") == Status::success);
  REQUIRE(b.endpoint->accept(*request, 0) == Status::invalid);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::refused);
  REQUIRE_FALSE(connected->connection);
  REQUIRE(connected->context == 5);
  REQUIRE(connected->reason == "closed on mondays");
}

TEST_CASE("contract__a_peers_words__reach_nobody_raw") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(b.endpoint->reject(*request, "closed\non\x1b[2Jmondays") == Status::success);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->reason == "closed%0Aon%1B[2Jmondays");
}

TEST_CASE("contract__request_let_go_undecided__refused") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  request.reset();
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::refused);
}

TEST_CASE("contract__nobody_listens__refused_or_unreachable") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  cci::ConnectOptions options;
  options.context = 9;
  REQUIRE(a.endpoint->connect(lab.dead_uri(), options));
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE((connected->status == Status::refused || connected->status == Status::unreachable));
  REQUIRE(connected->context == 9);
}

TEST_CASE("contract__nobody_decides__the_timeout_is_honoured") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  cci::ConnectOptions options;
  options.timeout = 3s;
  options.context = 11;
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), options));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  lab.pass(2s);
  REQUIRE_FALSE(a.has(EventType::connect));
  lab.pass(2s);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::timed_out);
  REQUIRE(connected->context == 11);
  // The peer of this request has gone: deciding comes too late, and harms nobody.
  REQUIRE(lab.run([&] { return b.endpoint->accept(*request, 0) != Status::success; }));
}

TEST_CASE("contract__no_timeout__waits_for_ever") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  lab.pass(std::chrono::hours(1));
  REQUIRE_FALSE(a.has(EventType::connect));
  REQUIRE(b.endpoint->accept(*request, 0) == Status::success);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::success);
}

TEST_CASE("contract__peer_process_stopped__dial_times_out") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  b.frozen = true;
  cci::ConnectOptions options;
  options.timeout = 2s;
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), options));
  lab.pass(3s);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::timed_out);
}

TEST_CASE("contract__requests_beyond_the_bound__wait_and_none_is_lost") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.transport.pending_requests_max = 4;
  Node& a = lab.add();
  Node& b = lab.add(few);
  constexpr int dials = 20;
  for (int i = 0; i < dials; ++i) REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  int accepted = 0;
  REQUIRE(lab.run([&] {
    REQUIRE(b.count(EventType::connect_request) <= 4);
    while (auto request = b.take(EventType::connect_request)) {
      REQUIRE(b.endpoint->accept(*request, 0) == Status::success);
      ++accepted;
    }
    return accepted == dials && a.count(EventType::connect) == dials;
  }));
  while (auto connected = a.take(EventType::connect)) REQUIRE(connected->status == Status::success);
}

TEST_CASE("contract__malformed_uri__usage_error") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  for (const char* uri : {"", "nonsense", "tcp://", "http://127.0.0.1:80", "tcp://127.0.0.1", "tcp://127.0.0.1:0",
                          "tcp://127.0.0.1:65536", "tcp://[::1"}) {
    CAPTURE(uri);
    const auto dialled = a.endpoint->connect(uri, {});
    REQUIRE_FALSE(dialled);
    REQUIRE(dialled.error().kind == ErrorKind::usage);
  }
}

}  // namespace
}  // namespace ccixfer::contract
