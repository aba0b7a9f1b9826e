// A router's budget of bytes a second.
#include "routing/router/rate_limit.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);

}  // namespace

TEST_CASE("rate_limit__no_limit__holds_up_nobody") {
  RateLimit rate(0);
  rate.use(1u << 30, start);
  CHECK_FALSE(rate.is_used_up(start));
  CHECK(rate.next_deadline(start) == never);
}

TEST_CASE("rate_limit__overdrawn_by_more_than_a_burst__is_used_up_until_the_burst_is_left") {
  RateLimit rate(1'000'000);
  rate.use(20'000, start);
  CHECK_FALSE(rate.is_used_up(start));  // 20 ms
  rate.use(10'000, start);
  CHECK(rate.is_used_up(start));
  CHECK(rate.next_deadline(start) == start + milliseconds(10));
  CHECK_FALSE(rate.is_used_up(start + milliseconds(10)));
  // Nobody waits for the rate any more. `now` would be an answer on which a loop never sleeps.
  CHECK(rate.next_deadline(start + milliseconds(10)) == never);
  CHECK(rate.next_deadline(start + milliseconds(15)) == never);
  CHECK(rate.next_deadline(start + milliseconds(30)) == never);
}

TEST_CASE("rate_limit__not_used_for_a_while__saves_nothing") {
  RateLimit rate(1'000'000);
  rate.use(1, start);
  rate.use(30'000, start + seconds(10));
  CHECK(rate.is_used_up(start + seconds(10)));
}

TEST_CASE("rate_limit__set_anew__counts_for_what_is_used_from_then_on") {
  RateLimit rate(1'000'000);
  rate.set(10'000'000, start);
  rate.use(300'000, start);
  CHECK(rate.next_deadline(start) == start + milliseconds(30) - rate_burst);
  rate.set(0, start);
  CHECK(rate.next_deadline(start) == never);
}

TEST_CASE("rate_limit__set_anew__what_is_overdrawn_is_paid_at_the_new_rate") {
  RateLimit rate(64u << 10);
  rate.use(4u << 20, start);  // 64 s at that rate
  CHECK(rate.is_used_up(start + seconds(60)));
  SECTION("raised") {
    rate.set(125'000'000, start);
    CHECK(rate.is_used_up(start));
    CHECK_FALSE(rate.is_used_up(start + milliseconds(100)));
  }
  SECTION("lowered") {
    rate.set(32u << 10, start + seconds(32));  // half of it is left
    CHECK(rate.is_used_up(start + seconds(95)));
    CHECK_FALSE(rate.is_used_up(start + seconds(96)));
  }
  SECTION("lifted, and back: nothing is left to pay") {
    rate.set(0, start);
    CHECK_FALSE(rate.is_used_up(start));
    rate.set(1'000'000, start + milliseconds(1));
    CHECK_FALSE(rate.is_used_up(start + milliseconds(1)));
  }
}

TEST_CASE("rate_limit__fragments__take_a_sixteenth_of_a_second_in_whole_pages") {
  constexpr uint32_t page = 4096, most = (4u << 20) + page;
  CHECK(RateLimit(0).fragment_bytes(most) == most);
  CHECK(RateLimit(1).fragment_bytes(most) == page);
  CHECK(RateLimit(500'000).fragment_bytes(most) == 7 * page);  // 4 Mb/s
  CHECK(RateLimit(500'000).fragment_bytes(2 * page) == 2 * page);
  CHECK(RateLimit(1'000'000'000).fragment_bytes(most) == most);
  CHECK(RateLimit(UINT64_MAX).fragment_bytes(most) == most);
  RateLimit rate(0);
  rate.set(500'000, start);
  CHECK(rate.fragment_bytes(most) == 7 * page);
}

TEST_CASE("router_rate__connections__agree_on_fragments_of_the_rate_that_there_is") {
  test::Site site;
  site.options.rate_bytes_per_s = 500'000;
  site.chain(1);
  const auto agreed = [&] {
    const cci::Connection connection = site.connect(*site.left, *site.right);
    return site.left->endpoint->hops(connection).front().fragment_bytes;
  };
  const uint32_t lent = site.routers[0]->router->view().fragment_bytes;
  REQUIRE(lent > 7 * 4096);
  CHECK(agreed() == 7 * 4096);
  const auto set = [&](uint64_t bytes_per_s) {
    site.routers[0]->router->set_rate(bytes_per_s);
    site.world.wake(site.routers[0]->node);
    site.world.run_for(milliseconds(1));
  };
  set(0);
  CHECK(agreed() == lent);
  set(200'000);
  CHECK(agreed() == 3 * 4096);
}

// A whole segment of each would be paid for in 8 s, and nothing would move meanwhile: its ends would take it for stuck.
TEST_CASE("router_rate__many_connections_under_a_low_rate__each_moves_every_second") {
  test::Site site;
  site.options.rate_bytes_per_s = 500'000;
  site.options.fragment_bytes = (4u << 20) + (4u << 10);
  site.options.memory_bytes = 64u << 20;
  site.chain(1);
  std::vector<cci::Connection> connections;
  const auto data = test::pattern(4u << 20, 3);
  std::vector<std::vector<std::byte>> targets(8, std::vector<std::byte>(data.size()));
  for (auto& target : targets) {
    connections.push_back(site.connect(*site.left, *site.right));
    cci::RmaOptions write;
    write.local = site.left->memory->register_region(Bytes(data));
    write.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
    write.length_bytes = data.size();
    REQUIRE(site.left->endpoint->rma(connections.back(), write) == Status::success);
  }
  site.left->wake();
  std::map<uint64_t, uint64_t> moved;  // by connection
  for (int second = 0; second < 10; ++second) {
    CAPTURE(second);
    site.world.run_for(seconds(1));
    const RouterView view = site.routers[0]->router->view();
    REQUIRE(view.connections.size() == connections.size());
    for (const ConnectionView& each : view.connections) CHECK(each.bytes > std::exchange(moved[each.id], each.bytes));
  }
}

TEST_CASE("router_rate__raised_while_a_fragment_waits_for_it__the_next_turn_goes_on") {
  test::Site site;
  site.options.rate_bytes_per_s = 4u << 10;  // a second a fragment
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = test::pattern(4u << 20, 3);
  std::vector<std::byte> target(data.size());
  cci::RmaOptions write;
  write.local = site.left->memory->register_region(Bytes(data));
  write.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  write.length_bytes = data.size();
  REQUIRE(site.left->endpoint->rma(connection, write) == Status::success);
  site.left->wake();
  site.world.run_for(seconds(1));
  Router& router = *site.routers[0]->router;
  CHECK(router.next_deadline() > site.world.now());
  SECTION("by its owner") { router.set_rate(125'000'000); }
  SECTION("lifted") { router.set_rate(0); }
  CHECK(router.next_deadline() <= site.world.now());
  site.world.wake(site.routers[0]->node);
  REQUIRE(site.run([&] { return site.left->count(cci::EventType::send) > 0; }, seconds(2)));
  CHECK(target == data);
}
