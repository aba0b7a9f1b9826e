// When a source got anywhere last, and which disk keeps it waiting.
#include "app/send/progress_watch.h"

#include <catch2/catch.hpp>

namespace ccixfer::send {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant begin{std::chrono::hours(5)};

TEST_CASE("progress__destination_confirms__counts_from_the_next_look") {
  ProgressWatch watch(seconds(10));
  watch.begin(begin);
  watch.look(begin + seconds(1), 0, 0, false);
  CHECK(watch.last_progress() == begin);
  watch.confirmed();
  watch.look(begin + seconds(2), 0, 0, false);
  CHECK(watch.last_progress() == begin + seconds(2));
  watch.look(begin + seconds(3), 0, 0, false);
  CHECK(watch.last_progress() == begin + seconds(2));
}

TEST_CASE("progress__jobs_make_steps__is_progress_and_without_steps_only_for_a_while") {
  ProgressWatch watch(seconds(10));
  watch.begin(begin);
  watch.look(begin + seconds(1), 1, 0, false);
  watch.look(begin + seconds(5), 1, 1, false);
  CHECK(watch.last_progress() == begin + seconds(5));
  watch.look(begin + seconds(14), 1, 1, false);
  CHECK(watch.last_progress() == begin + seconds(14));
  CHECK(watch.stuck_disk(begin + seconds(14)).empty());
  watch.look(begin + seconds(40), 1, 1, false);
  CHECK(watch.last_progress() == begin + seconds(15));
  CHECK_FALSE(watch.stuck_disk(begin + seconds(40)).empty());
}

TEST_CASE("progress__jobs_in_the_disk__the_destination_hears_it_once_an_interval") {
  ProgressWatch watch(seconds(10));
  watch.begin(begin);
  watch.look(begin, 1, 3, false);
  CHECK_FALSE(watch.take_alive(begin));
  const Instant due = begin + session::alive_interval;
  CHECK(watch.next_deadline() == due);
  watch.look(due, 1, 3, false);
  const auto alive = watch.take_alive(due);
  REQUIRE(alive);
  CHECK(alive->steps == 3);
  CHECK(alive->silent_ms == 250);
  CHECK_FALSE(watch.take_alive(due));
  watch.look(due, 0, 3, false);
  CHECK(watch.next_deadline() == never);
}

TEST_CASE("progress__rate_holds_us_back__the_destination_hears_that_we_live") {
  ProgressWatch watch(seconds(10));
  watch.begin(begin);
  watch.look(begin, 0, 0, true);
  const Instant due = begin + session::alive_interval;
  watch.look(due, 0, 0, true);
  const auto alive = watch.take_alive(due);
  REQUIRE(alive);
  CHECK(alive->silent_ms == 0);
}

TEST_CASE("progress__peer_has_been_in_its_disk_for_too_long__its_disk_is_stuck_until_it_answers") {
  ProgressWatch watch(seconds(10));
  watch.begin(begin);
  watch.heard(session::Alive{0, 9000});
  watch.look(begin + seconds(1), 0, 0, false);
  CHECK(watch.last_progress() == begin + seconds(1));
  watch.heard(session::Alive{0, 11000});
  watch.look(begin + seconds(2), 0, 0, false);
  CHECK(watch.last_progress() == begin + seconds(1));
  CHECK(watch.stuck_disk(begin + seconds(2)).find("the receiver's") != std::string::npos);
  watch.answered();
  CHECK(watch.stuck_disk(begin + seconds(2)).empty());
}

}  // namespace
}  // namespace ccixfer::send
