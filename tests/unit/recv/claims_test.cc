// A final path has one writer, unless that one's link is dead.
#include "app/recv/claims.h"

#include <catch2/catch.hpp>
#include <future>
#include <optional>
#include <thread>

namespace ccixfer::recv {
namespace {

// As a job of another session does.
bool take_elsewhere(Claims& claims, const std::string& path, const std::shared_ptr<Owner>& owner) {
  return std::async(std::launch::async, [&] { return claims.take(path_key(path), owner); }).get();
}

// Two sessions and two paths.
struct Two {
  explicit Two(std::chrono::milliseconds patience = Claims::patience_default) : claims(patience) {}
  Claims claims;
  const std::shared_ptr<Owner> first = std::make_shared<Owner>(), second = std::make_shared<Owner>();
  const Hash128 f = path_key("f"), g = path_key("g");
};

TEST_CASE("claims__path__has_one_holder_unless_its_link_is_dead") {
  Two here;
  auto& [claims, first, second, f, g] = here;
  CHECK(claims.take(f, first));
  CHECK(claims.take(g, first));
  CHECK_FALSE(claims.take(f, first));
  CHECK_FALSE(claims.take(f, second));
  claims.release(f, second);  // not its own
  claims.release(path_key("nobody's"), first);
  CHECK_FALSE(claims.take(f, second));
  claims.release(f, first);
  CHECK(claims.take(f, second));
  claims.release_all(second);
  CHECK(claims.take(f, first));
  CHECK_FALSE(claims.take(g, second));  // another's stayed
  first->link_dead.store(true);
  CHECK_FALSE(claims.take(g, first));  // its own
  CHECK_FALSE(first->lost.load());
  CHECK(claims.take(g, second));
  CHECK(first->lost.load());
  CHECK_FALSE(second->lost.load());
  CHECK_FALSE(claims.take(g, first));  // the second lives
}

TEST_CASE("claims__a_job_of_the_lost_holder_is_at_the_path__nobody_has_it_until_that_has_ended") {
  Two here(std::chrono::milliseconds(0));
  auto& [claims, first, second, f, g] = here;
  CHECK(claims.take(f, first));
  CHECK(claims.take(g, first));
  CHECK_FALSE(claims.use(f, *second).may());  // another's
  first->link_dead.store(true);
  {
    const Claims::Use one = claims.use(f, *first);
    std::optional<Claims::Use> two(claims.use(f, *first));
    CHECK(one.may());
    CHECK(two->may());
    CHECK_FALSE(take_elsewhere(claims, "f", second));
    CHECK(first->lost.load());
    two.reset();
    CHECK_FALSE(take_elsewhere(claims, "f", second));
    CHECK_FALSE(claims.use(g, *first).may());  // it begins nothing any more
  }
  CHECK(take_elsewhere(claims, "f", second));
  CHECK(take_elsewhere(claims, "g", second));
  CHECK(claims.use(f, *second).may());
}

TEST_CASE("claims__whoever_takes_a_path__waits_for_the_job_that_is_at_it") {
  // Again and again, as the use may end before the other one has begun to wait.
  for (int round = 0; round < 200; ++round) {
    Claims claims;
    const auto first = std::make_shared<Owner>();
    const auto second = std::make_shared<Owner>();
    const Hash128 f = path_key("f");
    REQUIRE(claims.take(f, first));
    first->link_dead.store(true);
    std::optional<Claims::Use> use(claims.use(f, *first));
    auto taken = std::async(std::launch::async, [&] { return claims.take(f, second); });
    while (!first->lost.load()) std::this_thread::yield();
    use.reset();
    REQUIRE(taken.get());
  }
}

// As symbolic links and directories are placed.
TEST_CASE("claims__held_for_a_moment__its_path_is_in_use") {
  Claims claims(std::chrono::milliseconds(0));
  const auto first = std::make_shared<Owner>();
  const auto second = std::make_shared<Owner>();
  {
    const Claim held(claims, path_key("l"), first);
    CHECK(held.is_held());
    first->link_dead.store(true);
    CHECK_FALSE(take_elsewhere(claims, "l", second));
  }
  CHECK(take_elsewhere(claims, "l", second));
}

}  // namespace
}  // namespace ccixfer::recv
