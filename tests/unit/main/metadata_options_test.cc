// What --chown takes for owners.
#include "app/main/metadata_options.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

Result<session::TweaksRef> chown(const std::string& owners, bool here = false) {
  MetadataOptions metadata;
  metadata.chown = owners;
  return tweaks_of(metadata, here);
}

std::vector<std::string> unknown(const std::string& owners) {
  MetadataOptions metadata;
  metadata.chown = owners;
  return unknown_owners(metadata);
}

}  // namespace

TEST_CASE("chown__numbers_and_names__either_may_be_left_out") {
  const auto both = chown("4294967294:root");
  REQUIRE(both);
  CHECK((*both)->user.id == 4'294'967'294);
  CHECK((*both)->group.id == 0);
  CHECK((*both)->group.name == "root");
  const auto user = chown("7"), group = chown(":8");
  REQUIRE(user);
  REQUIRE(group);
  CHECK(((*user)->user.is_set && !(*user)->group.is_set));
  CHECK((!(*group)->user.is_set && (*group)->group.is_set));
}

TEST_CASE("chown__what_is_neither_a_number_nor_a_name__is_refused") {
  const bool here = GENERATE(false, true);
  for (const char* owners : {"-1", "+1", "4294967295", "4294967296", "99999999999999999999", "0x10", "1.5", "root:root:root",
                             "0:0:0", "root:-1", ":4294967295"}) {
    CAPTURE(owners);
    const auto tweaks = chown(owners, here);
    REQUIRE_FALSE(tweaks);
    CHECK(tweaks.error().kind == ErrorKind::usage);
    CHECK(tweaks.error().message.starts_with("bad value: --chown: "));
  }
}

TEST_CASE("chown__a_name_that_this_host_does_not_know__may_be_the_peers_and_is_told") {
  const auto peers = chown("no-such-user:root");
  REQUIRE(peers);
  CHECK((*peers)->user.name == "no-such-user");
  CHECK_FALSE(chown("no-such-user", true));
  CHECK(unknown("no-such-user:no-such-group") == std::vector<std::string>{"user no-such-user", "group no-such-group"});
  CHECK(unknown("root:0").empty());
  CHECK(unknown("").empty());
}
