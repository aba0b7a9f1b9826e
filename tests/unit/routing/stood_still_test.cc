// The ends that have stood still lately, and what their connections may have.
#include "routing/router/stood_still.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);
const EndNames ends = {"", "b"};

}  // namespace

TEST_CASE("stood_still__nothing_is_remembered__what_moved_has_all_the_others_are_on_trial") {
  StoodStill ends_known;
  CHECK(ends_known.share_of(ends, never, start) == Share::trial);
  CHECK(ends_known.share_of(ends, start, start) == Share::full);
}

TEST_CASE("stood_still__an_end_is_remembered__its_connections_have_little_until_they_move") {
  StoodStill known;
  known.remember("b", penalty_time, start);
  CHECK(known.share_of(ends, never, start) == Share::penalty);
  CHECK(known.share_of(ends, start - Duration(1), start) == Share::penalty);
  CHECK(known.share_of(ends, start, start) == Share::full);
  CHECK(known.share_of({"b", "c"}, never, start) == Share::penalty);
  CHECK(known.share_of({"", "c"}, never, start) == Share::trial);
  CHECK(known.share_of(ends, never, start + penalty_time) == Share::trial);
  CHECK(known.has("b"));
  CHECK_FALSE(known.has(""));
}

TEST_CASE("stood_still__remembered_for_longer__was_cut_off_until_it_moves") {
  StoodStill known;
  known.remember("b", 2 * look_interval, start);
  CHECK_FALSE(known.was_cut_off("b", start));
  known.remember("b", penalty_time, start);
  known.remember("b", 2 * look_interval, start);  // it is no shorter for that
  CHECK(known.was_cut_off("b", start));
  CHECK_FALSE(known.was_cut_off("c", start));
  known.moves("c");
  known.moves("b");
  CHECK_FALSE(known.was_cut_off("b", start));
}

TEST_CASE("stood_still__cut_off_again_after_it_moved__is_one_that_was_cut_off") {
  StoodStill known;
  known.remember("b", penalty_time, start);
  known.moves("b");
  known.remember("b", 2 * look_interval, start + seconds(1));  // it merely stands: that it moved counts still
  CHECK_FALSE(known.was_cut_off("b", start + seconds(1)));
  known.remember("b", penalty_time, start + seconds(2));
  CHECK(known.was_cut_off("b", start + seconds(2)));
  known.moves("b");
  CHECK_FALSE(known.was_cut_off("b", start + seconds(2)));
}

TEST_CASE("stood_still__no_name__is_not_remembered") {
  StoodStill known;
  known.remember("", penalty_time, start);
  CHECK(known.share_of({"", ""}, never, start) == Share::trial);
  CHECK_FALSE(known.was_cut_off("", start));
}

TEST_CASE("stood_still__too_many__the_first_whose_time_is_over_is_forgotten") {
  StoodStill known;
  for (size_t i = 0; i < stood_still_max; ++i) known.remember(fmt::format("{}", i), seconds(100) - Duration(i), start);
  known.remember("one more", seconds(200), start);
  CHECK_FALSE(known.has(fmt::format("{}", stood_still_max - 1)));
  CHECK(known.has("0"));
  CHECK(known.has("one more"));
}
