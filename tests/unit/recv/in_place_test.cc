// --inplace: what is written over where it stands, and what an earlier run had staged.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <future>

#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

uint32_t mode_of(const Place& place) { return place.stat_of("f").st_mode & 07777u; }

// Whether it came in pieces or in a pack.
CommitItem deliver(Place& place, const Decision& decision, const std::string& content, bool in_pieces) {
  REQUIRE(decision.task);
  if (!in_pieces) return place.deliver(decision.task, content);
  std::vector<CommitItem> batch(1);
  batch[0].task = decision.task;
  batch[0].size_bytes = content.size();
  batch[0].file =
      std::make_shared<StagedFile>(*place.root->opened(), *decision.task, false, place.directories.get(), place.owner.get());
  HeldFileRef held;
  const int opened = batch[0].file->open(held);
  REQUIRE(opened == 0);
  REQUIRE(batch[0].file->write(*held, as_bytes(content), 0) == 0);
  held.reset();
  commit_batch(*place.root->opened(), *place.directories, place.policy, *place.owner, batch);
  place.root->opened()->claims.release(decision.task->key, place.owner);
  return batch[0];
}

}  // namespace

TEST_CASE("in_place__a_read_only_file_of_an_ordinary_account__is_written_over_and_stays_read_only") {
  const NotRoot account;
  const bool in_pieces = GENERATE(true, false);
  const bool with_modes = GENERATE(true, false);
  INFO((in_pieces ? "in pieces" : "of a pack") << (with_modes ? ", with modes" : ""));
  const uint32_t options = session::option_inplace | session::option_times | (with_modes ? session::option_permissions : 0u);
  Place place(options);
  place.temporary.write("f", "old");
  REQUIRE(::chmod(place.temporary.path("f").c_str(), 0444) == 0);
  const ino_t before = place.stat_of("f").st_ino;
  const std::string content = "another";
  const Decision decision = place.decide_one(file("f", content.size(), 0440));
  REQUIRE(decision.task);
  REQUIRE(decision.task->in_place);
  CHECK(deliver(place, decision, content, in_pieces).outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("f") == content);
  CHECK(place.stat_of("f").st_ino == before);
  CHECK(mode_of(place) == (with_modes ? 0440u : 0444u));
}

TEST_CASE("in_place__without_modes_a_file_that_may_be_written__keeps_its_mode") {
  const bool in_pieces = GENERATE(true, false);
  Place place(session::option_inplace | session::option_times);
  place.temporary.write("f", "old");
  REQUIRE(::chmod(place.temporary.path("f").c_str(), 0640) == 0);
  CHECK(deliver(place, place.decide_one(file("f", 7, 0440)), "another", in_pieces).outcome == CommitOutcome::ok);
  CHECK(mode_of(place) == 0640u);
}

TEST_CASE("in_place__a_read_only_file_that_is_another_one_by_now__is_left_as_it_is") {
  const NotRoot account;
  Place place(session::option_inplace | session::option_times);
  place.temporary.write("f", "old");
  const Decision decision = place.decide_one(file("f", 7, 0440));
  REQUIRE(decision.task);
  place.temporary.write("g", "new");
  REQUIRE(::chmod(place.temporary.path("g").c_str(), 0444) == 0);
  std::filesystem::rename(place.temporary.path("g"), place.temporary.path("f"));
  StagedFile written(*place.root->opened(), *decision.task, false, place.directories.get(), place.owner.get());
  HeldFileRef held;
  CHECK(written.open(held) == -EACCES);
  CHECK(mode_of(place) == 0444u);
}

TEST_CASE("in_place__a_run_that_ended_in_the_middle__leaves_a_read_only_file_read_only") {
  const NotRoot account;
  Place place(session::option_inplace | session::option_times);
  place.temporary.write("f", "old");
  REQUIRE(::chmod(place.temporary.path("f").c_str(), 0444) == 0);
  const Entry entry = file("f", 7, 0644);
  {
    const Decision decision = place.decide_one(entry);
    REQUIRE(decision.task);
    StagedFile written(*place.root->opened(), *decision.task, false, place.directories.get(), place.owner.get());
    HeldFileRef held;
    REQUIRE(written.open(held) == 0);
    REQUIRE(written.write(*held, as_bytes("ano"), 0) == 0);
    CHECK(mode_of(place) == 0444u);
    place.root->opened()->claims.release(decision.task->key, place.owner);
  }
  CHECK(deliver(place, place.decide_one(entry), "another", GENERATE(true, false)).outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("f") == "another");
  CHECK(mode_of(place) == 0444u);
}

// A run without --inplace was interrupted: what it has staged is of no use to one that writes into the file.
TEST_CASE("in_place__what_a_run_had_staged_before__goes_with_its_rows") {
  Place place(archive_options | session::option_inplace);
  place.temporary.write("f", "old");
  const Entry entry = file("f", 2 * piece);
  for (const uint64_t version : {entry.version, entry.version + 1}) {
    const Ledger::File row{path_key("f"), version};
    REQUIRE(place.root->opened()->ledger->add({{row, "f", {{0, {1, 2}}}}}));
    place.temporary.write(".ccixfer/" + staged_name(row.key, row.version), "x");
  }
  const Decision decision = place.decide_one(entry);
  REQUIRE(decision.task);
  REQUIRE(decision.task->in_place);
  CHECK(decision.present.empty());
  CHECK(place.root->opened()->ledger->empty());
  CHECK_FALSE(place.temporary.has(".ccixfer/" + staged_name(path_key("f"), entry.version)));
  CHECK_FALSE(place.temporary.has(".ccixfer/" + staged_name(path_key("f"), entry.version + 1)));
  CHECK(place.temporary.read("f") == "old");
}

// A write of a killed run hangs in the disk, and the next run takes the file over.
TEST_CASE("in_place__another_session_asks_for_the_file__has_it_when_no_write_is_under_way_and_nothing_is_written_after_that") {
  Place place(archive_options | session::option_inplace);
  Claims& claims = place.root->opened()->claims;
  claims.set_patience(std::chrono::milliseconds(0));
  place.temporary.write("f", "old");
  const Decision decision = place.decide_one(file("f", 7));
  REQUIRE(decision.task);
  REQUIRE(decision.task->in_place);
  const Hash128 key = decision.task->key;
  const auto next = std::make_shared<Owner>();
  CommitItem item;
  item.task = decision.task;
  item.size_bytes = 7;
  item.file =
      std::make_shared<StagedFile>(*place.root->opened(), *decision.task, false, place.directories.get(), place.owner.get());
  HeldFileRef held;
  REQUIRE(item.file->open(held) == 0);
  bool is_asked = false;
  place.files.hook = [&](std::string_view call, std::string_view) {
    if (call != "pwrite") return 0;
    place.owner->link_dead.store(true);
    CHECK_FALSE(std::async(std::launch::async, [&] { return claims.take(key, next); }).get());
    is_asked = true;
    return 0;
  };
  CHECK(item.file->write(*held, as_bytes("another"), 0) == 0);
  CHECK(is_asked);
  place.files.hook = nullptr;
  CHECK(claims.take(key, next));
  CHECK(item.file->write(*held, as_bytes("too late"), 0) == -EBUSY);
  CHECK(item.file->make_holes({{0, 1}}, 7) == -EBUSY);
  std::vector<CommitItem> batch{item};
  commit_batch(*place.root->opened(), *place.directories, place.policy, *place.owner, batch);
  CHECK(batch[0].outcome == CommitOutcome::failed);
  CHECK(batch[0].error_number == EBUSY);
  CHECK(place.temporary.read("f") == "another");
  CHECK(place.stat_of("f").st_mtim.tv_nsec != 123'456'789);
}

}  // namespace ccixfer::recv
