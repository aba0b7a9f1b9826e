// When the configured peers of a router are dialled, and which of them have a link.
#include "routing/router/dial_plan.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);

DialPlan plan_of_one() {
  DialPlan plan;
  plan.add(3, "sim://a:1", false);
  return plan;
}

}  // namespace

TEST_CASE("dial_plan__a_peer_that_cannot_be_reached__is_dialled_less_and_less_often") {
  DialPlan plan = plan_of_one();
  Instant now = start;
  for (Duration gap = redial_first; gap < redial_max; gap *= 2) {
    REQUIRE(plan.due(now) == std::vector<size_t>{0});
    plan.dials(0, now);
    CHECK(plan.next_deadline() == now + gap);
    CHECK(plan.due(now + gap - Duration(1)).empty());
    now += gap;
  }
  plan.dials(0, now);
  plan.dials(0, now);
  CHECK(plan.next_deadline() == now + redial_max);
}

TEST_CASE("dial_plan__a_peer_with_a_link__is_not_due_until_the_link_ends") {
  DialPlan plan = plan_of_one();
  plan.dials(0, start);
  plan.has_link(0, 7);
  CHECK(plan.due(start + seconds(100)).empty());
  CHECK(plan.next_deadline() == never);
  CHECK(plan.on_end(8, start).empty());
  CHECK(plan.on_end(7, start) == std::vector<std::string>{"sim://a:1"});
  CHECK(plan.next_deadline() == start + redial_first);
  CHECK(plan.on_end(7, start).empty());
}

TEST_CASE("dial_plan__a_link_that_has_lasted__ends_and_the_waits_are_short_again") {
  const bool lasted = GENERATE(true, false);
  DialPlan plan = plan_of_one();
  for (int i = 0; i < 10; ++i) plan.dials(0, start);
  plan.has_link(0, 7);
  plan.on_open(7, 55, "a", start);
  CHECK(plan[0].router == 55);
  CHECK(plan[0].node == "a");
  const Instant end = start + redial_max - (lasted ? Duration(0) : Duration(1));
  static_cast<void>(plan.on_end(7, end));
  const Instant next = plan.next_deadline();
  plan.dials(0, next);
  CHECK(plan.next_deadline() == next + (lasted ? Duration(redial_first) : Duration(redial_max)));
}

TEST_CASE("dial_plan__the_router_itself__is_never_dialled_again") {
  DialPlan plan = plan_of_one();
  plan.has_link(0, 7);
  CHECK_FALSE(plan.all_tried());
  plan.on_self(7);
  CHECK(plan.all_tried());
  static_cast<void>(plan.on_end(7, start));
  CHECK(plan.due(start + seconds(100)).empty());
  CHECK(plan.next_deadline() == never);
}

TEST_CASE("dial_plan__all_tried__when_each_peer_was_answered_replaced_or_ended") {
  DialPlan plan;
  for (const char* uri : {"sim://a:1", "sim://b:1", "sim://c:1"}) plan.add(0, uri, false);
  plan.add(0, "sim://d:1", true);
  for (size_t i = 0; i < 3; ++i) plan.has_link(i, 7 + i);
  plan.on_answer(7);
  plan.on_replaced(8, 20);
  CHECK_FALSE(plan.all_tried());
  static_cast<void>(plan.on_end(9, start));
  CHECK(plan.all_tried());
  CHECK(plan.on_end(8, start).empty());  // another link serves it
  CHECK(plan.on_end(20, start) == std::vector<std::string>{"sim://b:1"});
}

TEST_CASE("dial_plan__peers_that_are_no_longer_named__go_and_their_links_are_told") {
  DialPlan plan;
  plan.add(0, "sim://a:1", true);
  plan.add(0, "sim://b:1", true);
  plan.add(1, "sim://a:1", true);
  plan.add(0, "sim://c:1", true);
  plan.has_link(0, 7);
  const std::vector<std::string> kept = {"sim://b:1"};
  CHECK(plan.keep_only(0, kept) == std::vector<uint64_t>{7});  // c has no link
  CHECK_FALSE(plan.has(0, "sim://a:1"));
  CHECK(plan.has(0, "sim://b:1"));
  CHECK(plan.has(1, "sim://a:1"));
  CHECK(plan.due(start).size() == 2);
}
