// What a router lets its peers do, by who they are. Identities are the simulated network's here; that they are proved is
// tests/unit/stream's to show.
#include <map>

#include "core/base/log.h"
#include "routing/router/peer_rights.h"
#include "tests/unit/routing/three_as.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

class Grants final : public PeerGrants {
 public:
  [[nodiscard]] PeerGrant grant_of(const ports::PeerIdentity& peer) const override {
    const auto found = of.find(peer.proved);
    return found == of.end() ? PeerGrant{} : found->second;
  }
  std::map<std::string, PeerGrant> of;
};

ports::PeerIdentity proved(const std::string& name) { return {name, "10.0.0.9"}; }

// One router, whose grants are the test's, between lan (3:1) and a WAN of AS 3, 4 and 9.
struct Gate {
  Gate() {
    grants->of["cx1user"] = {.route = true, .router = false, .as = {}, .admin = false};
    grants->of["cx1four"] = {.route = false, .router = true, .as = 4, .admin = false};
    grants->of["cx1any"] = {.route = false, .router = true, .as = {}, .admin = false};
    grants->of["cx1admin"] = {.route = false, .router = false, .as = {}, .admin = true};
    site.options.peer_grants = grants;
    site.options.observer = [this](const Admission& admission) { seen.push_back(admission); };
    site.add_router("r1", {{"lan", "10.1.0.1", {3, 1}, {}}, {"wan", "192.0.2.3", {3, wan}, {}, true}});
    site.settle();
  }
  RawPeer& peer(const std::string& identity, bool on_wan = false) {
    const std::string address = (on_wan ? "192.0.2." : "10.1.0.") + std::to_string(20 + peers.size());
    peers.push_back(std::make_unique<RawPeer>(site.world, site.fabric, on_wan ? "wan" : "lan", address, ports::TransportOptions{},
                                              Process{.identity = identity}));
    return *peers.back();
  }
  [[nodiscard]] Counters& counters() const { return site.routers[0]->counters; }
  // A router of that AS on the WAN, greeted. false: it is not let in.
  bool greet(RawPeer& router, uint32_t as, uint64_t id) {
    if (!router.connect(wan_uri, ports::Role::router)) return false;
    router.say(RouterHello{id, {as, wan}, "sim://192.0.2." + std::to_string(id) + ":7000"});
    site.world.run_for(milliseconds(50));
    return !router.gone;
  }

  const std::string lan_uri = "sim://10.1.0.1:7000";
  const std::string wan_uri = "sim://192.0.2.3:7000";
  std::shared_ptr<Grants> grants = std::make_shared<Grants>();
  std::vector<Admission> seen;  // a router that ends has something to say of what was open
  Site site;
  std::vector<std::unique_ptr<RawPeer>> peers;
};

}  // namespace

TEST_CASE("peer_rights__without_grants__everybody_may_everything") {
  const PeerRights none(nullptr);
  for (const ports::Role role : {ports::Role::hop, ports::Role::router, ports::Role::admin}) {
    CHECK(none.why_not(ports::PeerIdentity{}, role).empty());
  }
  CHECK(none.why_no_link(ports::PeerIdentity{}, 7).empty());
}

TEST_CASE("peer_rights__each_role__needs_its_grant_and_the_words_name_the_peer_and_the_line") {
  const auto grants = std::make_shared<Grants>();
  const PeerRights rights(grants);
  const auto why = [&](ports::Role role) { return rights.why_not(proved("cx1one"), role); };
  CHECK(why(ports::Role::hop).find("not authorised: cx1one (proved) may not route here: give its [peer.NAME] route = true") == 0);
  CHECK(why(ports::Role::router).find("router = true") != std::string::npos);
  CHECK(why(ports::Role::admin).find("admin = true") != std::string::npos);
  grants->of["cx1one"].route = true;
  CHECK(why(ports::Role::hop).empty());
  CHECK_FALSE(why(ports::Role::router).empty());
  CHECK_FALSE(why(ports::Role::admin).empty());
  grants->of["cx1one"] = {.route = false, .router = true, .as = 4, .admin = false};
  CHECK(why(ports::Role::hop).empty());  // it passes on what others began
  CHECK(why(ports::Role::router).empty());
  CHECK_FALSE(why(ports::Role::admin).empty());
  CHECK(rights.why_no_link(proved("cx1one"), 4).empty());
  CHECK(rights.why_no_link(proved("cx1one"), 5).find("may bring AS 4 only, and this is of AS 5") != std::string::npos);
  CHECK_FALSE(rights.why_no_link(proved("cx1two"), 4).empty());
  grants->of["cx1one"] = {.route = false, .router = false, .as = {}, .admin = true};
  CHECK(why(ports::Role::admin).empty());
  CHECK_FALSE(why(ports::Role::hop).empty());
}

TEST_CASE("router_grants__a_peer_without_the_grant__is_refused_counted_and_logged_once") {
  Gate gate;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  const ports::Role role = GENERATE(ports::Role::hop, ports::Role::router, ports::Role::admin);
  const uint64_t before = gate.counters().get(Counter::connections_refused);
  RawPeer& stranger = gate.peer("cx1stranger");
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(stranger.connect(gate.lan_uri, role));
    CHECK(stranger.words.find("not authorised: cx1stranger (proved) may not") == 0);
  }
  CHECK(gate.counters().get(Counter::connections_refused) == before + 3);
  CHECK(lines.size() == 1);
  CHECK_FALSE(gate.peer("").connect(gate.lan_uri, role));  // and nobody who proves nothing
}

TEST_CASE("router_grants__each_with_its_own__is_let_in_and_for_nothing_else") {
  Gate gate;
  CHECK(gate.peer("cx1user").connect(gate.lan_uri, ports::Role::hop));
  CHECK_FALSE(gate.peer("cx1user").connect(gate.lan_uri, ports::Role::admin));
  CHECK_FALSE(gate.peer("cx1user").connect(gate.lan_uri, ports::Role::router));
  CHECK(gate.peer("cx1admin").ask(gate.lan_uri));
  CHECK_FALSE(gate.peer("cx1admin").connect(gate.lan_uri, ports::Role::hop));
}

TEST_CASE("router_grants__a_router_of_another_as_than_granted__brings_no_record") {
  Gate gate;
  RawPeer& four = gate.peer("cx1four", true);
  CHECK_FALSE(gate.greet(four, 9, 91));
  CHECK(gate.greet(four, 4, 92));
  CHECK(gate.greet(gate.peer("cx1any", true), 9, 93));
  CHECK_FALSE(gate.greet(gate.peer("cx1user", true), 4, 94));
  // On its link it may tell of no AS but its own.
  const uint64_t before = gate.counters().get(Counter::records_rejected);
  four.tell(border(95, 1, 9));
  gate.site.world.run_for(milliseconds(50));
  CHECK(gate.counters().get(Counter::records_rejected) == before + 1);
}

TEST_CASE("router_grants__a_router_of_another_as_again_and_again__refused_each_time_logged_once") {
  Gate gate;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  const uint64_t before = gate.counters().get(Counter::records_rejected);
  RawPeer& four = gate.peer("cx1four", true);
  for (uint64_t i = 0; i < 5; ++i) CHECK_FALSE(gate.greet(four, 9, 91));
  CHECK(gate.counters().get(Counter::records_rejected) == before + 5);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("may bring AS 4 only, and this is of AS 9") != std::string::npos);
  CHECK_FALSE(gate.greet(gate.peer("cx1user", true), 4, 94));  // is another one, who has no grant at all
}

TEST_CASE("router_grants__a_request_that_the_peer_cannot_bring__is_refused") {
  Gate gate;
  const auto answer_to = [&](RawPeer& peer, const std::string& uri, SubnetId source, uint8_t crossed) {
    REQUIRE(peer.connect(uri, ports::Role::hop));
    ConnectRequest request = RawPeer::usual_request("cci://3:1:10.1.0.77:7000");
    request.source = source;
    request.crossed = crossed;
    peer.say(request);
    REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_reply).has_value() || peer.gone; }, seconds(20)));
    const auto reply = peer.last(MessageKind::connect_reply);
    REQUIRE(reply);
    return *decode_connect_reply(*reply);
  };
  SECTION("a client that says it crossed routers") {
    const ConnectReply reply = answer_to(gate.peer("cx1user"), gate.lan_uri, {3, 1}, 1);
    CHECK(reply.status == Status::refused);
    CHECK(reply.reason.find("may not be one") != std::string::npos);
  }
  SECTION("a router that begins one itself without route") {
    const ConnectReply reply = answer_to(gate.peer("cx1any"), gate.lan_uri, {3, 1}, 0);
    CHECK(reply.status == Status::refused);
    CHECK(reply.reason.find("route = true") != std::string::npos);
  }
  SECTION("a router of AS 4 that brings AS 9") {
    const ConnectReply reply = answer_to(gate.peer("cx1four", true), gate.wan_uri, {9, 1}, 1);
    CHECK(reply.status == Status::refused);
    CHECK(reply.reason.find("may bring AS 4 only") != std::string::npos);
  }
  SECTION("a router of AS 4 on a device inside AS 3, where it may not pose as one of AS 3") {
    gate.grants->of[""] = {.route = false, .router = true, .as = 3, .admin = false};
    gate.site.add_router("r2", {{"lan", "10.1.0.2", {3, 1}, {"sim://10.1.0.1:7000"}}, {"hpc", "10.3.0.1", {3, 3}, {}}});
    gate.site.world.run_for(seconds(3));  // now r1 knows a router there that could have passed it on
    const SubnetId source{GENERATE(3u, 4u), 1};
    const ConnectReply reply = answer_to(gate.peer("cx1four"), gate.lan_uri, source, 1);
    CHECK(reply.status == Status::refused);
    CHECK(reply.reason.find("may bring AS 4 only, and this is of AS 3") != std::string::npos);
  }
  SECTION("a router of AS 3 there, where no other one is known") {
    gate.grants->of["cx1four"].as = 3;
    const ConnectReply reply = answer_to(gate.peer("cx1four"), gate.lan_uri, {3, 1}, 1);
    CHECK(reply.status == Status::no_route);  // it was granted: the map decides
  }
  SECTION("and its own") {
    const ConnectReply reply = answer_to(gate.peer("cx1four", true), gate.wan_uri, {4, 1}, 1);
    CHECK(reply.status == Status::unreachable);  // nobody is at that address
  }
}

TEST_CASE("router_grants__an_observer__hears_whom_the_router_admits_and_refuses_and_why") {
  Gate gate;
  const auto heard = [&](Admission::Step step, Admission::As as, const std::string& proved) {
    return static_cast<size_t>(std::count_if(gate.seen.begin(), gate.seen.end(), [&](const Admission& one) {
      return one.step == step && one.as == as && one.peer.proved == proved && !one.peer.address.empty();
    }));
  };
  using Step = Admission::Step;
  using As = Admission::As;
  REQUIRE_FALSE(gate.peer("cx1stranger").connect(gate.lan_uri, ports::Role::hop));
  CHECK(heard(Step::refused, As::connection, "cx1stranger") == 1);
  CHECK(gate.seen.back().reason.find("route = true") != std::string::npos);
  REQUIRE(gate.greet(gate.peer("cx1four", true), 4, 92));
  CHECK(heard(Step::admitted, As::router, "cx1four") == 1);
  CHECK(gate.seen.back().to == "sim://192.0.2.92:7000");
  REQUIRE_FALSE(gate.greet(gate.peer("cx1four", true), 9, 93));
  CHECK(heard(Step::refused, As::router, "cx1four") == 1);
  REQUIRE(gate.peer("cx1admin").ask(gate.lan_uri));
  CHECK(heard(Step::admitted, As::administrator, "cx1admin") == 1);
  // One that leads nowhere is refused once, with what was asked for.
  RawPeer& user = gate.peer("cx1user");
  REQUIRE(user.connect(gate.lan_uri, ports::Role::hop));
  ConnectRequest request = RawPeer::usual_request("cci://3:1:10.1.0.77:7000");
  request.source = {3, 1};
  user.say(request);
  REQUIRE(user.run([&] { return user.last(MessageKind::connect_reply).has_value(); }, seconds(20)));
  CHECK(heard(Step::refused, As::connection, "cx1user") == 1);
  CHECK(gate.seen.back().to == "cci://3:1:10.1.0.77:7000");
  CHECK(gate.seen.back().status == Status::unreachable);
  CHECK(gate.seen.size() == 5);
}

TEST_CASE("router_grants__a_connection_that_its_end_leaves_before_an_answer__is_no_refusal") {
  Gate gate;
  const bool has_asked = GENERATE(false, true);
  gate.peer("").freeze(true);  // at 10.1.0.20, and answers nobody
  RawPeer& ahead = gate.peer("cx1user");
  REQUIRE(ahead.connect(gate.lan_uri, ports::Role::hop));
  ConnectRequest request = RawPeer::usual_request("cci://3:1:10.1.0.20:7000");
  request.source = {3, 1};
  if (has_asked) ahead.say(request);
  gate.site.world.run_for(milliseconds(50));
  ahead.freeze(true);
  ahead.endpoint.reset();  // it says that it leaves
  gate.site.world.run_for(milliseconds(50));
  for (const Admission& one : gate.seen) UNSCOPED_INFO(one.reason);
  CHECK(gate.seen.empty());
  // One that gives up while it waits for us is told as before.
  RawPeer& user = gate.peer("cx1user");
  REQUIRE(user.connect(gate.lan_uri, ports::Role::hop));
  user.say(Bye{Status::success, ""});
  gate.site.world.run_for(milliseconds(50));
  REQUIRE(gate.seen.size() == 1);
  CHECK(gate.seen[0].step == Admission::Step::refused);
  CHECK(gate.seen[0].status != Status::success);
}

TEST_CASE("router_grants__withdrawn_while_linked__the_link_ends_with_the_next_configuration") {
  Gate gate;
  RawPeer& four = gate.peer("cx1four", true);
  RawPeer& any = gate.peer("cx1any", true);
  REQUIRE(gate.greet(four, 4, 92));
  REQUIRE(gate.greet(any, 9, 93));
  const auto fewer = std::make_shared<Grants>(*gate.grants);
  fewer->of.erase("cx1any");
  RouterOptions options = gate.site.options;
  options.peer_grants = fewer;
  std::vector<RouterDevice> same(2);
  same[0].name = "lan";
  same[0].subnet = {3, 1};
  same[0].scheme = "sim";
  same[1].name = "wan";
  same[1].subnet = {3, wan};
  same[1].scheme = "sim";
  same[1].wan = true;
  REQUIRE(gate.site.routers[0]->router->reconfigure(options, std::move(same)));
  gate.site.world.wake(gate.site.routers[0]->node);
  gate.site.world.run_for(milliseconds(50));
  CHECK(any.gone);
  CHECK_FALSE(four.gone);
}

// Grants may go by themselves, as that of a certificate does when it expires.
TEST_CASE("router_grants__gone_while_linked__the_link_ends_when_links_are_reviewed") {
  Gate gate;
  RawPeer& four = gate.peer("cx1four", true);
  RawPeer& any = gate.peer("cx1any", true);
  REQUIRE(gate.greet(four, 4, 92));
  REQUIRE(gate.greet(any, 9, 93));
  gate.grants->of.erase("cx1any");
  Router& router = *gate.site.routers[0]->router;
  router.review_links(gate.site.world.now());
  gate.site.world.wake(gate.site.routers[0]->node);
  gate.site.world.run_for(milliseconds(50));
  CHECK(any.gone);
  CHECK_FALSE(four.gone);
}
