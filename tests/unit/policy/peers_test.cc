// Which table of the configuration a peer belongs to.
#include "app/trust/peers.h"

#include "tests/unit/policy/rig.h"

namespace ccixfer::policy {
using namespace test;

TEST_CASE("peers__an_id__is_found_by_the_key_alone") {
  const Peers peers({table("a", 1), table("b", 2)});
  REQUIRE(peers.find(by_key(2)) != nullptr);
  CHECK(peers.find(by_key(2))->name == "b");
  CHECK(peers.find(by_certificate(1, {"x"}))->name == "a");
  CHECK(peers.find(by_key(3)) == nullptr);
}

TEST_CASE("peers__a_name__counts_in_a_certificate_of_our_authority_only") {
  const Peers peers({named("lab", "dtn.lab")});
  CHECK(peers.find(by_certificate(7, {"other", "dtn.lab"})) != nullptr);
  CHECK(peers.find(trust::ProvedPeer{id_of(7), false, {"dtn.lab"}}) == nullptr);
  CHECK(peers.find(by_certificate(7, {"x.dtn.lab", "dtn.lab.x", "*.lab", "dtn"})) == nullptr);
  CHECK(peers.find(by_certificate(7, {})) == nullptr);
}

TEST_CASE("peers__a_table_with_the_id_and_one_with_the_name__the_id_counts") {
  const Peers peers({named("by_name", "h"), table("by_id", 1)});
  CHECK(peers.find(by_certificate(1, {"h"}))->name == "by_id");
  CHECK(peers.find(by_certificate(2, {"h"}))->name == "by_name");
}

TEST_CASE("peers__an_address__is_found_as_it_stands") {
  const Peers peers({table("a", 1, {"tcp://h:1", "tcp://h:2"}), table("b", 2)});
  REQUIRE(peers.at("tcp://h:2") != nullptr);
  CHECK(peers.at("tcp://h:2")->name == "a");
  CHECK(peers.at("tcp://h:22") == nullptr);
  CHECK(peers.at("") == nullptr);
}

}  // namespace ccixfer::policy
