// A routing endpoint by itself: its routers and the far end are raw peers. Whom it asks, what it says and believes, how it leaves.
#include <catch2/catch.hpp>

#include "routing/transport/routed_acceptor.h"
#include "routing/transport/routed_transport.h"
#include "tests/unit/routing/raw_peer.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const std::string far_end = "cci://1:2:10.0.0.9:7000";

class End final : public sim::Actor {
 public:
  End(sim::World& world, sim::Fabric& fabric, RoutedOptions options, bool listens = true)
      : world_(world), node_(world.add_node("end")), entropy_(world.random().next()) {
    memory = std::make_shared<cci::MemoryTable>(entropy_, counters);
    sim::SimNetOptions net;
    net.networks = {{"lan", "10.0.0.2"}};
    net.listen = listens;
    net.port = listens ? 7000 : 0;
    auto below = std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                           std::make_unique<sim::SimNet>(fabric, node_, net), counters);
    auto lower = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(below), memory, counters);
    options.subnet = {1, 1};
    endpoint = std::make_unique<cci::Endpoint>(
        cci::EndpointOptions{}, make_routed_transport(options, std::move(lower), memory, entropy_, counters), memory, counters);
    world.add_actor(node_, this);
  }
  ~End() override { world_.remove_actor(node_, this); }
  void turn(Instant now) override {
    endpoint->turn(now);
    while (auto event = endpoint->get_event()) events.push_back(std::move(*event));
  }
  [[nodiscard]] Instant next_deadline() const override { return endpoint->next_deadline(); }
  void wake() { world_.wake(node_); }
  std::optional<cci::Event> take(EventType type) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].type != type) continue;
      std::optional<cci::Event> found{std::move(events[i])};
      events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
    return std::nullopt;
  }
  [[nodiscard]] size_t count(EventType type) const {
    size_t found = 0;
    for (const cci::Event& event : events) found += event.type == type ? 1 : 0;
    return found;
  }

  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::vector<cci::Event> events;

 private:
  sim::World& world_;
  sim::NodeId node_;
  sim::SimEntropy entropy_;
};

RoutedOptions with_routers(std::vector<std::string> routers) {
  RoutedOptions options;
  options.routers = std::move(routers);
  options.fragment_bytes_max = 64u << 10;
  return options;
}

struct Met {
  explicit Met(RoutedOptions options = with_routers({"sim://10.0.0.66:7000"}), bool listens = true)
      : a(world, fabric, "lan", "10.0.0.66"),
        b(world, fabric, "lan", "10.0.0.67"),
        end(world, fabric, std::move(options), listens) {
    a.accepts = b.accepts = true;
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) { return a.run(done, at_most); }
  void rest() { world.run_for(milliseconds(50)); }
  [[nodiscard]] bool came(EventType type) {
    return run([&] { return end.count(type) > 0; });
  }
  cci::Connection dial(Duration timeout = seconds(60), const std::string& uri = far_end) {
    cci::ConnectOptions how;
    how.timeout = timeout;
    how.context = 5;
    const auto made = end.endpoint->connect(uri, how);
    REQUIRE(made);
    dialled_at = world.now();
    end.wake();
    return *made;
  }
  RawPeer& asked() {
    RawPeer* found = nullptr;
    REQUIRE(run(
        [&] {
          for (RawPeer* peer : {&a, &b}) found = peer->last(MessageKind::connect_request) ? peer : found;
          return found != nullptr;
        },
        seconds(20)));
    request = *decode_connect_request(*found->last(MessageKind::connect_request));
    found->received.clear();
    return *found;
  }
  cci::Event answer() {
    REQUIRE(run([&] { return end.count(EventType::connect) > 0; }, seconds(70)));
    answered_after = world.now() - dialled_at;
    return std::move(*end.take(EventType::connect));
  }
  // An open connection through `a`.
  void open(uint32_t most_bytes = 64u << 10) {
    dial();
    asked();
    a.say(ConnectReply{Status::success, {}, 1392, most_bytes, {}, 0});
    connection = answer().connection;
    REQUIRE(connection);
    REQUIRE(run([&] { return a.last(MessageKind::connect_ack).has_value(); }));
    a.received.clear();
  }
  // A hop that dials the end, as its last router.
  cci::Connection hop() {
    REQUIRE(a.connect("sim://10.0.0.2:7000", ports::Role::hop));
    return a.connection;
  }
  void say_request(RawPeer& peer) { REQUIRE(peer.say(RawPeer::usual_request(end.endpoint->uri())) == Status::success); }
  [[nodiscard]] uint64_t rejected() const { return end.counters.get(Counter::routed_rejected); }
  std::vector<FragmentMessage> fragments(MessageKind kind) const {
    std::vector<FragmentMessage> found;
    for (const auto& each : a.received) {
      if (kind_of(Bytes(each)) == kind) found.push_back(decode_fragment(Bytes(each)).value());
    }
    return found;
  }

  sim::World world{5};
  sim::Fabric fabric{world, {}};
  RawPeer a, b;
  End end;
  cci::Connection connection;
  ConnectRequest request;
  Instant dialled_at{};
  Duration answered_after{};
};

RoutedOptions two_routers() { return with_routers({"sim://10.0.0.66:7000", "sim://10.0.0.67:7000"}); }

enum class Does : uint8_t { replies, leaves, says_bye, lies };
struct Step {
  Does does = Does::replies;
  Status status = Status::no_route;
  std::string reason = {};
};

}  // namespace

TEST_CASE("routed_end__what_its_routers_answer__the_one_that_knows_most_is_believed") {
  struct Row {
    std::vector<Step> steps;
    Status status;
    std::string reason;
  };
  const Step no_way_a{Does::replies, Status::no_route, "a"}, no_way_b{Does::replies, Status::no_route, "b"};
  const Step no_answer_a{Does::replies, Status::unreachable, "a"}, no_answer_b{Does::replies, Status::unreachable, "b"};
  const Step leaves{Does::leaves, {}, {}};
  const std::vector<Row> rows = {
      {{no_way_a, no_way_b}, Status::no_route, "b"},
      {{no_way_a, no_answer_b}, Status::unreachable, "b"},
      {{no_answer_a, no_way_b}, Status::unreachable, "a"},
      {{no_answer_a, no_answer_b}, Status::unreachable, "b"},
      {{no_way_a, leaves}, Status::no_route, "a"},
      {{leaves, no_way_b}, Status::no_route, "b"},
      {{no_answer_a, leaves}, Status::unreachable, "a"},
      {{leaves, leaves}, Status::unreachable, "router sim://10.0.0.6"},
      {{no_way_a, {Does::says_bye, Status::error, "b"}}, Status::no_route, "a"},
      {{{Does::says_bye, Status::error, "a"}, {Does::says_bye, Status::error, "b"}}, Status::unreachable, "b"},
      {{{Does::replies, Status::no_route, ""}, leaves}, Status::no_route, std::string(to_string(Status::no_route))},
      {{{Does::replies, Status::refused, "a"}}, Status::refused, "a"},
      {{{Does::replies, Status::timed_out, "a"}}, Status::timed_out, "a"},
      {{no_answer_a, {Does::replies, Status::refused, "b"}}, Status::refused, "b"},
      {{{Does::lies, {}, {}}}, Status::error, "malformed reply"},
      {{no_answer_a, {Does::lies, {}, {}}}, Status::error, "malformed reply"},
      {{leaves, {Does::replies, Status::success, ""}}, Status::success, ""},
      {{no_way_a, {Does::replies, Status::success, ""}}, Status::success, ""},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const Row& row = rows[i];
    Met met(two_routers());
    met.dial();
    for (const Step& step : row.steps) {
      RawPeer& peer = met.asked();
      if (step.does == Does::replies) peer.say(ConnectReply{step.status, step.reason, 1392, 1u << 16, {}, 0});
      if (step.does == Does::says_bye) peer.say(Bye{step.status, step.reason});
      if (step.does == Does::lies) peer.send({static_cast<std::byte>(MessageKind::connect_reply), {}, {}, {}, std::byte{1}});
      if (step.does != Does::leaves) continue;
      peer.endpoint->disconnect(peer.connection);
      peer.wake();
    }
    const cci::Event event = met.answer();
    CHECK(event.status == row.status);
    INFO(event.reason);
    CHECK(event.reason.find(row.reason) != std::string::npos);
    CHECK(event.context == 5);
    CHECK(static_cast<bool>(event.connection) == (row.status == Status::success));
    CHECK(met.a.requests.size() + met.b.requests.size() == row.steps.size());
    CHECK(met.rejected() == (row.steps.back().does == Does::lies ? 1 : 0));
    met.rest();
    if (row.status != Status::success) CHECK((met.a.gone || met.a.requests.empty() || row.steps[0].does == Does::leaves));
    CHECK(met.end.events.empty());
  }
}

TEST_CASE("routed_end__routers_that_do_not_answer__share_the_time_that_is_left") {
  const Duration timeout = GENERATE(Duration{seconds(4)}, Duration{seconds(60)}, forever);
  Met met(two_routers());
  met.a.freeze(true);
  met.b.freeze(true);
  met.dial(timeout);
  const cci::Event event = met.answer();
  const Duration each = std::min<Duration>(router_dial_timeout, timeout == seconds(4) ? seconds(2) : router_dial_timeout);
  CHECK((event.status == Status::unreachable || event.status == Status::timed_out));
  CHECK(met.answered_after >= 2 * each - milliseconds(5));
  CHECK(met.answered_after <= 2 * each + milliseconds(50));
}

TEST_CASE("routed_end__one_of_two_routers_is_silent__the_other_is_asked_at_half_the_time") {
  Met met(two_routers());
  met.a.freeze(true);
  Duration longest{0};
  for (int i = 0; i < 2; ++i) {  // each of them is the first once
    met.dial(seconds(4));
    met.asked().say(ConnectReply{Status::success, {}, 1392, 1u << 16, {}, 0});
    CHECK(met.answer().status == Status::success);
    longest = std::max(longest, met.answered_after);
  }
  CHECK(longest >= seconds(2));
  CHECK(longest < seconds(2) + milliseconds(50));
}

TEST_CASE("routed_end__one_of_its_routers_has_no_address__the_other_is_asked") {
  for (int turn = 0; turn < 4; ++turn) {
    Met met(with_routers({"not an address", "sim://10.0.0.66:7000"}));
    for (int i = 0; i < 2; ++i) {  // each of them is the first once
      met.dial();
      met.asked().say(ConnectReply{Status::no_route, "none", 1392, 1u << 16, {}, 0});
      const cci::Event event = met.answer();
      CHECK(event.status == Status::no_route);
      CHECK(event.reason == "none");
    }
  }
  Met met(with_routers({"not an address"}));
  met.dial();
  const cci::Event event = met.answer();
  CHECK(event.status == Status::unreachable);
  CHECK(event.reason.find("router not an address: ") == 0);
}

TEST_CASE("routed_end__its_request__says_where_from_what_it_takes_and_how_long") {
  Met met;
  cci::ConnectOptions how;
  how.timeout = seconds(10);
  how.attribute = cci::Attribute::reliable_unordered;
  how.data = as_bytes("hello");
  REQUIRE(met.end.endpoint->connect(far_end, how));
  met.end.wake();
  RawPeer& peer = met.asked();
  CHECK(met.request.destination == far_end);
  CHECK(met.request.source == SubnetId{1, 1});
  CHECK(met.request.crossed == 0);
  CHECK(met.request.role == ports::Role::application);
  CHECK(met.request.attribute == cci::Attribute::reliable_unordered);
  CHECK(as_text(met.request.data) == "hello");
  CHECK(met.request.max_send_bytes == peer.hop_payload_bytes());
  CHECK(met.request.fragment_bytes == 64u << 10);
  CHECK(met.request.timeout > seconds(9));
  CHECK(met.request.timeout <= seconds(10));
  ConnectReply reply{Status::success, {}, 0, 0, {}, 5'000'000};
  SECTION("the way's sizes are the least") { reply.max_send_bytes = 1000, reply.fragment_bytes = 8192; }
  SECTION("its own are") { reply.max_send_bytes = 1u << 20, reply.fragment_bytes = 1u << 30; }
  reply.hops.push_back({"sim", "sim://10.7.0.1:7000", 3, 4, milliseconds(1), 6});
  met.world.run_for(milliseconds(100));
  peer.say(reply);
  const cci::Event event = met.answer();
  REQUIRE(event.status == Status::success);
  CHECK(met.end.endpoint->max_send_bytes(event.connection) == std::min(reply.max_send_bytes, peer.hop_payload_bytes()));
  const auto hops = met.end.endpoint->hops(event.connection);
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].node == "sim://10.0.0.66:7000");
  CHECK(hops[0].transport == "sim");
  CHECK(SubnetId{hops[0].as, hops[0].subnet} == SubnetId{1, 1});
  CHECK(hops[0].rate_bits_per_s == 5'000'000);
  CHECK(hops[0].round_trip >= milliseconds(100));
  CHECK(hops[1].node == "sim://10.7.0.1:7000");
  CHECK(SubnetId{hops[1].as, hops[1].subnet} == SubnetId{3, 4});
  for (const auto& hop : hops) CHECK(hop.fragment_bytes == std::min(reply.fragment_bytes, 64u << 10));
  CHECK(met.run([&] { return met.a.last(MessageKind::connect_ack).has_value(); }));
}

TEST_CASE("routed_end__addresses__malformed_or_too_long_are_refused_at_once") {
  Met met;
  const auto of_length = [](size_t bytes) {
    const std::string before = "cci://4294967295:4294967295:", after = ":12345678901234567890123456789012";
    return before + std::string(bytes - before.size() - after.size(), 'n') + after;
  };
  CHECK(met.end.endpoint->connect(of_length(destination_bytes_max), {}));
  for (const std::string& bad : {std::string("cci://1:2"), of_length(destination_bytes_max + 1), std::string("sim://nowhere")}) {
    const auto made = met.end.endpoint->connect(bad, {});
    REQUIRE_FALSE(made);
    CHECK(made.error().kind == ErrorKind::usage);
  }
}

TEST_CASE("routed_end__on_its_own_subnet_without_a_listener__dials_by_its_routers_scheme") {
  const std::string neighbour = "cci://1:1:10.0.0.67:7000";
  RoutedOptions options = with_routers({});
  bool reached = true;
  SECTION("as told") { options.scheme = "sim"; }
  SECTION("as its first router's") { options.routers = {"sim://10.0.0.66:7000"}; }
  SECTION("none: tcp") { reached = false; }
  Met met(options, false);
  CHECK(met.end.endpoint->uri().empty());
  const auto made = met.end.endpoint->connect(neighbour, {});
  CHECK(static_cast<bool>(made) == reached);
  if (!made) {
    CHECK(made.error().message.find("tcp://10.0.0.67:7000") != std::string::npos);
    return;
  }
  met.end.wake();
  CHECK(met.answer().status == Status::success);
  CHECK(met.b.requests.size() == 1);
}

TEST_CASE("routed_end__the_application_gives_up_a_dial__nothing_is_left_at_any_step") {
  Met met;
  SECTION("before it has begun") {
    const cci::Connection dialled = met.dial();
    met.end.endpoint->disconnect(dialled);
    met.end.wake();
    met.world.run_for(seconds(1));
    CHECK(met.a.requests.empty());
  }
  SECTION("while the router is being connected to") {
    met.a.freeze(true);
    const cci::Connection dialled = met.dial();
    met.rest();
    met.end.endpoint->disconnect(dialled);
    met.end.wake();
    met.rest();
    met.a.freeze(false);
    met.world.run_for(seconds(1));
    CHECK(met.a.received.empty());
    CHECK((met.a.gone || !met.a.answered || !met.a.connection));
  }
  SECTION("once the request is out") {
    const cci::Connection dialled = met.dial();
    RawPeer& peer = met.asked();
    met.end.endpoint->disconnect(dialled);
    met.end.wake();
    CHECK(met.run([&] { return peer.gone; }));
    CHECK(peer.received.empty());
  }
  SECTION("of a neighbour, directly") {
    met.b.freeze(true);
    const cci::Connection dialled = met.dial(seconds(60), "cci://1:1:10.0.0.67:7000");
    met.rest();
    met.end.endpoint->disconnect(dialled);
    met.end.wake();
    met.rest();
    met.b.freeze(false);
    met.world.run_for(seconds(1));
    CHECK((met.b.gone || !met.b.answered || !met.b.connection));
  }
  CHECK(met.end.events.empty());
  met.open();  // and it dials anew
}

TEST_CASE("routed_end__the_far_end_says_bye__its_status_and_words_are_told_once") {
  for (const Status said : {Status::success, Status::disconnected, Status::timed_out, Status::error, Status::refused}) {
    Met met;
    met.open();
    met.a.say(Bye{said, "enough"});
    REQUIRE(met.came(EventType::disconnected));
    const auto event = met.end.take(EventType::disconnected);
    CHECK(event->status == (said == Status::success ? Status::disconnected : said));
    CHECK(event->reason == "enough");
    CHECK(event->connection == met.connection);
    CHECK(met.run([&] { return met.a.gone; }));
    CHECK(met.a.received.empty());  // no bye in answer to one
    CHECK(met.end.events.empty());
  }
}

TEST_CASE("routed_end__routers_that_stop__are_told_once_a_connection_and_not_after_leaving") {
  Met met;
  met.open();
  const bool left = GENERATE(false, true);
  if (left) {
    REQUIRE(met.end.endpoint->send(met.connection, as_bytes("last"), 1) == Status::success);  // so that it does not end yet
    met.end.wake();
    met.rest();
    met.end.endpoint->disconnect(met.connection);
    met.end.wake();
    met.rest();
  }
  met.a.say_plain(MessageKind::draining);
  met.a.say_plain(MessageKind::draining);
  met.rest();
  CHECK(met.end.count(EventType::draining) == (left ? 0 : 1));
  CHECK(met.rejected() == 0);
}

TEST_CASE("routed_end__left_and_not_ended_yet__what_comes_is_answered_disconnected") {
  Met met;
  met.open();
  REQUIRE(met.end.endpoint->send(met.connection, as_bytes("last"), 1) == Status::success);
  met.end.wake();
  met.rest();
  met.end.endpoint->disconnect(met.connection);
  met.end.wake();
  met.rest();
  std::vector<std::byte> message;
  encode_message_header(0, message);
  message.push_back(std::byte{7});
  met.a.send(message);
  met.rest();
  REQUIRE(met.a.last(MessageKind::message_ack));
  CHECK(decode_message_ack(*met.a.last(MessageKind::message_ack))->status == Status::disconnected);
  CHECK(met.end.count(EventType::receive) == 0);
}

TEST_CASE("routed_end__the_far_end_is_silent__asked_three_times_and_then_given_up") {
  RoutedOptions options = with_routers({"sim://10.0.0.66:7000"});
  options.keepalive = seconds(4);
  Met met(options);
  met.open();
  const auto probes = [&] {
    size_t count = 0;
    for (const auto& each : met.a.received) count += kind_of(Bytes(each)) == MessageKind::keepalive ? 1u : 0u;
    return count;
  };
  met.world.run_for(seconds(4) - milliseconds(100));
  CHECK(probes() == 0);
  met.world.run_for(milliseconds(200));
  CHECK(probes() == 1);
  met.world.run_for(seconds(8));
  CHECK(probes() == 3);
  met.a.say_plain(MessageKind::keepalive_ack);
  met.world.run_for(seconds(4) - milliseconds(200));
  CHECK(probes() == 3);
  met.world.run_for(seconds(12) - milliseconds(200));
  CHECK(probes() == 6);
  // What the next router says of itself is no sign of the far end.
  met.a.say(FragmentReleased{1, false});
  CHECK(met.end.count(EventType::disconnected) == 0);
  met.world.run_for(milliseconds(800));
  REQUIRE(met.came(EventType::disconnected));
  CHECK(met.end.take(EventType::disconnected)->status == Status::timed_out);
  CHECK(probes() == 6);
  REQUIRE(met.run([&] { return met.a.gone; }));  // the routers between hear why
  REQUIRE(met.a.last(MessageKind::bye));
  CHECK(decode_bye(*met.a.last(MessageKind::bye))->status == Status::timed_out);
}

TEST_CASE("routed_end__watched_by_its_application__silence_is_told_once_and_ends_nothing") {
  Met met;
  met.open();
  REQUIRE(met.end.endpoint->set_keepalive(met.connection, seconds(10)) == Status::success);
  met.end.wake();
  met.rest();
  CHECK(met.a.last(MessageKind::end_to_end_keepalive));
  met.world.run_for(seconds(4));
  CHECK_FALSE(met.a.last(MessageKind::keepalive));
  met.world.run_for(seconds(2));
  CHECK(met.a.last(MessageKind::keepalive));  // asked at half the time
  CHECK(met.end.count(EventType::keepalive_timed_out) == 0);
  met.world.run_for(seconds(5));
  CHECK(met.end.count(EventType::keepalive_timed_out) == 1);
  met.world.run_for(seconds(120));
  CHECK(met.end.count(EventType::keepalive_timed_out) == 1);
  CHECK(met.end.count(EventType::disconnected) == 0);
  CHECK_FALSE(met.a.gone);
}

TEST_CASE("routed_end__requests_beyond_the_bound__each_has_its_turn_in_order") {
  RoutedOptions options = with_routers({});
  options.pending_requests_max = 1;
  Met met(options);
  RawPeer next(met.world, met.fabric, "lan", "10.0.0.68");
  const auto decided = [&](bool accept) {
    REQUIRE(met.came(EventType::connect_request));
    auto request = met.end.take(EventType::connect_request);
    CHECK((accept ? met.end.endpoint->accept(*request, 1) : met.end.endpoint->reject(*request, "no")) == Status::success);
    request.reset();
    met.end.wake();
    met.rest();
  };
  enum class Ends { accepted, rejected, let_go, leaves_before, leaves_after, lies, silent, lies_after };
  for (const Ends ends : {Ends::accepted, Ends::rejected, Ends::let_go, Ends::leaves_before, Ends::leaves_after, Ends::lies,
                          Ends::silent, Ends::lies_after}) {
    CAPTURE(static_cast<int>(ends));
    met.hop();
    // The second one dials, and is not let in before the first is decided.
    cci::ConnectOptions how;
    how.role = ports::Role::hop;
    next.answered = false;
    REQUIRE(next.endpoint->connect("sim://10.0.0.2:7000", how));
    next.wake();
    met.world.run_for(seconds(1));
    CHECK_FALSE(next.answered);
    switch (ends) {
      case Ends::accepted:
      case Ends::rejected:
        met.say_request(met.a);
        decided(ends == Ends::accepted);
        break;
      case Ends::let_go:
        met.say_request(met.a);
        REQUIRE(met.came(EventType::connect_request));
        met.end.events.clear();
        met.end.wake();
        break;
      case Ends::leaves_after:
      case Ends::lies_after:
        met.say_request(met.a);
        REQUIRE(met.came(EventType::connect_request));
        if (ends == Ends::lies_after) {
          met.a.say_plain(MessageKind::keepalive);
          break;
        }
        [[fallthrough]];
      case Ends::leaves_before:
        met.a.endpoint->disconnect(met.a.connection);
        met.a.wake();
        break;
      case Ends::lies:
        met.a.say_plain(MessageKind::keepalive);
        break;
      case Ends::silent:
        break;
    }
    REQUIRE(met.run([&] { return next.answered; }, request_timeout));
    met.end.events.clear();
    met.say_request(next);
    decided(false);
    CHECK(decode_connect_reply(*next.last(MessageKind::connect_reply))->status == Status::refused);
    if (!met.a.gone) met.a.endpoint->disconnect(met.a.connection);
    met.a.wake();
    met.rest();
    met.end.events.clear();
  }
}

TEST_CASE("routed_end__a_request_that_is_not_for_it__counted_and_closed") {
  Met met;
  met.hop();
  ConnectRequest request = RawPeer::usual_request(met.end.endpoint->uri());
  SECTION("another subnet") { request.destination = "cci://1:2:10.0.0.2:7000"; }
  SECTION("no address") { request.destination = "somewhere"; }
  SECTION("over more routers than there may be") { request.crossed = hops_max + 1; }
  SECTION("to a group") { request.attribute = cci::Attribute::multicast_send; }
  SECTION("of a group") { request.attribute = cci::Attribute::multicast_receive; }
  met.a.say(request);
  REQUIRE(met.run([&] { return met.a.gone; }));
  CHECK(met.rejected() == 1);
  CHECK(met.end.events.empty());
}

TEST_CASE("routed_end__a_request_over_as_many_routers_as_may_be__answered_with_the_least") {
  Met met;
  met.hop();
  ConnectRequest request = RawPeer::usual_request(met.end.endpoint->uri());
  request.crossed = hops_max;
  request.attribute = cci::Attribute::reliable_unordered;
  request.data = {std::byte{7}};
  const bool little = GENERATE(true, false);
  request.max_send_bytes = little ? 1000 : 1u << 20;
  request.fragment_bytes = little ? 8192 : 1u << 30;
  met.a.say(request);
  REQUIRE(met.came(EventType::connect_request));
  auto event = met.end.take(EventType::connect_request);
  CHECK(event->attribute == cci::Attribute::reliable_unordered);
  CHECK(event->data().size() == 1);
  REQUIRE(met.end.endpoint->accept(*event, 1) == Status::success);
  CHECK(met.end.endpoint->accept(*event, 1) != Status::success);
  met.end.wake();
  REQUIRE(met.run([&] { return met.a.last(MessageKind::connect_reply).has_value(); }));
  const auto reply = decode_connect_reply(*met.a.last(MessageKind::connect_reply));
  CHECK(reply->max_send_bytes == std::min(request.max_send_bytes, met.a.hop_payload_bytes()));
  CHECK(reply->fragment_bytes == std::min(request.fragment_bytes, 64u << 10));
  met.a.say_plain(MessageKind::connect_ack);
  REQUIRE(met.came(EventType::accept));
  CHECK(met.end.take(EventType::accept)->status == Status::success);
}
