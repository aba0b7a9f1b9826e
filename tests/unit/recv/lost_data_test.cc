// Data that the disk lost: whatever it was, it is fetched again and neither called durable nor published.
#include <catch2/catch.hpp>

#include "app/recv/commit.h"
#include "app/recv/packs.h"
#include "app/recv/pieces.h"
#include "app/recv/syncer.h"
#include "tests/unit/recv/sim_disk_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

struct Rig : SimDiskRig {
  explicit Rig(const sim::FileSystemOptions& disk = {}) : SimDiskRig(disk) { begin(); }
  void fail_once(std::string_view failing) {
    files.set_hook([failing, once = true](std::string_view call, std::string_view name) mutable {
      if (call != failing || !once || name.starts_with("ledger")) return 0;
      once = false;
      return -EIO;
    });
  }
};

std::vector<PackItem> stage(Rig& rig, const std::string& path, const std::string& content) {
  auto task = std::make_shared<FileTask>();
  task->path = path;
  task->key = path_key(path);
  task->size_bytes = content.size();
  std::vector<PackItem> items(1);
  items[0].task = task;
  items[0].content = as_bytes(content);
  stage_pack(*rig.root->opened(), Policy{}, Owner{}, items);
  return items;
}
std::vector<CommitItem> commit(Rig& rig, const PackItem& staged) {
  std::vector<CommitItem> batch(1);
  batch[0].task = staged.task;
  batch[0].staged = staged.staged;
  batch[0].size_bytes = staged.content.size();
  batch[0].mark = staged.mark;
  OpenedRoot& root = *rig.root->opened();
  KnownDirectories directories(rig.files, root.fd, root.staging_identity, root.held_directories);
  commit_batch(root, directories, Policy{}, Owner{}, batch);
  return batch;
}

}  // namespace

TEST_CASE("destination__fsync_fails_after_more_was_written__what_is_not_durable_comes_again") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a');
  rig.announce({file_entry("f", data.size())});
  rig.put_piece(0, part(data, 0));
  const Instant still = rig.session->now;
  for (int i = 0; i < 20; ++i) {  // its sync is not due
    rig.session->turn();
    rig.session->now = still;
  }
  rig.work->held = true;  // the sync of piece 0 waits for its turn
  rig.session->now += sync_interval;
  rig.session->settle(20);
  REQUIRE(rig.work->in_flight() == 1);
  rig.put_piece(1, part(data, 1));
  rig.session->settle(20);
  REQUIRE(rig.work->in_flight() == 2);
  rig.fail_once("fsync");
  SECTION("it was written before the sync ran, and is in no batch") { rig.work->newest_first = true; }
  SECTION("its job still runs when the sync has failed") {}
  rig.work->held = false;
  REQUIRE(rig.session->run([&] { return rig.session->source.resends.size() == 2; }));
  CHECK(rig.asked_again() == std::vector<uint64_t>{0, 1});
  CHECK(rig.root->opened()->ledger->empty());
  rig.put_piece(0, part(data, 0));
  rig.put_piece(1, part(data, 1));
  rig.post_end();
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
  rig.files.crash();
  rig.files.mount();
  CHECK((rig.files.get("/root/f") == data));
}

// Closed in between, the descriptor that would be told is gone.
TEST_CASE("staged_file__written_after_its_sync__stays_open_until_the_next_one") {
  Rig rig;
  FileTask task;
  StagedFile staged(*rig.root->opened(), task, false);
  const size_t before = rig.files.open_descriptors();
  HeldFileRef open;
  REQUIRE(staged.open(open) == 0);
  REQUIRE(staged.write(*open, as_bytes("a"), 0) == 0);
  REQUIRE(staged.sync() == 0);
  staged.let_go();
  CHECK(rig.files.open_descriptors() == before + 1);  // in use
  REQUIRE(staged.write(*open, as_bytes("b"), 1) == 0);
  open.reset();
  staged.let_go();
  CHECK(rig.files.open_descriptors() == before + 1);
  REQUIRE(staged.sync() == 0);
  staged.let_go();
  CHECK(rig.files.open_descriptors() == before);
}

TEST_CASE("commit__syncfs_failed_for_another_session__what_was_staged_before_is_lost_too") {
  Rig rig;
  const auto first = stage(rig, "first", "1");
  const auto second = stage(rig, "second", "2");
  rig.fail_once("syncfs");
  CHECK(commit(rig, first[0])[0].outcome == CommitOutcome::sync_failed);
  CHECK(commit(rig, second[0])[0].outcome == CommitOutcome::sync_failed);
  CHECK_FALSE(rig.files.get("/root/second").has_value());
  const auto third = stage(rig, "third", "3");
  CHECK(commit(rig, third[0])[0].outcome == CommitOutcome::ok);
  rig.files.crash();
  rig.files.mount();
  CHECK(rig.files.get("/root/third") == "3");
}

TEST_CASE("packs__close_fails__the_file_counts_as_not_written") {
  Rig rig;
  rig.fail_once("close");
  CHECK(stage(rig, "f", "1")[0].error_number == EIO);
  CHECK(stage(rig, "f", "1")[0].error_number == 0);
}

TEST_CASE("packs__syncfs_does_not_tell__each_file_is_synced_by_itself") {
  Rig rig({.syncfs_tells = false});
  SECTION("a failure is told") {
    rig.fail_once("fsync");
    CHECK(stage(rig, "f", "1")[0].error_number == EIO);
  }
  SECTION("one of syncfs is not, and nothing is lost") {
    const auto staged = stage(rig, "f", "1");
    rig.files.set_hook([](std::string_view call, std::string_view) { return call == "syncfs" ? -EIO : 0; });
    REQUIRE(commit(rig, staged[0])[0].outcome == CommitOutcome::ok);
    rig.files.crash();
    rig.files.mount();
    CHECK(rig.files.get("/root/f") == "1");
  }
}

TEST_CASE("commit__rename_refused__the_entry_fails_and_its_staged_file_is_kept") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a');
  const std::vector<session::Entry> entries{file_entry("f", data.size())};
  rig.files.put("/root/f", "old");
  rig.files.set_hook([](std::string_view call, std::string_view name) { return call == "rename_at" && name == "f" ? -EPERM : 0; });
  rig.announce(entries);
  rig.put_piece(0, part(data, 0));
  rig.put_piece(1, part(data, 1));
  rig.post_end();
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.results[0].kind == ErrorKind::file_io);
  CHECK(rig.session->source.results[0].error_number == EPERM);
  CHECK(rig.files.get("/root/f") == "old");
  rig.files.set_hook({});
  rig.session.reset();
  rig.root.reset();
  rig.files.crash();
  rig.files.mount();
  rig.root = Root::open(rig.files, "/root", rig.vfs->name()).value();
  rig.begin();
  rig.announce(entries);
  REQUIRE(rig.session->source.verdicts[0] == Verdict::pieces);
  CHECK(rig.session->source.wants[0].empty());
  rig.post_end();
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
  CHECK((rig.files.get("/root/f") == data));
}

// More than the session's queue of messages takes: 4,096, and 64 in reserve.
TEST_CASE("destination__thousands_of_pieces_lost__asked_for_again_as_the_queue_takes_them") {
  constexpr uint64_t count = 4400;
  Rig rig;
  rig.announce({file_entry("f", ~uint64_t{0})});  // of unknown length: a piece of it may have one byte
  rig.work->held = true;
  rig.fail_once("fsync");
  const std::string byte = "x";
  rig.work->held = false;
  const Instant still = rig.session->now;
  for (uint64_t number = 0; number < count; ++number) {
    rig.put_piece(number, as_bytes(byte));
    rig.session->turn();
    rig.session->now = still;  // no sync before all are written
  }
  REQUIRE(rig.session->run([&] { return rig.session->source.resends.size() == count || rig.session->source.aborted; }, 200'000));
  CHECK(rig.session->source.aborted == nullptr);
  CHECK(rig.asked_again().back() == count - 1);
}

TEST_CASE("destination__large_file_with_a_digest_in_its_entry__other_content_is_refused") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a');
  session::Entry entry = file_entry("f", data.size());
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(part(data, 0)), xxh3_128(part(data, 1))});
  bool is_good = true;
  SECTION("the promised content") {}
  SECTION("another") {
    is_good = false;
    entry.digest.high ^= 1;
  }
  rig.announce({entry});
  rig.put_piece(0, part(data, 0));
  rig.put_piece(1, part(data, 1));
  rig.post_end();  // which says nothing of a digest
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.results[0].kind == (is_good ? ErrorKind::ok : ErrorKind::integrity));
  CHECK(rig.files.get("/root/f").has_value() == is_good);
}

TEST_CASE("root__partial_file_of_last_month__kept_for_fourteen_days") {
  Rig rig;
  const Ledger::File file{path_key("f"), 5};
  const Ledger::File gone{path_key("g"), 5};
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{0, {1, 2}}}}, {gone, "g", {{0, {1, 2}}}}}));
  const std::string staged = "/root/.ccixfer/" + staged_name(file.key, file.version);
  rig.files.put(staged, "x", 0600, ports::FileTime{1, 0});  // its mtime is the source's
  const auto open_after = [&](std::chrono::hours time) {
    rig.session.reset();
    rig.root.reset();
    rig.world.at(rig.world.now() + time, [] {});
    rig.world.run_for(time);
    rig.root = Root::open(rig.files, "/root", rig.vfs->name()).value();
  };
  open_after(std::chrono::hours(13 * 24));
  CHECK(rig.files.get(staged).has_value());
  CHECK(rig.root->opened()->ledger->all().value() == std::vector<Ledger::File>{file});  // the row without a file is of no use
  open_after(std::chrono::hours(2 * 24));
  CHECK_FALSE(rig.files.get(staged).has_value());
  CHECK(rig.root->opened()->ledger->empty());
}

TEST_CASE("destination__pieces_cannot_be_noted__ends_and_tells_the_source_why") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a');
  rig.announce({file_entry("f", data.size())});
  rig.files.set_hook([](std::string_view call, std::string_view name) {
    return (call == "fsync" || call == "open") && name.find("ledger") != std::string_view::npos ? -EIO : 0;
  });
  rig.put_piece(0, part(data, 0));
  REQUIRE(rig.session->run([&] { return rig.session->source.aborted != nullptr; }));
  CHECK(rig.session->source.aborted->kind == ErrorKind::file_io);
  CHECK(rig.session->source.durable.bytes == 0);
  CHECK(rig.session->source.results.empty());
}

// A piece that was lost and comes again with other content: then what is there of the file is of another one, and worthless.
TEST_CASE("destination__lost_piece_comes_again_changed__the_file_ends_and_nothing_is_kept") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a'), other = pattern(2 * piece, 'b');
  rig.announce({file_entry("f", data.size())});
  rig.put_piece(0, part(data, 0));
  REQUIRE(rig.session->run([&] { return rig.session->source.durable.bytes == piece; }));
  rig.fail_once("fsync");
  rig.put_piece(1, part(data, 1));
  REQUIRE(rig.session->run([&] { return rig.session->source.resends.size() == 1; }));
  rig.put_piece(1, part(other, 1));
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.results[0].kind == ErrorKind::vanished);
  rig.session->settle();
  CHECK(rig.root->opened()->ledger->empty());
}

TEST_CASE("ledger__a_write_fails_once__the_database_is_opened_again_and_the_rows_are_there") {
  Rig rig;
  const Ledger::File file{path_key("f"), 5};
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{0, {1, 2}}}}}));
  int failures = 1;
  SECTION("once") {}
  SECTION("for good") { failures = 1000; }
  rig.files.set_hook([&](std::string_view call, std::string_view name) {
    return call == "fsync" && name.find("ledger") != std::string_view::npos && failures > 0 ? (--failures, -EIO) : 0;
  });
  const auto added = rig.root->opened()->ledger->add({{file, "f", {{1, {3, 4}}}}});
  CHECK(added.has_value() == (failures == 0));
  CHECK_FALSE(rig.root->opened()->ledger->empty());
  // Whoever asks next, whatever he asks, is answered from what is on the disk, or told that nothing can be.
  const bool stays_broken = failures > 0 && GENERATE(false, true);
  if (stays_broken) rig.files.set_hook([](std::string_view call, std::string_view) { return call == "open" ? -EIO : 0; });
  const auto versions = rig.root->opened()->ledger->versions(file.key);
  CHECK(versions.has_value() != stays_broken);
  if (versions) CHECK(*versions == std::vector<uint64_t>{file.version});
  CHECK(rig.root->opened()->ledger->all().has_value() != stays_broken);
  rig.files.set_hook({});
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{2, {5, 6}}}}}));
  CHECK(rig.root->opened()->ledger->pieces(file).value().size() >= 2);
}

TEST_CASE("ledger__a_write_failed_before__what_is_removed_next_is_gone") {
  Rig rig;
  const Ledger::File file{path_key("f"), 5};
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{0, {1, 2}}}}}));
  rig.files.set_hook([](std::string_view call, std::string_view name) {
    return call == "fsync" && name.find("ledger") != std::string_view::npos ? -EIO : 0;
  });
  REQUIRE_FALSE(rig.root->opened()->ledger->add({{file, "f", {{1, {3, 4}}}}}));
  rig.files.set_hook({});
  REQUIRE(rig.root->opened()->ledger->remove({file}));
  CHECK(rig.root->opened()->ledger->all().value().empty());
  CHECK(rig.root->opened()->ledger->pieces(file).value().empty());
}

TEST_CASE("ledger__no_room__said_so_and_nothing_is_lost_that_was_there") {
  Rig rig;
  const Ledger::File file{path_key("f"), 5};
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{0, {1, 2}}}}}));
  rig.files.set_hook([](std::string_view call, std::string_view name) {
    return call == "pwrite" && name.find("ledger") != std::string_view::npos ? -ENOSPC : 0;
  });
  const auto added = rig.root->opened()->ledger->add({{file, "f", {{1, {3, 4}}}}});
  REQUIRE_FALSE(added);
  CHECK(added.error().kind == ErrorKind::no_space);
  CHECK(added.error().message.find("ledger.db") != std::string::npos);
  CHECK(rig.root->opened()->ledger->remove({file}).error().kind == ErrorKind::no_space);
  rig.files.set_hook({});
  CHECK(rig.root->opened()->ledger->pieces(file).value().size() == 1);
  REQUIRE(rig.root->opened()->ledger->add({{file, "f", {{1, {3, 4}}}}}));
  CHECK(rig.root->opened()->ledger->pieces(file).value().size() == 2);
}

TEST_CASE("deliveries__cannot_be_written__nothing_is_remembered_any_more_and_nothing_fails") {
  Rig rig;
  Deliveries& deliveries = *rig.root->opened()->deliveries;
  const auto file = [](const char* path) { return Deliveries::File{path_key(path), 1, {100, ports::FileTime{1, 5}, 7}}; };
  deliveries.add({1}, 1000, {file("a")});
  REQUIRE_FALSE(deliveries.empty());
  rig.files.set_hook([](std::string_view call, std::string_view name) {
    return (call == "pwrite" || call == "fsync") && name.find("delivered") != std::string_view::npos ? -EIO : 0;
  });
  SECTION("as more come") { deliveries.add({1}, 1000, {file("b")}); }
  SECTION("as a transfer ends") { deliveries.forget({1}, {}); }
  SECTION("as they grow old") { deliveries.expire(1'000'000'000); }
  rig.files.set_hook({});
  CHECK(deliveries.empty());
  CHECK_FALSE(deliveries.find(path_key("a"), 1).has_value());
  deliveries.add({1}, 1000, {file("c")});
  CHECK_FALSE(deliveries.find(path_key("c"), 1).has_value());
  deliveries.abandon();
}

}  // namespace ccixfer::recv
