// The dialling side over several sessions: who answers in a later one, and whether that is still who is meant.
#include <catch2/catch.hpp>

#include "tests/unit/main/dialled_rig.h"
#include "tests/unit/trust/facility.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

struct Judge {
  std::vector<trust::PeerId> asked;
  std::optional<Error> says;  // of the second one
};

// A peer of a facility, whose sessions are lost as the test likes.
struct Host {
  explicit Host(const std::string& names) : names_(names) {}

  [[nodiscard]] session::SealSetup seal_of(const std::string& names) const {
    trust::IssueOptions how;
    how.alt_names = names;
    const trust::Issued issued = facility_.issue(how);
    auto identity = trust::Identity::from_certificate(issued.certificate_pem(), "host.pem", issued.key_pem(), "host.key");
    auto authority = trust::Authority::from_pem(facility_.pem(), "ca.pem", "", "");
    REQUIRE((identity && authority));
    return {*identity, *authority, [] { return trust::test_now_s; }};
  }
  // Runs a session, and then another one with whoever has these names and a key of its own.
  void run(const std::string& names_of_second) {
    rig.opens = false;
    rig.acceptor->seal = seal_of(names_);
    begin_session();
    if (rig.transfer->ended()) return;
    rig.acceptor->user.others.clear();
    rig.acceptor->seal = seal_of(names_of_second);
    rig.acceptor->link->fail({ErrorKind::network, "it was started again"});
    rig.script.error = Error{ErrorKind::network, "the session is lost"};
    rig.script.finished = true;
    REQUIRE(rig.run([&] { return !rig.transfer->moving(); }));
    rig.script.error.reset();
    rig.script.finished = false;
    begin_session();
  }
  void begin_session() {
    REQUIRE(rig.run([&] { return rig.transfer->ended() || rig.peer_asked(); }));
    if (rig.transfer->ended()) return;
    rig.open();
    REQUIRE(rig.run_until_moving());
  }

 private:
  const std::string names_;
  const trust::Facility facility_{"lab"};

 public:
  Judge judge;
  DialledRig rig{[this](DialPlan& plan) {
    plan.hello.sealed = true;
    plan.seal = seal_of("DNS:sender.lab.example");
    plan.judge_peer = [this](const trust::ProvedPeer& peer, const std::string&) -> Result<void> {
      judge.asked.push_back(peer.id);
      if (judge.asked.size() == 2 && judge.says) return tl::unexpected(*judge.says);
      return {};
    };
  }};
};

}  // namespace

TEST_CASE("dialled_identity__a_host_with_a_new_key_and_its_certified_name__is_judged_again_and_the_transfer_goes_on") {
  Host host("DNS:dtn1.lab.example,IP:192.0.2.7");
  host.run("DNS:other.lab.example,DNS:dtn1.lab.example");
  REQUIRE(host.rig.transfer->moving());
  REQUIRE(host.judge.asked.size() == 2);
  CHECK(host.judge.asked[0] != host.judge.asked[1]);
  CHECK(host.rig.transfer->identity() == trust::to_string(host.judge.asked[1]));
  CHECK(host.rig.acceptor->sessions == DialledRig::session + 1);
}

TEST_CASE("dialled_identity__a_new_key_that_is_not_accepted__ends_the_transfer") {
  Host host("DNS:dtn1.lab.example");
  host.judge.says = Error{ErrorKind::authentication, "its certificate is revoked"};
  host.run("DNS:dtn1.lab.example");
  REQUIRE(host.rig.transfer->ended());
  CHECK(host.rig.transfer->result().kind == ErrorKind::authentication);
  CHECK(host.rig.transfer->result().message.find("its certificate is revoked: ") == 0);
}

TEST_CASE("dialled_identity__a_host_of_another_name__is_another_peer_whoever_would_be_accepted") {
  Host host("DNS:dtn1.lab.example");
  host.run("DNS:dtn2.lab.example");
  REQUIRE(host.rig.transfer->ended());
  CHECK(host.rig.transfer->result().kind == ErrorKind::authentication);
  CHECK(host.rig.transfer->result().message.find("another peer answers now: fake://far") == 0);
  CHECK(host.judge.asked.size() == 1);
}
