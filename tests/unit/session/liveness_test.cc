// Whether a session gets anywhere, by progress and by both disks.
#include "app/session/liveness.h"

#include <catch2/catch.hpp>

namespace ccixfer::session {
namespace {

using namespace std::chrono_literals;

constexpr Instant began{1h};

TEST_CASE("liveness__reported_progress__counts_from_the_next_look") {
  Liveness liveness(10s);
  liveness.start(began);
  CHECK(liveness.last_progress() == began);
  liveness.look(began + 1s, 0, 0);
  CHECK(liveness.last_progress() == began);
  liveness.made_progress();
  liveness.look(began + 2s, 0, 0);
  CHECK(liveness.last_progress() == began + 2s);
  liveness.look(began + 3s, 0, 0);
  CHECK(liveness.last_progress() == began + 2s);
  liveness.look(began + 4s, 0, 1);  // a job took a step
  CHECK(liveness.last_progress() == began + 4s);
}

TEST_CASE("liveness__job_that_takes_long__is_progress_until_the_patience_ends") {
  Liveness liveness(10s);
  liveness.start(began);
  liveness.look(began, 1, 0);
  CHECK(liveness.next_deadline() == began + alive_interval);
  liveness.look(began + 7s, 1, 0);
  CHECK(liveness.last_progress() == began + 7s);
  CHECK(liveness.stuck_disk("the peer's").empty());
  liveness.look(began + 25s, 1, 0);
  CHECK(liveness.last_progress() == began + 10s);
  CHECK(liveness.stuck_disk("the peer's") == "the disk here has not answered for 25 s");
}

TEST_CASE("liveness__jobs_in_the_disk__the_peer_hears_of_it_four_times_a_second") {
  Liveness liveness(10s);
  liveness.start(began);
  liveness.look(began, 0, 3);
  CHECK_FALSE(liveness.take_alive(began));
  liveness.look(began, 1, 3);
  CHECK_FALSE(liveness.take_alive(began + alive_interval - 1ns));
  liveness.look(began + alive_interval, 1, 3);
  const auto alive = liveness.take_alive(began + alive_interval);
  REQUIRE(alive);
  CHECK(alive->steps == 3);
  CHECK(alive->silent_ms == 250);
  CHECK_FALSE(liveness.take_alive(began + alive_interval));
  CHECK(liveness.take_alive(began + 2 * alive_interval));
}

TEST_CASE("liveness__cap_that_holds_back__is_told_to_the_peer_and_counts_as_a_step") {
  Liveness liveness(10s);
  liveness.start(began);
  liveness.look(began, 0, 0);
  liveness.hold_back();
  liveness.look(began + 1s, 0, 0);
  CHECK(liveness.last_progress() == began + 1s);
  CHECK(liveness.take_alive(began + 2s));
}

TEST_CASE("liveness__disk_of_the_peer__is_progress_within_the_patience_and_named_after_it") {
  Liveness liveness(10s);
  liveness.start(began);
  liveness.heard({0, 9'999});
  liveness.look(began + 1s, 0, 0);
  CHECK(liveness.last_progress() == began + 1s);
  CHECK(liveness.stuck_disk("the sender's").empty());
  liveness.heard({0, 10'000});
  liveness.look(began + 2s, 0, 0);
  CHECK(liveness.last_progress() == began + 1s);
  CHECK(liveness.stuck_disk("the sender's") == "the sender's disk has not answered for 10 s");
  liveness.answered();
  CHECK(liveness.stuck_disk("the sender's").empty());
}

}  // namespace
}  // namespace ccixfer::session
