// What the tables of the configuration grant: by key, whatever names certificates share.
#include "app/main/process_trust.h"

#include <catch2/catch.hpp>

#include "tests/unit/main/running.h"

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
