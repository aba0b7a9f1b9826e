// The part of the pool that one session uses.
#include "app/send/buffer_share.h"

#include <catch2/catch.hpp>
#include <vector>

#include "app/session/limits.h"

namespace ccixfer::send {
namespace {

TEST_CASE("buffer_share__the_only_session__lends_to_the_last_one_and_counts") {
  memory::Pool pool(session::segment_bytes_max, 2);
  BufferShare share(pool, nullptr);
  CHECK(share.held() == 0);
  REQUIRE(share.may_lend(false));
  Buffer first = share.lend();
  CHECK(share.may_lend(false));
  CHECK_FALSE(share.starved());
  CHECK_FALSE(share.may_lend(true));
  CHECK(share.starved());
  share.begin_turn();
  Buffer second = share.lend_for_entries(false);
  REQUIRE(second);
  CHECK(share.held() == 2);
  CHECK_FALSE(share.may_lend(false));
  Buffer moved = std::move(second);
  CHECK(share.held() == 2);
  first = std::move(moved);
  CHECK(share.held() == 1);
  first.reset();
  CHECK(share.held() == 0);
  CHECK(pool.free_count() == 2);
}

TEST_CASE("buffer_share__a_pool_of_one_buffer__is_not_kept_for_entries") {
  memory::Pool pool(session::segment_bytes_max, 1);
  BufferShare share(pool, nullptr);
  CHECK(share.may_lend(true));
  const Buffer only = share.lend();
  CHECK_FALSE(share.lend_for_entries(true));
  CHECK(share.starved());
}

TEST_CASE("buffer_share__two_sessions__each_holds_its_share_and_more_only_when_waited_for") {
  memory::Pool pool(session::segment_bytes_max, 8);
  const auto turns = std::make_shared<session::PoolTurns>(8, false);
  {
    BufferShare share(pool, turns);
    const BufferShare other(pool, turns);
    CHECK(turns->sessions() == 2);
    std::vector<Buffer> held;
    while (share.may_lend(false)) held.push_back(share.lend());
    CHECK(held.size() == turns->share());
    CHECK(held.size() == 4);
    CHECK_FALSE(share.lend_for_entries(false));
    CHECK(share.lend_for_entries(true));
  }
  CHECK(turns->sessions() == 0);
}

TEST_CASE("buffer_share__session_ends_before_its_buffers__they_go_back_to_the_pool") {
  memory::Pool pool(session::segment_bytes_max, 1);
  Buffer left;
  {
    BufferShare share(pool, nullptr);
    left = share.lend();
  }
  CHECK(pool.free_count() == 0);
  left.reset();
  CHECK(pool.free_count() == 1);
}

}  // namespace
}  // namespace ccixfer::send
