// A final path has one writer, unless that one's link is dead.
#include "app/recv/claims.h"

#include <catch2/catch.hpp>

namespace ccixfer::recv {
namespace {

TEST_CASE("claims__path__has_one_holder_unless_its_link_is_dead") {
  Claims claims;
  const auto first = std::make_shared<Owner>();
  const auto second = std::make_shared<Owner>();
  const Hash128 f = path_key("f");
  const Hash128 g = path_key("g");
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

}  // namespace
}  // namespace ccixfer::recv
