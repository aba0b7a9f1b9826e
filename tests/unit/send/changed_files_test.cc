// Which files wait for another session, and when they are all that is left.
#include "app/send/changed_files.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::send;
using session::SourceOutcome;

namespace {

struct Files {
  // True: it waits.
  bool refuse(uint64_t index, SourceOutcome outcome) {
    Entry& entry = entries.at(entries.add(index, 0));
    entries.move(entry, EntryPhase::queued);
    entries.move(entry, EntryPhase::reading);
    entries.move(entry, EntryPhase::refused);
    entry.outcome.outcome = outcome;
    return changed.take(entry);
  }
  EntryTable entries;
  ChangedFiles changed{true};
};

}  // namespace

TEST_CASE("changed_files__a_file_that_was_told_as_vanished__has_its_result_before_they_are_left") {
  const SourceOutcome told = GENERATE(SourceOutcome::vanished, SourceOutcome::unreadable);
  Files files;
  REQUIRE(files.refuse(0, SourceOutcome::changed));
  CHECK(files.changed.left(files.entries) == 1);
  REQUIRE_FALSE(files.refuse(1, told));
  CHECK(files.changed.left(files.entries) == 0);
  files.entries.end(*files.entries.find(1));
  CHECK(files.changed.left(files.entries) == 1);
  files.entries.end(*files.entries.find(0));  // the destination found out by itself
  CHECK(files.changed.left(files.entries) == 0);
}

TEST_CASE("changed_files__more_than_may_wait__are_told_and_have_their_results_first") {
  Files files;
  for (uint64_t i = 0; i < ChangedFiles::waiting_max; ++i) REQUIRE(files.refuse(i, SourceOutcome::changed));
  REQUIRE_FALSE(files.refuse(ChangedFiles::waiting_max, SourceOutcome::changed));
  CHECK(files.changed.left(files.entries) == 0);
  files.entries.end(*files.entries.find(ChangedFiles::waiting_max));
  CHECK(files.changed.left(files.entries) == ChangedFiles::waiting_max);
}
