// How sessions share one pool: parts that are posted ahead, and turns for those who ask.
#include "app/session/pool_turns.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace ccixfer::session;

TEST_CASE("pool_turns__one_session_alone__posts_half_of_a_shared_pool_or_most_of_its_own") {
  PoolTurns shared(63, false);
  shared.join();
  CHECK(shared.ahead() == 31);
  CHECK_FALSE(shared.asks());
  PoolTurns own(63, true);
  own.join();
  CHECK(own.ahead() == 56);
  own.join();  // several destinations of one pull do not run at a time
  CHECK(own.ahead() == 56);
  CHECK_FALSE(own.asks());
}

TEST_CASE("pool_turns__many_sessions__at_most_half_is_posted_ahead_and_all_get_turns") {
  PoolTurns turns(63, false);
  for (uint32_t sessions = 1; sessions <= 1000; ++sessions) {
    turns.join();
    CHECK(turns.sessions() == sessions);
    CHECK(turns.ahead() * sessions <= 31);  // so that there is always a half that comes back by itself
    CHECK((turns.ahead() == 0 || turns.ahead() >= buffers_ahead_min));
    CHECK(turns.share() >= buffers_in_turn_min);
    CHECK(turns.asks() == (sessions > 1));
    if (turns.ahead() == 0) CHECK(turns.asks());  // else its source would wait for ever
  }
  for (int i = 0; i < 999; ++i) turns.leave();
  CHECK(turns.ahead() == 31);
}

TEST_CASE("pool_turns__sessions_that_come_one_after_the_other__no_more_than_half_is_posted_ahead_of_all_together") {
  PoolTurns turns(64, false);
  uint32_t posted = 0;
  for (int session = 0; session < 8; ++session) {
    turns.join();
    for (uint32_t i = 0; i < turns.ahead() && turns.may_post_ahead(); ++i, ++posted) turns.posted_ahead();
  }
  CHECK(posted == 32);
  CHECK_FALSE(turns.may_post_ahead());
  turns.ahead_came_back();
  CHECK(turns.may_post_ahead());
  PoolTurns lone(64, true);
  for (int i = 0; i < 64; ++i) lone.posted_ahead();
  CHECK(lone.may_post_ahead());
}

TEST_CASE("pool_turns__tiny_pools__a_session_alone_gets_on") {
  for (const uint32_t buffers : {1u, 2u, 3u, 4u}) {
    for (const bool lone : {false, true}) {
      PoolTurns turns(buffers, lone);
      turns.join();
      CHECK(turns.ahead() >= 1);
      CHECK(turns.ahead() <= buffers);
      CHECK(turns.share() >= 1);
    }
  }
}

TEST_CASE("pool_turns__who_asks__is_served_in_the_order_of_asking_as_far_as_buffers_go") {
  PoolTurns turns(8, false);
  std::vector<uint64_t> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(turns.line_up());
  CHECK_FALSE(turns.is_next(tickets[0], 0));
  CHECK(turns.is_next(tickets[0], 1));
  CHECK_FALSE(turns.is_next(tickets[1], 1));
  CHECK(turns.is_next(tickets[1], 2));
  CHECK_FALSE(turns.is_next(tickets[3], 3));
  turns.step_out(tickets[0]);  // served, or it wants nothing any more
  CHECK(turns.is_next(tickets[1], 1));
  const uint64_t again = turns.line_up();
  CHECK_FALSE(turns.is_next(again, 3));  // behind those who waited
  CHECK(turns.is_next(again, 4));
  turns.step_out(12345);  // nobody's
  CHECK(turns.is_next(tickets[1], 1));
}
