// A cookie holds for who got it, for its life, and in the process that baked it.
#include "transports/datagram/cookie_jar.h"

#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

Address somebody() {
  Address from;
  from.high = 1;
  from.low = 2;
  from.port = 3;
  from.scope = 4;
  return from;
}

}  // namespace

TEST_CASE("cookie__for_who_got_it_and_nobody_else") {
  sim::SimEntropy entropy(1);
  const CookieJar jar(entropy);
  const Instant now{std::chrono::hours(7)};
  const Cookie cookie = jar.bake(somebody(), 5, 6, now);
  CHECK(jar.holds(cookie, somebody(), 5, 6, now));
  CHECK_FALSE(jar.holds(cookie, somebody(), 6, 6, now));
  CHECK_FALSE(jar.holds(cookie, somebody(), 5, 7, now));
  for (const auto& change :
       std::initializer_list<void (*)(Address&)>{[](Address& from) { ++from.high; }, [](Address& from) { ++from.low; },
                                                 [](Address& from) { ++from.port; }, [](Address& from) { ++from.scope; }}) {
    Address other = somebody();
    change(other);
    CHECK_FALSE(jar.holds(cookie, other, 5, 6, now));
  }
  Cookie forged = cookie;
  forged.proof ^= 1;
  CHECK_FALSE(jar.holds(forged, somebody(), 5, 6, now));
  forged = cookie;
  ++forged.issued_at_ns;  // a longer life
  CHECK_FALSE(jar.holds(forged, somebody(), 5, 6, now + std::chrono::seconds(1)));
  const CookieJar of_another_process(entropy);
  CHECK_FALSE(of_another_process.holds(cookie, somebody(), 5, 6, now));
}

TEST_CASE("cookie__for_its_life_and_not_before_its_issue") {
  sim::SimEntropy entropy(1);
  const CookieJar jar(entropy);
  const Instant now{std::chrono::hours(7)};
  const Cookie cookie = jar.bake(somebody(), 5, 6, now);
  CHECK(jar.holds(cookie, somebody(), 5, 6, now + cookie_life));
  CHECK_FALSE(jar.holds(cookie, somebody(), 5, 6, now + cookie_life + Duration(1)));
  CHECK_FALSE(jar.holds(cookie, somebody(), 5, 6, now - Duration(1)));
}

}  // namespace ccixfer::datagram::testing
