// An overlay as large as it may become, of the very routers that the program is made of.
#include "tests/unit/routing/torus.h"

using namespace ccixfer;
using namespace ccixfer::routing::test;

TEST_CASE("overlay__one_of_324_routers_falls_silent__all_know_within_three_keepalive_times") { fail_one(18, 1); }
