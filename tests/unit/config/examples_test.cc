// The examples in conf/: each is read without an error and without a warning. Run at the top of the checkout.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "app/config/config.h"

namespace ccixfer::program {
namespace {

std::map<std::string, Config> examples(const std::string& below) {
  std::map<std::string, Config> all;
  for (const auto& place : std::filesystem::recursive_directory_iterator(below)) {
    const std::string name = place.path().string();
    // Worlds of the simulator and jobs are files of another kind: tests/e2e/test_sim, test_readme.
    if (place.path().extension() != ".toml" || name.starts_with("conf/sim/") || name.starts_with("conf/jobs/")) continue;
    const auto config = load_config(name);
    INFO(name);
    INFO((config ? "" : config.error().message));
    REQUIRE(config);
    CHECK(config->warnings.empty());
    all.emplace(name, *config);
  }
  return all;
}

}  // namespace

TEST_CASE("examples__each_of_them__is_a_configuration_without_a_warning") { CHECK(examples("conf").size() >= 18); }

// What belongs together names the same peers, and each border host knows whoever it must carry.
TEST_CASE("examples__of_two_organisations__agree_on_who_is_who") {
  const std::string directory = "conf/security/two-organisations/";
  const auto all = examples(directory);
  REQUIRE(all.size() == 4);
  std::map<std::string, trust::PeerId> ids;
  for (const auto& [file, config] : all) {
    for (const PeerConfig& peer : config.peers) {
      INFO(file << " " << peer.name);
      REQUIRE(peer.id);
      CHECK(ids.emplace(peer.name, *peer.id).first->second == *peer.id);
    }
  }
  CHECK(ids.size() == 5);
  const auto peer = [&](const std::string& file, const std::string& name) {
    for (const PeerConfig& one : all.at(directory + file).peers) {
      if (one.name == name) return one;
    }
    FAIL(file << " has no peer " << name);
    return PeerConfig();
  };
  CHECK(peer("border-west.toml", "sender-west").route);
  CHECK(peer("border-east.toml", "receiver-east").route);
  CHECK(peer("receiver-east.toml", "border-east").router);
  CHECK(peer("border-west.toml", "border-east").as == all.at(directory + "border-east.toml").devices.at(0).subnet->as);
  CHECK(peer("border-east.toml", "border-west").as == all.at(directory + "border-west.toml").devices.at(0).subnet->as);
  CHECK(peer("receiver-east.toml", "sender-west").write == std::vector<std::string>{"incoming/west"});
}

}  // namespace ccixfer::program
