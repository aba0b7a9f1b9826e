// What a place of the command line stands for.
#include "app/main/session_trust.h"

#include <catch2/catch.hpp>

#include "transports/verbs/verbs.h"

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

std::string ticket_of(const std::vector<std::string>& addresses) {
  trust::Ticket ticket;
  ticket.listener = trust::Identity::generate().id();
  ticket.expires_s = wall_time_s() + 3600;
  ticket.addresses = addresses;
  return trust::to_text(ticket);
}

}  // namespace

TEST_CASE("find_place__a_ticket__the_addresses_of_the_transports_that_this_program_has") {
  const auto place = find_place(ticket_of({"verbs://h:1", "tcp://h:2", "gm://h:3", "eth://02:00:00:00:00:01:7"}) + "/a/b", {});
  REQUIRE(place);
  std::vector<std::string> expected = {"tcp://h:2", "eth://02:00:00:00:00:01:7"};
  if (verbs::is_built_in()) expected.insert(expected.begin(), "verbs://h:1");
  std::vector<std::string> found;
  for (const Target& target : place->targets) {
    found.push_back(target.address);
    CHECK(target.path == "a/b");
  }
  CHECK(found == expected);
  const auto none = find_place(ticket_of({"gm://h:1"}), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::usage);
  CHECK(none.error().message == "the ticket has no address that this version can dial: ask for another one");
}
