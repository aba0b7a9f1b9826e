// Exit codes by the counts of a transfer, and what counts as progress.
#include <catch2/catch.hpp>

#include "app/main/dialled.h"
#include "app/main/transfer_loop.h"
#include "app/main/transfer_role.h"
#include "app/recv/team.h"
#include "app/report/outcome.h"

namespace ccixfer::program {

TEST_CASE("end_of_tally__what_the_source_could_not_list__counts_as_failed_too") {
  Tally tally;
  tally.unlisted_vanished = 4;
  CHECK(end_of_tally(tally).kind == ErrorKind::vanished);
  tally.files_failed = 3;
  tally.unlisted_failed = 2;
  CHECK(end_of_tally(tally).kind == ErrorKind::partial);
  CHECK(end_of_tally(tally).message.rfind("9 files failed", 0) == 0);
}

// A source counts what it could not list with the files, and a destination beside them; both lead to the same end: one failed and
// one changed file are 23 both ways, a changed file alone 24.
TEST_CASE("end_of_tally__failed_and_vanished__23_before_24_at_either_end") {
  for (const uint64_t failed : {0u, 1u, 2u}) {
    for (const uint64_t vanished : {0u, 1u, 2u}) {
      Tally pushed;
      pushed.files_failed = failed;
      pushed.files_vanished = vanished;
      Tally pulled;
      pulled.unlisted_failed = failed;
      pulled.unlisted_vanished = vanished;
      const ErrorKind expected = failed > 0 ? ErrorKind::partial : vanished > 0 ? ErrorKind::vanished : ErrorKind::ok;
      INFO(failed << " failed, " << vanished << " vanished");
      CHECK(end_of_tally(pulled).kind == expected);
      CHECK(end_of_tally(pushed).kind == expected);
    }
  }
  Tally both;
  both.files_failed = 1;
  both.files_vanished = 1;
  CHECK(end_of_tally(both).message.rfind("2 files failed", 0) == 0);
}

TEST_CASE("end_of_tally__deletions_beyond_the_limit__23_before_25_before_24_and_always_said") {
  for (const uint64_t failed : {0u, 2u}) {
    for (const uint64_t vanished : {0u, 1u}) {
      for (const uint64_t skipped : {0u, 3u}) {
        INFO(failed << " failed, " << vanished << " vanished, " << skipped << " not deleted");
        Tally tally;
        tally.files_failed = failed;
        tally.files_vanished = vanished;
        tally.deleted = 7;
        tally.delete_skipped = skipped;
        ErrorKind expected = failed > 0 ? ErrorKind::partial : ErrorKind::ok;
        if (skipped > 0) expected = report::worse(expected, ErrorKind::max_delete);
        if (vanished > 0) expected = report::worse(expected, ErrorKind::vanished);
        const Error end = end_of_tally(tally);
        CHECK(end.kind == expected);
        CHECK(recv::team_ended_of(tally).kind == expected);
        CHECK((end.message.find("--max-delete reached: 7 deleted, 3 not") != std::string::npos) == (skipped > 0));
        const char* files = failed > 0 && vanished > 0 ? "3 files failed"
                            : failed > 0               ? "2 files failed"
                                                       : "1 file vanished or changed";
        CHECK((end.message.find(files) != std::string::npos) == (failed + vanished > 0));
      }
    }
  }
  Tally deletions;
  deletions.delete_failed = 2;
  deletions.delete_skipped = 3;
  CHECK(end_of_tally(deletions).kind == ErrorKind::partial);
  CHECK(end_of_tally(deletions).message == "2 could not be deleted, and --max-delete reached: 0 deleted, 3 not: the rest is done");
}

// Whoever reads it in a history or an event has no lines above it.
TEST_CASE("end_of_tally__only_the_last_line_of_an_output__names_the_lines_above_it") {
  Tally tally;
  tally.files_failed = 1;
  const Error end = end_of_tally(tally);
  CHECK(end.message == "1 file failed: the rest is delivered");
  CHECK(below_its_lines(end).message == "1 file failed: the rest is delivered: see the lines above and run again");
  CHECK(below_its_lines(end).kind == ErrorKind::partial);
  Tally deletions;
  deletions.delete_failed = 1;
  CHECK(below_its_lines(end_of_tally(deletions)).message ==
        "1 could not be deleted: the rest is done: see the lines above and run again");
  const Error other{ErrorKind::network, "the connection was lost: check the network"};
  CHECK(below_its_lines(other).message == other.message);
}

TEST_CASE("pool_buffers__too_little_memory__usage_that_says_how_much") {
  CHECK(pool_buffers(256u << 20) == 63u);
  const auto little = pool_buffers(16u << 20);
  REQUIRE_FALSE(little);
  CHECK(little.error().message.find("17MiB") != std::string::npos);
  CHECK(pool_buffers(17u << 20) == 4u);
}

TEST_CASE("pool_buffers__more_memory_than_the_host_has__usage_that_says_how_much_it_has") {
  const auto much = pool_buffers(uint64_t{1} << 60);
  REQUIRE_FALSE(much);
  CHECK(much.error().kind == ErrorKind::usage);
  CHECK(much.error().message.find("--memory") != std::string::npos);
  CHECK(much.error().message.find("more than this host has") != std::string::npos);
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
