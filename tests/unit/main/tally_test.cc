#include <catch2/catch.hpp>

#include "app/main/dialled.h"
#include "app/main/machine.h"
#include "app/main/transfer_loop.h"

namespace ccixfer::program {

TEST_CASE("lanes_for__round_trip__one_nearby_more_on_long_paths_and_bounded") {
  using namespace std::chrono_literals;
  CHECK(lanes_for(0ns) == 1);
  CHECK(lanes_for(1ms) == 1);
  CHECK(lanes_for(10ms) == 7);
  CHECK(lanes_for(100ms) == 16);
}

TEST_CASE("tally__transfer_over_two_sessions__counts_once_and_what_crossed_the_wire_adds_up") {
  Tally first;
  first.files = 100;
  first.files_failed = 3;
  first.bytes = 1000;
  first.bytes_total = 4000;
  first.bytes_sent = 1500;
  Tally second = first;
  second.files = 40;
  second.files_failed = 0;
  second.bytes = 700;
  second.bytes_total = 900;
  // Not as far as the first had come: its counts are what is known.
  const Tally early = continued(first, second);
  CHECK(early.files == 100);
  CHECK(early.files_failed == 3);
  CHECK(early.bytes == 1000);
  CHECK(early.bytes_total == 4000);
  CHECK(early.bytes_sent == 3000);
  second.files = 105;
  second.bytes = 900;
  const Tally farther = continued(first, second);
  CHECK(farther.files == 105);
  CHECK(farther.files_failed == 0);
  CHECK(farther.bytes == 900);
  CHECK(farther.bytes_total == 900);
  // It has come to the end of the tree: files that are no more in it do not count.
  second.files = 2;
  second.over = true;
  CHECK(continued(first, second).files == 2);
}

TEST_CASE("tally_of__what_the_source_could_not_list__counts_beside_the_files_that_failed") {
  recv::DestinationTotals totals;
  totals.files_failed = 3;
  totals.unlisted_failed = 2;
  totals.unlisted_vanished = 4;
  const Tally tally = tally_of(totals);
  CHECK(tally.files_failed == 5);
  CHECK(tally.files_vanished == 4);
  CHECK(end_of_tally(tally).kind == ErrorKind::partial);
}

// Push (send::Totals) and pull (recv::DestinationTotals) lead to the same Tally, and that to the same end: one failed and one
// changed file are 23 both ways, a changed file alone 24.
TEST_CASE("end_of_tally__failed_and_vanished__23_before_24_at_either_end") {
  for (const uint64_t failed : {0u, 1u, 2u}) {
    for (const uint64_t vanished : {0u, 1u, 2u}) {
      for (const bool unlisted : {false, true}) {
        recv::DestinationTotals totals;
        (unlisted ? totals.unlisted_failed : totals.files_failed) = failed;
        (unlisted ? totals.unlisted_vanished : totals.files_vanished) = vanished;
        Tally pushed;
        pushed.files_failed = failed;
        pushed.files_vanished = vanished;
        const ErrorKind expected = failed > 0 ? ErrorKind::partial : vanished > 0 ? ErrorKind::vanished : ErrorKind::ok;
        INFO(failed << " failed, " << vanished << " vanished");
        CHECK(end_of_tally(tally_of(totals)).kind == expected);
        CHECK(end_of_tally(pushed).kind == expected);
      }
    }
  }
  Tally both;
  both.files_failed = 1;
  both.files_vanished = 1;
  CHECK(end_of_tally(both).message.rfind("2 files failed", 0) == 0);
}

TEST_CASE("pool_buffers__too_little_memory__usage_that_says_how_much") {
  CHECK(pool_buffers(256u << 20) == 63u);
  const auto little = pool_buffers(16u << 20);
  REQUIRE_FALSE(little);
  CHECK(little.error().message.find("17MiB") != std::string::npos);
  CHECK(pool_buffers(17u << 20) == 4u);
}

TEST_CASE("reached__a_later_session_that_does_the_same_again__is_no_progress") {
  Reached most;
  CHECK(advance(most, {5, 1, 100}));
  CHECK_FALSE(advance(most, {0, 0, 0}));  // a new session
  CHECK_FALSE(advance(most, {5, 1, 100}));
  CHECK(advance(most, {6, 0, 0}));
  CHECK(advance(most, {0, 2, 0}));
  CHECK(advance(most, {0, 0, 101}));
  CHECK_FALSE(advance(most, {6, 2, 101}));
}

}  // namespace ccixfer::program
