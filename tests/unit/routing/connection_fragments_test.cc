// What a router keeps of the fragments of one connection.
#include "routing/router/connection_fragments.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

TEST_CASE("connection_fragments__wait__in_order_by_class_and_once_in_the_turn_order") {
  ConnectionFragments fragments;
  CHECK(fragments.first_waiting(2) == nullptr);
  CHECK(fragments.wait(2, {11, 100, 0}));
  CHECK_FALSE(fragments.wait(2, {12, 200, 1}));
  CHECK(fragments.wait(7, {13, 300, 0}));
  REQUIRE(fragments.first_waiting(2) != nullptr);
  CHECK(fragments.first_waiting(2)->fragment == 11);
  fragments.drop_first_waiting(2);
  CHECK(fragments.first_waiting(2)->fragment == 12);
  CHECK(fragments.first_waiting(2)->from == 1);
  fragments.drop_first_waiting(2);
  CHECK(fragments.first_waiting(2) == nullptr);
  CHECK_FALSE(fragments.wait(2, {14, 100, 0}));  // it stands there still
  fragments.leave_turn(2);
  CHECK(fragments.wait(2, {15, 100, 0}));
  CHECK_FALSE(fragments.wait(7, {16, 100, 0}));
}

TEST_CASE("connection_fragments__exposed__are_found_by_leg_kind_and_cookie_until_withdrawn") {
  ConnectionFragments fragments;
  CHECK(fragments.exposed_as({1, false, 9}) == 0);
  CHECK(fragments.expose({1, false, 9}, 21));
  CHECK_FALSE(fragments.expose({1, false, 9}, 22));
  CHECK(fragments.expose({0, false, 9}, 23));
  CHECK(fragments.expose({1, true, 9}, 24));
  CHECK(fragments.expose({0, true, 9}, 25));
  CHECK(fragments.exposed_as({1, false, 9}) == 21);
  CHECK(fragments.exposed_as({0, false, 9}) == 23);
  CHECK(fragments.exposed_as({1, true, 9}) == 24);
  fragments.withdraw({1, false, 9});
  CHECK(fragments.exposed_as({1, false, 9}) == 0);
  CHECK(fragments.exposed_as({1, true, 9}) == 24);
}

TEST_CASE("connection_fragments__stalled__are_taken_all_at_once") {
  ConnectionFragments fragments;
  CHECK_FALSE(fragments.has_stalled());
  CHECK(fragments.take_stalled().empty());
  fragments.stall(31);
  fragments.stall(32);
  CHECK(fragments.has_stalled());
  CHECK(fragments.take_stalled() == std::vector<uint64_t>{31, 32});
  CHECK_FALSE(fragments.has_stalled());
}

TEST_CASE("connection_fragments__the_connection_ends__all_are_told_and_the_exposed_stay_so") {
  ConnectionFragments fragments;
  CHECK(fragments.take_all().empty());
  static_cast<void>(fragments.wait(3, {12, 1, 0}));
  static_cast<void>(fragments.wait(0, {11, 1, 0}));
  fragments.stall(31);
  static_cast<void>(fragments.expose({1, false, 9}, 21));
  CHECK(fragments.take_all() == std::vector<uint64_t>{11, 12, 21, 31});
  CHECK(fragments.take_all() == std::vector<uint64_t>{21});
  CHECK(fragments.first_waiting(3) == nullptr);
  CHECK_FALSE(fragments.has_stalled());
}

TEST_CASE("connection_fragments__the_last_one_ends__says_once_that_memory_is_to_be_released") {
  ConnectionFragments fragments;
  fragments.add();
  fragments.add();
  CHECK_FALSE(fragments.remove());
  CHECK(fragments.remove());
  fragments.add();
  CHECK_FALSE(fragments.remove());  // it was said
  fragments.release();
  fragments.add();
  CHECK(fragments.remove());
}

TEST_CASE("connection_fragments__release__keeps_what_is_known_still") {
  ConnectionFragments fragments;
  fragments.add();
  static_cast<void>(fragments.expose({1, false, 9}, 21));
  fragments.release();
  CHECK(fragments.exposed_as({1, false, 9}) == 21);
  static_cast<void>(fragments.remove());
  fragments.release();
  CHECK(fragments.exposed_as({1, false, 9}) == 0);
}

TEST_CASE("connection_fragments__buffers__are_counted_by_the_leg_that_they_come_from") {
  ConnectionFragments fragments;
  fragments.take_buffer(0);
  fragments.take_buffer(1);
  fragments.take_buffer(1);
  CHECK(fragments.buffers(0) == 1);
  CHECK(fragments.buffers(1) == 2);
  fragments.give_buffer(1);
  CHECK(fragments.buffers() == 2);
}

TEST_CASE("connection_fragments__a_question__has_one_answer_from_where_it_was_asked") {
  ConnectionFragments fragments;
  CHECK_FALSE(fragments.take_question({1, 9}));
  REQUIRE(fragments.ask({1, 9}, 4096));
  CHECK_FALSE(fragments.ask({1, 9}, 4096));
  REQUIRE(fragments.ask({0, 9}, 77));
  CHECK_FALSE(fragments.take_question({1, 8}));
  CHECK(fragments.take_question({1, 9}) == 4096);
  CHECK_FALSE(fragments.take_question({1, 9}));
  CHECK(fragments.take_question({0, 9}) == 77);
}

TEST_CASE("connection_fragments__questions__at_most_a_window_and_they_outlive_a_release") {
  ConnectionFragments fragments;
  for (uint64_t cookie = 0; cookie < fragments_per_side_max; ++cookie) REQUIRE(fragments.ask({1, cookie}, 1));
  CHECK_FALSE(fragments.ask({1, fragments_per_side_max}, 1));
  fragments.release();
  fragments.forget_if_idle();
  for (uint64_t cookie = 0; cookie < fragments_per_side_max; ++cookie) REQUIRE(fragments.take_question({1, cookie}) == 1);
  fragments.forget_if_idle();
  CHECK_FALSE(fragments.take_question({1, 0}));
}
