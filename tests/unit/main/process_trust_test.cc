// What the tables of the configuration grant: by key, whatever names certificates share.
#include "app/main/process_trust.h"

#include <catch2/catch.hpp>

#include "tests/unit/main/running.h"
#include "tests/unit/trust/facility.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

trust::ProvedPeer certified(const std::string& own_name) {
  return {trust::Identity::generate().value().id(), true, {"service.example", own_name}};
}

ports::PeerIdentity identity_of(const trust::ProvedPeer& peer) {
  return {connection::proved_name(peer), "192.0.2.1", trust::to_string(peer.id)};
}

struct Rig {
  Rig() {
    for (const auto& [name, certified_name] : {std::pair("first", "first.example"), std::pair("second", "second.example")}) {
      PeerConfig& peer = config.peers.emplace_back();
      peer.name = name;
      peer.certified_name = certified_name;
    }
    config.peers[0].route = true;
    config.peers[1].router = config.peers[1].admin = true;
    policy::Places places;
    places.configuration = home.path("config");
    places.state = home.path("state");
    security = make_security(config, places, policy::WithoutIdentity::make_for_this_process).value();
  }
  TemporaryDirectory home;
  Config config;
  std::optional<Security> security;
};

}  // namespace

TEST_CASE("process_trust__peers_whose_certificates_share_a_name__have_each_its_own_grants") {
  Rig rig;
  ProcessTrust trust(*rig.security, ListenerKind::router);
  const trust::ProvedPeer first = certified("first.example"), second = certified("second.example"),
                          third = certified("third.example");
  for (const trust::ProvedPeer& peer : {first, second, third}) REQUIRE(trust.admit_dialler(peer, ports::Role::hop));
  CHECK(trust.grant_of(identity_of(first)).route);
  CHECK_FALSE(trust.grant_of(identity_of(first)).router);
  CHECK_FALSE(trust.grant_of(identity_of(first)).admin);
  CHECK_FALSE(trust.grant_of(identity_of(second)).route);
  CHECK(trust.grant_of(identity_of(second)).router);
  CHECK(trust.grant_of(identity_of(second)).admin);
  const routing::PeerGrant none = trust.grant_of(identity_of(third));
  CHECK_FALSE((none.route || none.router || none.admin));
  CHECK(trust.named(identity_of(first)).name == "first");
  CHECK(trust.named(identity_of(second)).id == trust::to_string(second.id));
  CHECK(trust.named(identity_of(third)).name == "service.example");
}

TEST_CASE("process_trust__somebody_who_proved_no_key__is_granted_nothing") {
  Rig rig;
  ProcessTrust trust(*rig.security, ListenerKind::router);
  REQUIRE(trust.admit_dialler(certified("second.example"), ports::Role::hop));
  const routing::PeerGrant none = trust.grant_of({"service.example", "192.0.2.1"});
  CHECK_FALSE((none.route || none.router || none.admin));
  CHECK(trust.named(ports::PeerIdentity{"service.example", "192.0.2.1"}).name == "service.example");
  CHECK(trust.named(ports::PeerIdentity{"service.example", "192.0.2.1"}).id.empty());
}

// Who has the key can always make a certificate for it that nobody signed.
TEST_CASE("process_trust__the_same_key_without_its_certificate__has_no_grants_of_the_certificate") {
  Rig rig;
  ProcessTrust trust(*rig.security, ListenerKind::router);
  const trust::ProvedPeer peer = certified("second.example");
  REQUIRE(trust.admit_dialler(peer, ports::Role::hop));
  CHECK(trust.grant_of(identity_of(peer)).router);
  const trust::ProvedPeer by_key{peer.id, false, {}};
  REQUIRE(trust.admit_dialler(by_key, ports::Role::hop));
  const routing::PeerGrant none = trust.grant_of(identity_of(by_key));
  CHECK_FALSE((none.route || none.router || none.admin));
}

// Its connections stand for weeks.
TEST_CASE("process_trust__a_certificate_that_lapses__takes_its_grants_along") {
  const bool by_list = GENERATE(true, false);
  Rig rig;
  const trust::Facility facility("lab");
  const trust::Issued host = facility.issue({.alt_names = "DNS:second.example"});
  const auto authority = [&](const std::string& list) {
    return trust::Authority::from_pem(facility.pem(), "ca.pem", list, list.empty() ? "" : "crl.pem").value();
  };
  rig.security->identity.authority = authority("");
  trust::Handshake here({.side = trust::HandshakeSide::acceptor,
                         .identity = rig.security->identity.identity,
                         .authority = rig.security->identity.authority,
                         .wall_time_s = trust::test_now_s,
                         .prefers = {}}),
      there({.side = trust::HandshakeSide::dialler,
             .identity = trust::Identity::from_certificate(host.certificate_pem(), "host.pem", host.key_pem(), "host.key").value(),
             .authority = {},
             .wall_time_s = trust::test_now_s,
             .prefers = {}});
  REQUIRE(there.step({}));
  for (int flight = 0; flight < 3 && !(here.done() && there.done()); ++flight) {
    const auto out = (flight % 2 == 0 ? there : here).take_output();
    REQUIRE((flight % 2 == 0 ? here : there).step(out));
  }
  REQUIRE(here.done());
  const trust::ProvedPeer peer = here.peer();
  int64_t now_s = trust::test_now_s;
  ProcessTrust trust(*rig.security, ListenerKind::router, [&] { return now_s; });
  REQUIRE(trust.admit_dialler(peer, ports::Role::hop));
  CHECK(trust.grant_of(identity_of(peer)).router);
  CHECK_FALSE(trust.look_for_lapsed());
  if (by_list) {
    rig.security->identity.authority = authority(facility.revocation_list({&host}));
  } else {
    now_s += 366 * trust::day_s;
  }
  if (GENERATE(true, false)) CHECK_FALSE(trust.grant_of(identity_of(peer)).router);
  CHECK(trust.look_for_lapsed());  // whoever has a link with it is told, also when somebody else asked first
  CHECK_FALSE(trust.look_for_lapsed());
  CHECK_FALSE(trust.grant_of(identity_of(peer)).router);
}
