// What a peer may bring in a session by its grant.
#include "app/recv/budget.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

Decision decision_of(session::Verdict verdict, uint64_t size_bytes) {
  Decision decision;
  decision.verdict = verdict;
  decision.task = test::task_of(1, size_bytes);
  return decision;
}

TEST_CASE("budget__further_names__cost_nothing_until_their_content_is_wanted") {
  Limits limits;
  limits.quota_bytes = 10;
  Budget budget(limits);
  CHECK_FALSE(budget.decided({decision_of(session::Verdict::send, 10), decision_of(session::Verdict::link, 10)}));
  const auto beyond = budget.wanted(*test::task_of(2, 10));
  REQUIRE(beyond);
  CHECK(beyond->kind == ErrorKind::no_space);
}

TEST_CASE("budget__entries__a_directory_counts_once_and_not_again_when_it_is_left") {
  Limits limits;
  limits.entries_max = 3;
  Budget budget(limits);
  std::vector<Decision> decisions(4);
  decisions[0].type = session::EntryType::directory;
  decisions[3].type = session::EntryType::leave;
  CHECK_FALSE(budget.decided(decisions));
  const auto beyond = budget.decided({Decision{}});
  REQUIRE(beyond);
  CHECK(beyond->kind == ErrorKind::not_authorised);
  CHECK(beyond->message.find("more than 3 entries") != std::string::npos);
}

TEST_CASE("budget__sizes_whose_sum_does_not_fit__are_too_much") {
  Limits limits;
  limits.quota_bytes = ~uint64_t{0} - 1;
  Budget budget(limits);
  CHECK_FALSE(budget.wanted(*test::task_of(1, size_unknown - 2)));
  CHECK(budget.wanted(*test::task_of(2, size_unknown - 2)));
}

}  // namespace
}  // namespace ccixfer::recv
