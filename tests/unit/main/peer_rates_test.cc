// The caps of peers: one for all sessions of a peer, of the rate that its grant has now.
#include "app/main/peer_rates.h"

#include <catch2/catch.hpp>

namespace ccixfer::program {
namespace {

struct Cap {
  Cap(uint64_t rate, std::shared_ptr<Cap> above) : rate_bytes_per_s(rate), process(std::move(above)) {}
  uint64_t rate_bytes_per_s;
  std::shared_ptr<Cap> process;
};

}  // namespace

TEST_CASE("peer_rates__sessions_of_a_peer__share_its_cap_below_that_of_the_process") {
  PeerRates<Cap> rates(std::make_shared<Cap>(1000, nullptr));
  const auto one = rates.of("a", 10);
  CHECK(rates.of("a", 10) == one);
  CHECK(one->rate_bytes_per_s == 10);
  CHECK(one->process == rates.process());
  CHECK(rates.of("b", 10) != one);
  CHECK(rates.of("c", 0)->rate_bytes_per_s == 1);
}

TEST_CASE("peer_rates__a_rate_that_was_changed__holds_for_the_next_session_while_others_live") {
  PeerRates<Cap> rates(nullptr);
  const auto before = rates.of("a", 10);
  const auto other = rates.of("b", 10);
  const auto after = rates.of("a", 20);
  CHECK(after->rate_bytes_per_s == 20);
  CHECK(before->rate_bytes_per_s == 10);
  CHECK(rates.of("a", 20) == after);
  CHECK(rates.of("b", 10) == other);
  const auto none = rates.of("a", 0);
  CHECK(none->rate_bytes_per_s == 1);
  CHECK(rates.of("a", 0) == none);
}

TEST_CASE("peer_rates__a_grant_without_a_rate_and_no_grant__have_the_cap_of_the_process") {
  PeerRates<Cap> rates(std::make_shared<Cap>(1000, nullptr));
  std::optional<policy::Grant> grant;
  CHECK(rates.of(grant) == rates.process());
  grant = policy::Grant{};
  grant->name = "a";
  CHECK(rates.of(grant) == rates.process());
  grant->rate_bytes_per_s = 10;
  CHECK(rates.of(grant) == rates.of("a", 10));
}

}  // namespace ccixfer::program
