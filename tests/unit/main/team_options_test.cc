// What the processes of a team have in common, and what must agree.
#include "app/main/team_options.h"

#include <catch2/catch.hpp>

#include "app/session/messages.h"
#include "core/host/entropy.h"

namespace {
using namespace ccixfer;
using namespace ccixfer::program;

session::TeamWish wish_of(const std::string& destination, const std::string& path) {
  host::SystemEntropy entropy;
  const session::Open open{session::option_recursive, path};
  TeamWork work;
  work.sources = "/data/run42";
  work.destination = destination;
  work.open = &open;
  const auto nothing_set = [](const char*) { return std::string(); };
  return **team_of({.stripe = false, .part = "1/2"}, nothing_set, work, "1.0", entropy);
}

// Else they would be two teams, and each would find its files in the hands of the other one.
TEST_CASE("team_of__two_names_of_one_receiver__are_one_team_that_does_not_agree") {
  const session::TeamWish one = wish_of("tcp://node1:7100/in/", "in/");
  const session::TeamWish other = wish_of("tcp://192.0.2.1:7100/in/", "in/");
  CHECK((one.name == other.name));
  CHECK_FALSE(session::asks_for_the_same(one.agreement, other.agreement));
  CHECK((one.name != wish_of("tcp://node1:7100/in2/", "in2/").name));
  CHECK(session::asks_for_the_same(one.agreement, wish_of("tcp://node1:7100/in/", "in/").agreement));
}

}  // namespace
