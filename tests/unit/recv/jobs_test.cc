// What jobs do to a real directory: verdicts, packs, commits.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint32_t archive = archive_options;

}  // namespace

TEST_CASE("root__opened_and_closed__leaves_no_trace") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  struct stat before {
  }, after{};
  ::stat(temporary.path().c_str(), &before);
  {
    auto root = Root::open(files, temporary.path());
    REQUIRE(root);
    CHECK(temporary.has(".ccixfer/ledger.db"));
  }
  ::stat(temporary.path().c_str(), &after);
  CHECK_FALSE(temporary.has(".ccixfer"));
  CHECK(before.st_mtim.tv_sec == after.st_mtim.tv_sec);
  CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

TEST_CASE("root__not_a_directory_or_absent__file_io") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  temporary.write("file", "x");
  CHECK(Root::open(files, temporary.path("file")).error().kind == ErrorKind::file_io);
  CHECK(Root::open(files, temporary.path("absent")).error().kind == ErrorKind::file_io);
}

TEST_CASE("root__staging_is_a_symlink__refused") {
  TemporaryDirectory temporary;
  TemporaryDirectory elsewhere;
  FaultyFiles files;
  REQUIRE(::symlink(elsewhere.path().c_str(), temporary.path(".ccixfer").c_str()) == 0);
  CHECK_FALSE(Root::open(files, temporary.path()));
  CHECK(std::filesystem::is_empty(elsewhere.path()));
}

TEST_CASE("root__stray_staged_files__removed_at_open") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  temporary.write(".ccixfer/0123.part", "x");
  temporary.write(".ccixfer/0123.part.share", "x");
  temporary.write(".ccixfer/7.tmp", "x");
  auto root = Root::open(files, temporary.path()).value();
  CHECK_FALSE(temporary.has(".ccixfer/0123.part"));
  CHECK_FALSE(temporary.has(".ccixfer/0123.part.share"));
  CHECK_FALSE(temporary.has(".ccixfer/7.tmp"));
}

TEST_CASE("entries__new_tree__made_and_asked_for") {
  Place place;
  const auto decided = place.decide({directory("d", 0555), file("d/f", 3), link("d/l", "../../etc"), file("empty", 0)});
  REQUIRE(decided.decisions.size() == 4);
  CHECK(decided.decisions[0].verdict == Verdict::done);
  CHECK((place.stat_of("d").st_mode & 0700u) == 0700);  // writable as long as we write in it
  CHECK(decided.decisions[1].verdict == Verdict::send);
  CHECK(decided.decisions[2].verdict == Verdict::done);
  CHECK(std::filesystem::read_symlink(place.temporary.path("d/l")) == "../../etc");
  CHECK(decided.decisions[3].verdict == Verdict::send);
  const CommitItem item = place.deliver(decided.decisions[1].task, "abc");
  CHECK(item.outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("d/f") == "abc");
  Entry leave = directory("d", 0555);
  leave.type = EntryType::leave;
  const Decision left = place.decide_one(leave);
  REQUIRE(left.leave.has_value());
  CHECK(left.leave->first_index == 0);
  const auto outcomes = apply_leaves(*place.root->opened(), *place.directories, place.policy, *place.owner, {*left.leave});
  CHECK(outcomes[0].error_number == 0);
  CHECK((place.stat_of("d").st_mode & 07777u) == 0555);
  CHECK(place.stat_of("d").st_mtim.tv_nsec == 123'456'789);
  ::chmod(place.temporary.path("d").c_str(), 0755);
}

TEST_CASE("leaves__read_only_directory_that_was_there__its_mode_comes_back") {
  const NotRoot account;
  Place place(session::option_recursive);  // without -p its mode is its own
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  ::chmod(place.temporary.path("d").c_str(), 0555);
  const auto decided = place.decide({directory("d", 0700), file("d/f", 1)});
  CHECK((place.stat_of("d").st_mode & 07777u) == 0755);
  CHECK(place.deliver(decided.decisions.at(1).task, "x").outcome == CommitOutcome::ok);
  const Decision left = place.decide_one([] {
    Entry leave = directory("d", 0700);
    leave.type = EntryType::leave;
    return leave;
  }());
  REQUIRE(left.leave.has_value());
  CHECK(apply_leaves(*place.root->opened(), *place.directories, place.policy, *place.owner, {*left.leave}).at(0).error_number == 0);
  CHECK((place.stat_of("d").st_mode & 07777u) == 0555);
  ::chmod(place.temporary.path("d").c_str(), 0755);
}

TEST_CASE("leaves__of_a_session_that_has_lost_its_paths__give_directories_nothing") {
  Place place;
  place.decide_one(directory("d", 0700));
  Entry leave = directory("d", 0700);
  leave.type = EntryType::leave;
  const Decision left = place.decide_one(leave);
  REQUIRE(left.leave.has_value());
  place.owner->lost.store(true);
  const auto outcomes = apply_leaves(*place.root->opened(), *place.directories, place.policy, *place.owner, {*left.leave});
  CHECK(outcomes.at(0).error_number == EBUSY);
  CHECK(place.stat_of("d").st_mtim.tv_nsec != 123'456'789);
}

TEST_CASE("entries__same_size_and_mtime__unchanged_and_mode_brought_up_to_date") {
  Place place;
  place.deliver(place.decide_one(file("f", 3)).task, "abc");
  CHECK(place.decide_one(file("f", 3, 0600)).verdict == Verdict::unchanged);
  CHECK((place.stat_of("f").st_mode & 07777u) == 0600);
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::send);
}

TEST_CASE("entries__without_times__sent_again_once_the_transfer_has_ended") {
  Place place(session::option_recursive);
  place.deliver(place.decide_one(file("f", 3)).task, "abc");
  CHECK(place.decide_one(file("f", 3)).verdict == Verdict::unchanged);
  place.root->opened()->deliveries->forget({}, {});
  CHECK(place.decide_one(file("f", 3)).verdict == Verdict::send);
}

TEST_CASE("entries__checksum__content_decides") {
  Place place(archive | session::option_checksum);
  place.temporary.write("f", "abc");
  Entry entry = file("f", 3);
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes("abc"))});
  CHECK(place.decide_one(entry).verdict == Verdict::unchanged);
  CHECK(place.stat_of("f").st_mtim.tv_nsec == 123'456'789);
  place.temporary.write("f", "abd");
  CHECK(place.decide_one(entry).verdict == Verdict::send);
}

TEST_CASE("entries__another_type_in_the_way__as_the_rules_say") {
  Place place;
  place.temporary.write("full/x", "x");
  ::mkdir(place.temporary.path("empty").c_str(), 0755);
  place.temporary.write("file", "x");
  CHECK(place.decide_one(file("full", 1)).verdict == Verdict::failed);
  CHECK(place.temporary.read("full/x") == "x");
  const Decision over_empty = place.decide_one(file("empty", 1));
  REQUIRE(over_empty.verdict == Verdict::send);
  CHECK(place.temporary.has("empty"));  // until the rename
  CHECK(place.deliver(over_empty.task, "y").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("empty") == "y");
  CHECK(place.decide_one(directory("file")).verdict == Verdict::done);
  CHECK(std::filesystem::is_directory(place.temporary.path("file")));
  CHECK(place.decide_one(link("full", "x")).verdict == Verdict::failed);
  CHECK(place.decide_one(link("empty", "x")).verdict == Verdict::done);
  CHECK(std::filesystem::is_symlink(place.temporary.path("empty")));
}

TEST_CASE("entries__directory_filled_after_the_verdict__stays_and_the_file_fails") {
  Place place;
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  const Decision decision = place.decide_one(file("d", 1));
  REQUIRE(decision.verdict == Verdict::send);
  place.temporary.write("d/precious", "x");
  CHECK(place.deliver(decision.task, "y").outcome == CommitOutcome::failed);
  CHECK(place.temporary.read("d/precious") == "x");
}

TEST_CASE("entries__through_a_symlink__fails_and_writes_nothing_outside") {
  TemporaryDirectory outside;
  Place place;
  REQUIRE(::symlink(outside.path().c_str(), place.temporary.path("l").c_str()) == 0);
  const auto decided =
      place.decide({file("l/f", 1), directory("l/d"), link("l/x", "y"), link("evil", outside.path()), file("evil/f", 1)});
  REQUIRE(decided.decisions.size() == 5);
  for (const size_t i : {0u, 1u, 2u, 4u}) CHECK(decided.decisions[i].verdict == Verdict::failed);
  CHECK(std::filesystem::is_empty(outside.path()));
}

TEST_CASE("entries__parent_flipped_to_a_symlink_during_the_write__nothing_outside") {
  TemporaryDirectory outside;
  Place place;
  const auto decided = place.decide({directory("d"), file("d/f", 1)});
  ::rename(place.temporary.path("d").c_str(), place.temporary.path("d2").c_str());
  REQUIRE(::symlink(outside.path().c_str(), place.temporary.path("d").c_str()) == 0);
  CHECK(place.deliver(decided.decisions[1].task, "x").outcome == CommitOutcome::failed);
  CHECK(std::filesystem::is_empty(outside.path()));
  CHECK(std::filesystem::is_empty(place.temporary.path("d2")));
}

TEST_CASE("entries__session_path_through_a_symlink__not_authorised") {
  TemporaryDirectory outside;
  for (const std::string& base : {std::string("l/sub/x"), std::string("l")}) {
    Place place(archive, base);
    REQUIRE(::symlink(outside.path().c_str(), place.temporary.path("l").c_str()) == 0);
    const auto decided = place.decide({directory("")});
    REQUIRE(decided.fatal.has_value());
    CHECK(decided.fatal->kind == ErrorKind::not_authorised);
    CHECK(std::filesystem::is_empty(outside.path()));
  }
}

TEST_CASE("entries__session_path__parents_made_and_last_part_is_the_name") {
  Place place(archive, "a/b/c");
  CHECK(place.deliver(place.decide_one(file("", 1)).task, "x").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("a/b/c") == "x");
}

TEST_CASE("entries__session_path_is_a_directory__a_nameless_file_is_refused_with_words") {
  Place place(archive, "a");
  ::mkdir(place.temporary.path("a").c_str(), 0755);
  const auto decided = place.decide({file("", 1)});
  REQUIRE(decided.fatal.has_value());
  CHECK(decided.fatal->message.find("is a directory") != std::string::npos);
}

TEST_CASE("entries__session_path_is_a_directory__one_thing_with_a_name_comes_into_it") {
  const std::string base = GENERATE(as<std::string>(), "a", "");
  Place place(archive, base);
  ::mkdir(place.temporary.path("a").c_str(), 0755);
  session::Entry entry = file("", 1);
  entry.name = "own";
  const std::string at = base.empty() ? "own" : "a/own";
  CHECK(place.deliver(place.decide_one(entry).task, "x").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read(at) == "x");
  session::Entry link = entry;
  link.type = EntryType::symlink;
  link.name = "link";
  link.target = "own";
  CHECK(place.decide_one(link).verdict == Verdict::done);
  CHECK(place.temporary.read(base.empty() ? "link" : "a/link") == "x");
}

TEST_CASE("entries__session_path_is_no_directory__it_is_the_new_name") {
  Place place(archive, "a");
  session::Entry entry = file("", 1);
  entry.name = "own";
  CHECK(place.deliver(place.decide_one(entry).task, "x").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("a") == "x");
  CHECK(place.decide_one(entry).path == "a");  // a file stands there now
}

TEST_CASE("entries__own_name_is_reserved__refused_in_a_directory_only") {
  Place place(archive, "a");
  session::Entry entry = file("", 1);
  entry.name = ".ccixfer";
  CHECK(place.decide_one(entry).verdict == Verdict::send);
  Place in_directory(archive, "");
  CHECK(in_directory.decide_one(entry).error_number == EPERM);
}

TEST_CASE("entries__option_directory__made_if_absent") {
  Place place(archive | session::option_directory, "a/b");
  CHECK(place.deliver(place.decide_one(file("f", 1)).task, "x").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("a/b/f") == "x");
}

TEST_CASE("entries__long_reserved_or_duplicate_names__fail_and_others_go_on") {
  Place place;
  const auto decided =
      place.decide({file(std::string(256, 'n'), 1), file(".ccixfer/ledger.db", 1), file("f", 1), file("f", 1), file("g", 1)});
  REQUIRE(decided.decisions.size() == 5);
  CHECK(decided.decisions[0].error_number == ENAMETOOLONG);
  CHECK(decided.decisions[1].error_number == EPERM);
  CHECK(decided.decisions[2].verdict == Verdict::send);
  CHECK(decided.decisions[3].error_number == EBUSY);
  CHECK(decided.decisions[4].verdict == Verdict::send);
}

TEST_CASE("entries__sizes_at_the_ends__fail_but_do_not_wrap") {
  Place place;
  CHECK(place.decide_one(file("a", ~uint64_t{0} - 1)).verdict == Verdict::failed);
  CHECK(place.decide_one(file("b", ~uint64_t{0})).verdict == Verdict::send);  // unknown: standard input
}

TEST_CASE("entries__dry_run__nothing_is_made") {
  Place place(archive | session::option_dry_run, "base");
  const auto decided = place.decide({directory(""), directory("d"), file("d/f", 1), link("l", "x")});
  REQUIRE(decided.decisions.size() == 4);
  CHECK(decided.decisions[1].verdict == Verdict::make);
  CHECK(decided.decisions[2].verdict == Verdict::send);
  CHECK(decided.decisions[2].task == nullptr);
  CHECK(decided.decisions[3].verdict == Verdict::make);
  CHECK_FALSE(place.temporary.has("base"));
}

// What stands there is replaced by the directory before what is in it is written.
TEST_CASE("entries__dry_run_below_a_link_or_file__that_a_directory_replaces") {
  Place place(archive | session::option_dry_run, "");
  std::filesystem::create_directory(place.temporary.path() + "/other");
  std::filesystem::create_symlink("other", place.temporary.path() + "/d");
  std::ofstream(place.temporary.path() + "/e") << "a file";
  const auto decided = place.decide({directory("d"), file("d/f", 1), directory("e"), directory("e/g"), link("e/l", "x")});
  REQUIRE(decided.decisions.size() == 5);
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}, size_t{4}}) CHECK(decided.decisions[i].verdict == Verdict::make);
  CHECK(decided.decisions[1].verdict == Verdict::send);
  CHECK(std::filesystem::is_symlink(place.temporary.path() + "/d"));
}

TEST_CASE("entries__no_space_or_read_only__ends_the_session") {
  FaultyFiles files;
  for (const int error : {ENOSPC, EDQUOT, EROFS}) {
    Place place(archive, "", &files);
    files.hook = [error](std::string_view call, std::string_view name) { return call == "mkdir_at" && name == "d" ? -error : 0; };
    const auto decided = place.decide({directory("d")});
    REQUIRE(decided.fatal.has_value());
    CHECK(decided.fatal->kind == (error == EROFS ? ErrorKind::file_io : ErrorKind::no_space));
    files.hook = nullptr;
  }
}

TEST_CASE("packs__short_writes__looped") {
  FaultyFiles files;
  files.write_max = 7;
  Place place(archive, "", &files);
  const std::string content(1000, 'q');
  CHECK(place.deliver(place.decide_one(file("f", content.size())).task, content).outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("f") == content);
}

TEST_CASE("packs__modes__by_umask_or_exact") {
  {
    Place place(session::option_recursive);
    place.deliver(place.decide_one(file("f", 1, 06777)).task, "x");
    CHECK((place.stat_of("f").st_mode & 07777u) == (0777u & ~place.policy.umask));
  }
  Place place;
  place.deliver(place.decide_one(file("f", 1, 04711)).task, "x");
  CHECK((place.stat_of("f").st_mode & 07777u) == 04711);
}

TEST_CASE("packs__foreign_owner_that_we_may_not_give__no_setuid") {
  FaultyFiles files;
  files.hook = [](std::string_view call, std::string_view) { return call == "set_owner" ? -EPERM : 0; };
  Place place(archive, "", &files);
  Entry entry = file("f", 1, 04755);
  entry.uid += 1;
  place.deliver(place.decide_one(entry).task, "x");
  CHECK((place.stat_of("f").st_mode & 07777u) == 0755);
}

TEST_CASE("commit__rename_across_file_systems__copied_beside_the_target") {
  FaultyFiles files;
  bool once = true;
  files.hook = [&once](std::string_view call, std::string_view) {
    const bool fault = call == "rename_at" && once;
    if (fault) once = false;
    return fault ? -EXDEV : 0;
  };
  Place place(archive, "", &files);
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  CHECK(place.deliver(place.decide_one(file("d/f", 3, 0640)).task, "abc").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("d/f") == "abc");
  CHECK((place.stat_of("d/f").st_mode & 07777u) == 0640);
  CHECK(place.stat_of("d/f").st_mtim.tv_nsec == 123'456'789);
  CHECK(std::distance(std::filesystem::directory_iterator(place.temporary.path("d")), {}) == 1);
}

// Whoever waits for a job hears between two calls of the disk that it gets somewhere: none of many, or of many MiB, is taken for
// one that does not answer.
TEST_CASE("jobs__of_many_calls__tell_of_each_that_they_got_there") {
  FaultyFiles files;
  Place place(archive, "", &files);
  const Owner& owner = *place.owner;
  uint64_t seen = 0;  // steps at the last call of the kind
  unsigned calls = 0, moved = 0;
  const auto watch = [&](std::string_view kind) {
    seen = owner.steps.load(), calls = moved = 0;
    files.hook = [&, kind](std::string_view call, std::string_view) {
      if (call == kind) {
        ++calls;
        moved += owner.steps.load() > seen ? 1u : 0u;
        seen = owner.steps.load();
      }
      return 0;
    };
  };
  SECTION("entries") {
    watch("stat_at");
    CHECK(place.decide({file("a", 1), file("b", 1), file("c", 1)}).decisions.size() == 3);
    CHECK(moved >= 3);
  }
  SECTION("files of a pack") {
    std::vector<PackItem> items(3);
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].task = place.decide_one(file("f" + std::to_string(i), 1)).task;
      items[i].content = as_bytes("x");
    }
    place.root->opened()->syncfs_tells = false;
    watch("fsync");
    stage_pack(*place.root->opened(), place.policy, owner, items);
    CHECK(calls == 3);
    CHECK(moved == 3);
    std::vector<CommitItem> batch(3);
    for (size_t i = 0; i < items.size(); ++i) {
      batch[i].task = items[i].task;
      batch[i].staged = items[i].staged;
      batch[i].size_bytes = 1;
    }
    watch("rename_at");
    commit_batch(*place.root->opened(), *place.directories, place.policy, owner, batch);
    CHECK(calls == 3);
    CHECK(moved == 3);
  }
  SECTION("a copy across file systems") {
    const std::string content(5u << 20, 'x');
    const Decision decision = place.decide_one(file("large", content.size()));
    std::vector<PackItem> items(1);
    items[0].task = decision.task;
    items[0].content = as_bytes(content);
    stage_pack(*place.root->opened(), place.policy, owner, items);
    std::vector<CommitItem> batch(1);
    batch[0].task = decision.task;
    batch[0].staged = items[0].staged;
    batch[0].size_bytes = content.size();
    int renames = 0;
    watch("pwrite");
    const auto counted = files.hook;
    files.hook = [&, counted](std::string_view call, std::string_view name) {
      if (call == "rename_at" && name == "large" && renames++ == 0) return -EXDEV;
      return counted(call, name);
    };
    commit_batch(*place.root->opened(), *place.directories, place.policy, owner, batch);
    CHECK(batch[0].outcome == CommitOutcome::ok);
    CHECK(calls == 5);
    CHECK(moved == 5);
  }
  SECTION("directories that are left") {
    std::vector<Leave> leaves;
    for (const char* name : {"d", "e", "f"}) {
      CHECK(place.decide_one(directory(name)).verdict == Verdict::done);
      Entry end = directory(name);
      end.type = EntryType::leave;
      leaves.push_back(*place.decide_one(end).leave);
    }
    watch("set_mtime");
    for (const LeaveOutcome& outcome : apply_leaves(*place.root->opened(), *place.directories, place.policy, owner, leaves))
      CHECK(outcome.error_number == 0);
    CHECK(calls == 3);
    CHECK(moved == 3);
  }
  files.hook = nullptr;
}

TEST_CASE("commit__syncfs_fails__data_counts_as_lost_and_the_old_file_stays") {
  FaultyFiles files;
  Place place(archive, "", &files);
  place.temporary.write("f", "old");
  const Decision decision = place.decide_one(file("f", 5));
  files.hook = [](std::string_view call, std::string_view) { return call == "syncfs" ? -EIO : 0; };
  CHECK(place.deliver(decision.task, "newer").outcome == CommitOutcome::sync_failed);
  CHECK(place.temporary.read("f") == "old");
}

TEST_CASE("commit__lost_to_another_session__touches_nothing") {
  Place place;
  const Decision decision = place.decide_one(file("f", 1));
  place.owner->link_dead.store(true);
  const auto other = std::make_shared<Owner>();
  REQUIRE(place.root->opened()->claims.take(decision.task->key, other));
  CHECK(place.owner->lost.load());
  CHECK(place.deliver(decision.task, "x").outcome == CommitOutcome::failed);
  CHECK_FALSE(place.temporary.has("f"));
  CHECK_FALSE(place.root->opened()->claims.take(decision.task->key, place.owner));  // the other one lives
}

TEST_CASE("pieces__two_jobs_write_one_file__take_turns_only_where_the_file_system_does") {
  const bool in_turn = GENERATE(true, false);
  constexpr int writes = 200;
  Place place;
  place.root->opened()->one_writer_a_file = in_turn;
  const Decision decision = place.decide_one(file("big", 3 * uint64_t{session::piece_bytes}));
  const auto staged = std::make_shared<StagedFile>(*place.root->opened(), *decision.task, false);
  HeldFileRef open;
  REQUIRE(staged->open(open) == 0);
  std::atomic<int> inside = 0;
  std::atomic<int> most_inside = 0;
  std::atomic<int> written = 0;
  std::barrier both(2);
  place.files.writing = [&] {
    const int here = ++inside;
    if (here > most_inside) most_inside = here;
    if (in_turn) {
      for (int i = 0; i < 20; ++i) std::this_thread::yield();  // whoever may come in does
    } else {
      both.arrive_and_wait();  // nobody leaves before the other is here
    }
    --inside;
  };
  const auto write = [&](char content, uint64_t from) {
    const std::vector<std::byte> data(64, static_cast<std::byte>(content));
    for (uint64_t i = 0; i < writes; ++i) written += staged->write(*open, data, from + i * data.size()) == 0 ? 1 : 0;
  };
  std::thread other(write, 'b', session::piece_bytes);
  write('a', 0);
  other.join();
  CHECK(written == 2 * writes);
  CHECK(most_inside == (in_turn ? 1 : 2));
  CHECK(place.temporary.read(".ccixfer/" + staged->name()).substr(session::piece_bytes) == std::string(writes * 64, 'b'));
}

TEST_CASE("pieces__resume__damaged_staged_piece_is_asked_for_again") {
  constexpr uint64_t size_bytes = 2 * uint64_t{session::piece_bytes} + 100;
  Place place;
  const Decision decision = place.decide_one(file("big", size_bytes));
  REQUIRE(decision.verdict == Verdict::send);
  const auto staged = std::make_shared<StagedFile>(*place.root->opened(), *decision.task, false);
  std::vector<Ledger::Piece> pieces;
  for (uint64_t piece = 0; piece < 3; ++piece) {
    const std::vector<std::byte> data(static_cast<size_t>(piece_length(size_bytes, piece)), static_cast<std::byte>(piece + 1));
    HeldFileRef open;
    REQUIRE(staged->open(open) == 0);
    REQUIRE(write_all(place.files, open->fd(), data, piece * session::piece_bytes) == 0);
    if (piece != 1) pieces.push_back({piece, xxh3_128(data)});
  }
  std::vector<SyncFile> batch(1);
  batch[0].task = decision.task;
  batch[0].staged = staged;
  batch[0].pieces = pieces;
  REQUIRE_FALSE(sync_pieces(*place.root->opened(), *place.owner, batch).has_value());
  place.root->opened()->claims.release(decision.task->key, place.owner);

  SECTION("undamaged: the missing piece only") {
    const Decision again = place.decide_one(file("big", size_bytes));
    REQUIRE(again.verdict == Verdict::pieces);
    REQUIRE(again.wants.size() == 1);
    CHECK(again.wants[0].first == 1);
    CHECK(again.wants[0].count == 1);
    CHECK(again.present.size() == 2);
  }
  SECTION("a flipped bit: that piece too") {
    const int fd = ::open(place.temporary.path(".ccixfer/" + staged->name()).c_str(), O_RDWR);
    char byte = 0;
    REQUIRE(::pread(fd, &byte, 1, 77) == 1);
    byte = static_cast<char>(byte ^ 1);
    REQUIRE(::pwrite(fd, &byte, 1, 77) == 1);
    ::close(fd);
    const Decision again = place.decide_one(file("big", size_bytes));
    REQUIRE(again.verdict == Verdict::pieces);
    REQUIRE(again.wants.size() == 1);
    CHECK(again.wants[0].first == 0);
    CHECK(again.wants[0].count == 2);
  }
  SECTION("another version: everything, and the old staging is gone") {
    Entry other = file("big", size_bytes);
    other.version = 6;
    CHECK(place.decide_one(other).verdict == Verdict::send);
    CHECK_FALSE(place.temporary.has(".ccixfer/" + staged->name()));
    CHECK(place.root->opened()->ledger->empty());
  }
}

TEST_CASE("pieces__fsync_fails__not_in_the_ledger") {
  FaultyFiles files;
  Place place(archive, "", &files);
  const Decision decision = place.decide_one(file("big", 3 * uint64_t{session::piece_bytes}));
  std::vector<SyncFile> batch(1);
  batch[0].task = decision.task;
  batch[0].staged = std::make_shared<StagedFile>(*place.root->opened(), *decision.task, false);
  batch[0].pieces = {{0, {1, 2}}};
  bool once = true;
  files.hook = [&once](std::string_view call, std::string_view) {
    const bool fault = call == "fsync" && once;
    if (fault) once = false;
    return fault ? -EIO : 0;
  };
  REQUIRE_FALSE(sync_pieces(*place.root->opened(), *place.owner, batch).has_value());
  CHECK(batch[0].error_number == EIO);
  CHECK(place.root->opened()->ledger->empty());
}

}  // namespace ccixfer::recv
