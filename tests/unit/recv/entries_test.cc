// Verdicts: where a session's path leads, what is in the way, which directories are open, and what a failure of each call means.
#include "app/recv/entries.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/session/receiver_words.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

struct Watched : Place {
  explicit Watched(uint32_t options = archive_options, const std::string& base = "") : Place(options, base) {}
  ~Watched() { files.hook = nullptr; }
  void fail(std::string_view failing, std::string_view of, int error) {
    files.hook = [=, failing = std::string(failing), of = std::string(of)](std::string_view call, std::string_view name) {
      return call == failing && name == of ? -error : 0;
    };
  }
  Error fatal(const Entry& entry) {
    const DecidedEntries decided = decide({entry});
    REQUIRE(decided.fatal.has_value());
    return *decided.fatal;
  }
  [[nodiscard]] size_t names() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(temporary.path()), {})) - 1;  // but .ccixfer
  }
};

Entry leave(const std::string& path) {
  Entry entry = directory(path);
  entry.type = EntryType::leave;
  return entry;
}

bool says(const Error& error, std::string_view words) { return error.message.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("entries__a_file_with_an_unknown_mandatory_field__it_alone_is_refused") {
  for (const uint32_t options : {archive_options, archive_options | session::option_dry_run}) {
    Watched place(options);
    place.temporary.write("there", "old");
    std::vector<Entry> entries{file("a", 1), file("there", 1), link("to", "a"), file("z", 1)};
    entries[1].unknown_mandatory = entries[2].unknown_mandatory = 0x8007;
    entries[2].target.clear();  // it may stand in the field that is not known
    const DecidedEntries decided = place.decide(entries);
    REQUIRE_FALSE(decided.fatal.has_value());
    REQUIRE(decided.decisions.size() == 4);
    CHECK(decided.decisions[0].verdict == Verdict::send);
    CHECK(decided.decisions[3].verdict == Verdict::send);
    for (const size_t refused : {1u, 2u}) {
      CHECK(decided.decisions[refused].verdict == Verdict::failed);
      CHECK(decided.decisions[refused].error_number == session::errno_of_unknown_field);
      CHECK(decided.decisions[refused].path == entries[refused].path);
      CHECK_FALSE(decided.decisions[refused].task);
    }
    CHECK(place.temporary.read("there") == "old");
    CHECK_FALSE(place.temporary.has("to"));
  }
}

TEST_CASE("entries__a_directory_with_an_unknown_mandatory_field__what_is_in_it_arrives") {
  Watched place;
  std::vector<Entry> entries{directory("d", 0700), file("d/f", 1), leave("d")};
  entries[0].unknown_mandatory = entries[2].unknown_mandatory = 0x8007;
  const DecidedEntries decided = place.decide(entries);
  REQUIRE_FALSE(decided.fatal.has_value());
  CHECK(decided.decisions.at(0).verdict == Verdict::failed);
  CHECK(decided.decisions.at(0).error_number == session::errno_of_unknown_field);
  CHECK(decided.decisions.at(1).verdict == Verdict::send);
  CHECK(decided.decisions.at(2).verdict == Verdict::failed);
  CHECK(decided.decisions.at(2).leave.has_value());
  CHECK(place.temporary.has("d"));
}

TEST_CASE("entries__parents_of_the_session_path_cannot_be_made__ends_with_the_reason") {
  Watched place(archive_options, "a/b/c");
  SECTION("a failure of this directory") {
    place.fail("mkdir_at", "b", EACCES);
    const Error error = place.fatal(file("", 1));
    CHECK(error.kind == ErrorKind::file_io);
    CHECK(says(error, "cannot make the directory a/b: Permission denied"));
    CHECK(place.temporary.has("a"));
  }
  SECTION("no space") {
    place.fail("mkdir_at", "b", ENOSPC);
    CHECK(place.fatal(file("", 1)).kind == ErrorKind::no_space);
  }
  SECTION("a file is in the way") {
    place.temporary.write("a", "x");
    const Error error = place.fatal(file("", 1));
    CHECK(error.kind == ErrorKind::file_io);
    CHECK(says(error, "a/b is not a directory"));
    CHECK(place.temporary.read("a") == "x");
  }
  SECTION("on another file system where it may not be") {
    place.fail("open", "a", EXDEV);
    const Error error = place.fatal(file("", 1));
    CHECK(error.kind == ErrorKind::not_authorised);
    CHECK(says(error, "leaves the receiver's root"));
  }
  SECTION("read-only") {
    place.files.read_only = true;
    const Error error = place.fatal(file("", 1));
    CHECK(error.kind == ErrorKind::file_io);
    CHECK(says(error, "Read-only file system"));
    CHECK(place.names() == 0);
  }
  SECTION("somebody else makes it at the same time") {
    bool once = true;
    place.files.hook = [&](std::string_view call, std::string_view name) {
      if (call == "mkdir_at" && name == "b" && std::exchange(once, false))
        std::filesystem::create_directory(place.temporary.path("a/b"));
      return 0;
    };
    CHECK(place.decide_one(file("", 1)).verdict == Verdict::send);
  }
}

TEST_CASE("entries__parents_of_the_session_path__are_looked_for_once_a_session") {
  Watched place(archive_options, "a/b/c");
  CHECK(place.decide_one(file("", 1)).verdict == Verdict::send);
  std::filesystem::remove_all(place.temporary.path("a"));
  place.files.read_only = true;  // nobody asks any more
  const DecidedEntries decided = place.decide({file("x", 1)});
  CHECK((decided.fatal.has_value() || decided.decisions.at(0).verdict == Verdict::failed));
  CHECK_FALSE(place.temporary.has("a"));  // what is gone in the middle is not made again
}

TEST_CASE("entries__dry_run_through_a_link__not_authorised_and_no_other_error") {
  Watched place(archive_options | session::option_dry_run, "l/x");
  REQUIRE(::symlink("elsewhere", place.temporary.path("l").c_str()) == 0);
  const Error error = place.fatal(directory(""));
  CHECK(error.kind == ErrorKind::not_authorised);
  CHECK(says(error, "l/x passes a symbolic link"));
  Watched absent(archive_options | session::option_dry_run, "no/such");
  CHECK(absent.decide_one(directory("")).verdict == Verdict::make);
}

TEST_CASE("entries__dry_run__destinations_that_the_run_refuses__are_refused_in_its_words") {
  for (const uint32_t dry : {0u, uint32_t{session::option_dry_run}}) {
    CAPTURE(dry);
    Watched file_there(archive_options | session::option_directory | dry, "f");
    file_there.temporary.write("f", "abc");
    const Error error = file_there.fatal(file("x", 1));
    CHECK(error.kind == ErrorKind::file_io);
    CHECK(says(error, "f is not a directory at the receiver"));
  }
}

TEST_CASE("entries__one_file_that_is_sent_to_a_link__refused_if_it_leads_to_a_directory__else_it_replaces_it") {
  for (const uint32_t dry : {0u, uint32_t{session::option_dry_run}}) {
    CAPTURE(dry);
    const auto sent_to = [&](const char* target) {
      Watched place(archive_options | dry, "d/l");
      std::filesystem::create_directories(place.temporary.path("d/in"));
      std::filesystem::create_directories(place.temporary.path("beside"));
      place.temporary.write("d/f", "abc");
      REQUIRE(::symlink(target, place.temporary.path("d/l").c_str()) == 0);
      Entry one = file("", 1);
      one.name = "n";
      DecidedEntries decided = place.decide({one});
      if (!decided.fatal) return decided.decisions.at(0).verdict == Verdict::send;
      CHECK(decided.fatal->kind == ErrorKind::not_authorised);
      CHECK(says(*decided.fatal, "d/l passes a symbolic link"));
      return false;
    };
    CHECK_FALSE(sent_to("in"));
    CHECK_FALSE(sent_to("./in/"));
    CHECK_FALSE(sent_to("../beside"));
    CHECK(sent_to("f"));
    CHECK(sent_to("nowhere"));
    CHECK(sent_to("/"));
    CHECK(sent_to("../../outside"));
  }
}

// Only what would stand there after the real run may be missing now.
TEST_CASE("entries__dry_run_below_a_directory_that_may_not_be_opened__failed_as_it_would_be") {
  Watched place(archive_options | session::option_dry_run);
  std::filesystem::create_directory(place.temporary.path("d"));
  for (const int error : {EACCES, EMFILE, EIO}) {
    CAPTURE(error);
    place.fail("open", "d", error);
    const DecidedEntries decided = place.decide({file("d/f", 1)});
    CHECK((decided.fatal.has_value() || decided.decisions.at(0).verdict == Verdict::failed));
  }
}

TEST_CASE("entries__the_root_itself__is_entered_as_a_directory_and_no_file_takes_its_place") {
  Watched place;
  CHECK(place.decide_one(directory("")).verdict == Verdict::done);
  CHECK(place.decide_one(leave("")).leave.has_value());
  const Error error = place.fatal(file("", 1));
  CHECK(error.kind == ErrorKind::file_io);
  CHECK(says(error, "give the file a name"));
  Watched dry(archive_options | session::option_dry_run);
  CHECK_FALSE(dry.decide_one(leave("")).leave.has_value());
}

// More than the kernel takes in one call, and longer still by the session's own path.
TEST_CASE("entries__path_at_the_limit__is_made_like_any_other") {
  Watched place;
  std::string path;
  std::vector<session::Entry> entries{directory("")};
  while (path.size() + 102 < session::path_bytes_max) {
    path.append(99, 'd');
    entries.push_back(directory(path));
    path += '/';
  }
  path += std::string(session::path_bytes_max - path.size(), 'f');
  REQUIRE(path.size() == session::path_bytes_max);
  entries.push_back(file(path, 1));
  const DecidedEntries decided = place.decide(entries);
  CHECK_FALSE(decided.fatal);
  CHECK(decided.decisions.back().verdict == Verdict::send);
}

TEST_CASE("entries__directories_left__each_once_and_with_what_was_listed_of_it") {
  Watched place;
  ::mkdir(place.temporary.path("b").c_str(), 0755);
  place.decide({directory(""), directory("a", 0711), directory("a/x", 0722), leave("a/x"), leave("a"), directory("b", 0733),
                directory("bb", 0744)});
  CHECK_FALSE(place.decide_one(leave("a")).leave.has_value());  // it was left
  CHECK_FALSE(place.decide_one(leave("b")).leave.has_value());  // the walk has gone on beside it
  const Decision inner = place.decide_one(leave("bb"));
  REQUIRE(inner.leave.has_value());
  CHECK(inner.leave->path == "bb");
  CHECK(inner.leave->first_index == 6);
  CHECK(inner.leave->leave_index == 9);
  CHECK(inner.leave->made);
  CHECK_FALSE(inner.leave->unlocked);
  CHECK(inner.leave->attributes.mode == 0744);
  const Decision outer = place.decide_one(leave(""));
  REQUIRE(outer.leave.has_value());
  CHECK(outer.leave->first_index == 0);
  CHECK_FALSE(outer.leave->made);
  CHECK_FALSE(place.decide_one(leave("")).leave.has_value());
}

TEST_CASE("entries__outer_directory_left_before_the_inner__what_is_in_it_is_left_with_it") {
  Watched place;
  place.decide({directory("a"), directory("a/b"), directory("a/b/c")});
  REQUIRE(place.decide_one(leave("a/b")).leave.has_value());
  CHECK_FALSE(place.decide_one(leave("a/b/c")).leave.has_value());
  CHECK(place.decide_one(leave("a")).leave.has_value());
}

TEST_CASE("entries__directory_that_lets_nobody_write__is_unlocked_and_its_mode_is_known") {
  const NotRoot account;
  for (const uint32_t mode : {0500u, 0300u, 0600u, 0700u, 02500u}) {
    Watched place;
    ::mkdir(place.temporary.path("d").c_str(), 0755);
    ::chmod(place.temporary.path("d").c_str(), mode);
    place.files.given.clear();
    place.decide({directory("d")});
    const bool was_locked = (mode & 0700u) != 0700;
    CHECK((place.stat_of("d").st_mode & 07777u) == (mode | 0700u));
    CHECK(place.files.given.size() == (was_locked ? 1 : 0));
    const Decision decision = place.decide_one(leave("d"));
    REQUIRE(decision.leave.has_value());
    CHECK(decision.leave->unlocked == was_locked);
    CHECK(decision.leave->mode_before == mode);
    CHECK_FALSE(decision.leave->made);
  }
}

TEST_CASE("entries__directory_that_may_not_be_unlocked__is_entered_all_the_same") {
  const NotRoot account;
  Watched place;
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  ::chmod(place.temporary.path("d").c_str(), 0555);
  place.fail("set_mode", "", EPERM);
  CHECK(place.decide_one(directory("d")).verdict == Verdict::done);
  const Decision decision = place.decide_one(leave("d"));
  REQUIRE(decision.leave.has_value());
  CHECK_FALSE(decision.leave->unlocked);
}

TEST_CASE("entries__a_call_fails__that_entry_has_failed_or_the_session_ends") {
  struct Row {
    std::string_view call;
    std::string name;
    Entry entry;
  };
  const std::vector<Row> rows{{"stat_at", "d", directory("d")},         {"mkdir_at", "d", directory("d")},
                              {"unlink_at", "file", directory("file")}, {"stat_at", "l", link("l", "x")},
                              {"symlink_at", "", link("l", "x")},       {"rename_at", "l", link("l", "x")},
                              {"stat_at", "f", file("f", 1)},           {"read_directory", "", link("empty", "x")},
                              {"read_directory", "", file("empty", 1)}, {"open", "empty", link("empty", "x")}};
  for (const Row& row : rows) {
    for (const int error : {ENXIO, ENOSPC}) {
      INFO(row.call << " " << row.name << " " << error);
      Watched place;
      place.temporary.write("file", "precious");
      std::filesystem::create_directory(place.temporary.path("empty"));
      const std::string beside = staged_beside_name(path_key("l"));
      place.fail(row.call, row.call == "symlink_at" ? beside : row.name, error);
      const DecidedEntries decided = place.decide({row.entry, file("other", 1)});
      place.files.hook = nullptr;
      // A disk that is full is so for all; but nothing was to be written where it was only looked at.
      const bool writes = row.call == "mkdir_at" || row.call == "unlink_at" || row.call == "symlink_at" || row.call == "rename_at";
      if (writes && error == ENOSPC) {
        REQUIRE(decided.fatal.has_value());
        CHECK(decided.fatal->kind == ErrorKind::no_space);
        CHECK(says(*decided.fatal, row.entry.path));
      } else {
        REQUIRE(decided.decisions.size() == 2);
        CHECK(decided.decisions[0].verdict == Verdict::failed);
        CHECK(decided.decisions[0].error_number == error);
        CHECK(decided.decisions[1].verdict == Verdict::send);
      }
      CHECK(place.temporary.read("file") == "precious");
      CHECK(place.names() == 2);
    }
  }
}

// A link is made under another name, and takes its own with one rename.
TEST_CASE("entries__link_in_an_empty_directorys_place__replaces_it_however_rename_refuses") {
  const int refusal = GENERATE(EISDIR, ENOTEMPTY, EEXIST);
  Watched place;
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  int renames = 0;
  place.files.hook = [&](std::string_view call, std::string_view) { return call == "rename_at" && ++renames == 1 ? -refusal : 0; };
  SECTION("it is replaced") {
    CHECK(place.decide_one(link("d", "x")).verdict == Verdict::done);
    CHECK(std::filesystem::read_symlink(place.temporary.path("d")) == "x");
  }
  SECTION("it was filled meanwhile") {
    auto before = place.files.hook;
    place.files.hook = [&, before](std::string_view call, std::string_view name) {
      if (call == "rename_at" && renames == 0) place.temporary.write("d/precious", "x");
      return before(call, name);
    };
    CHECK(place.decide_one(link("d", "x")).error_number == ENOTEMPTY);
    CHECK(place.temporary.read("d/precious") == "x");
  }
  CHECK(place.names() == 1);
  CHECK(renames <= 2);
}

TEST_CASE("entries__what_an_interrupted_run_left_of_a_link__is_taken_away_first") {
  Watched place;
  place.temporary.write(staged_beside_name(path_key("l")), "x");
  CHECK(place.decide_one(link("l", "there")).verdict == Verdict::done);
  CHECK(std::filesystem::read_symlink(place.temporary.path("l")) == "there");
  CHECK(place.names() == 1);
}

TEST_CASE("entries__link_whose_target_cannot_be_read__is_replaced") {
  Watched place;
  REQUIRE(::symlink("x", place.temporary.path("l").c_str()) == 0);
  const auto inode = place.stat_of("l").st_ino;
  CHECK(place.decide_one(link("l", "x")).verdict == Verdict::done);
  CHECK(place.stat_of("l").st_ino == inode);
  CHECK(place.decide_one(link("l", "xy")).verdict == Verdict::done);
  CHECK(place.stat_of("l").st_ino != inode);
}

// Its name came from the command line: as likely a slip as a wish.
TEST_CASE("entries__session_path_that_is_something_else__is_not_replaced") {
  for (const std::string what : {"file", "link"}) {
    for (const uint32_t dry : {uint32_t{0}, uint32_t{session::option_dry_run}}) {
      Watched place(archive_options | dry, what);
      place.temporary.write("file", "precious");
      REQUIRE(::symlink("file", place.temporary.path("link").c_str()) == 0);
      const Error error = place.fatal(directory(""));
      CHECK(error.kind == (what == "link" ? ErrorKind::not_authorised : ErrorKind::file_io));
      CHECK(place.temporary.read("file") == "precious");
      CHECK(std::filesystem::is_symlink(place.temporary.path("link")));
    }
  }
}

TEST_CASE("entries__file_of_an_impossible_length__fails_and_the_longest_may_come") {
  Watched place;
  CHECK(place.decide_one(file("a", file_bytes_max)).verdict == Verdict::send);
  CHECK(place.decide_one(file("b", file_bytes_max + 1)).error_number == EOVERFLOW);
  CHECK(place.decide_one(file("c", size_unknown)).verdict == Verdict::send);
}

TEST_CASE("entries__a_file_asked_for__its_task_says_all_that_was_listed") {
  Watched place;
  Entry entry = file("f", 7, 04751);
  entry.uid = 11;
  entry.gid = 12;
  entry.has_digest = true;
  entry.digest = {3, 4};
  place.decide_one(directory("d"));
  const Decision decision = place.decide_one(entry);
  CHECK(decision.path == "f");
  CHECK(decision.size_bytes == 7);
  CHECK(decision.version == entry.version);
  REQUIRE(decision.task);
  CHECK(decision.task->index == 1);
  CHECK(decision.task->path == "f");
  CHECK(decision.task->key == path_key("f"));
  CHECK(decision.task->size_bytes == 7);
  CHECK(decision.task->version == entry.version);
  CHECK(decision.task->attributes.mode == 04751);
  CHECK(decision.task->attributes.uid == 11);
  CHECK(decision.task->attributes.gid == 12);
  CHECK(decision.task->attributes.mtime == entry.mtime);
  CHECK(decision.task->has_digest);
  CHECK(decision.task->digest == entry.digest);
  CHECK(place.decide_one(directory("e")).size_bytes == 0);
}

TEST_CASE("entries__in_place__a_program_with_the_rights_of_its_owner_is_not_written_to_by_who_may_not_make_one") {
  const auto [mode, setid, in_place] = GENERATE(
      table<uint32_t, bool, bool>({{04755, false, false}, {02755, false, false}, {0755, false, true}, {04755, true, true}}));
  Place place(archive_options | session::option_inplace);
  place.policy.setid = setid;
  place.temporary.write("f", "old");
  REQUIRE(::chmod(place.temporary.path("f").c_str(), mode) == 0);
  EntryDecider decider(*place.root->opened(), *place.directories, place.policy, "", place.owner, place.linked);
  const DecidedEntries decided = decider.decide({file("f", 3)}, 0);
  REQUIRE(decided.decisions.size() == 1);
  REQUIRE(decided.decisions[0].task);
  CHECK(decided.decisions[0].task->in_place == in_place);
}

TEST_CASE("entries__delivered_before_without_times__only_that_untouched_version_stays") {
  Watched place(session::option_recursive);
  place.deliver(place.decide_one(file("f", 3)).task, "abc");
  CHECK(place.decide_one(file("f", 3)).verdict == Verdict::unchanged);
  CHECK(place.decider.taken_over().size() == 1);
  const auto verdict = [&](const Entry& entry, uint32_t options) {
    EntryDecider decider(*place.root->opened(), *place.directories, {options, 022, 0, 0}, "", place.owner, place.linked);
    DecidedEntries decided = decider.decide({entry}, place.next_index++);
    place.root->opened()->claims.release_all(place.owner);
    CHECK(decider.taken_over().size() == (decided.decisions.at(0).verdict == Verdict::unchanged ? 1 : 0));
    return decided.decisions.at(0).verdict;
  };
  CHECK(verdict(file("f", 3), session::option_recursive) == Verdict::unchanged);
  CHECK(verdict(file("f", size_unknown), session::option_recursive) == Verdict::send);
  CHECK(verdict(file("f", 3), session::option_times) == Verdict::send);
  CHECK(verdict(file("f", 3), session::option_checksum) == Verdict::send);
  Entry other = file("f", 3);
  ++other.version;
  CHECK(verdict(other, session::option_recursive) == Verdict::send);
  place.temporary.write("f", "abcd");
  CHECK(verdict(file("f", 3), session::option_recursive) == Verdict::send);
}

TEST_CASE("entries__the_ledger_fails__the_session_ends") {
  Watched place;
  const Ledger::File row{path_key("f"), 4};
  REQUIRE(place.root->opened()->ledger->add({{row, "f", {{0, {1, 2}}}}}));
  place.temporary.write(".ccixfer/" + staged_name(row.key, row.version), "x");
  CHECK(place.decide_one(file("f", 3)).verdict == Verdict::send);  // another version: of no use any more
  CHECK_FALSE(place.temporary.has(".ccixfer/" + staged_name(row.key, row.version)));
  CHECK(place.root->opened()->ledger->empty());
}

// It was there in the ledger, and is not on the disk.
TEST_CASE("entries__partial_file_whose_bytes_are_gone__is_sent_whole_and_its_row_goes") {
  Watched place;
  const Ledger::File row{path_key("f"), 5};
  REQUIRE(place.root->opened()->ledger->add({{row, "f", {{0, {1, 2}}}}}));
  const Decision decision = place.decide_one(file("f", GENERATE(as<uint64_t>(), 3, size_unknown)));
  CHECK(decision.verdict == Verdict::send);
  CHECK(decision.wants.empty());
  CHECK(decision.present.empty());
  CHECK(place.root->opened()->ledger->empty());
}

TEST_CASE("entries__root_was_moved__before_or_meanwhile__interrupted_and_no_verdict_is_told") {
  Watched place;
  const std::string moved = place.temporary.path() + "-moved";
  const bool before = GENERATE(true, false);
  if (before) {
    std::filesystem::rename(place.temporary.path(), moved);
  } else {
    place.files.hook = [&](std::string_view call, std::string_view name) {
      if (call == "stat_at" && name == "g") std::filesystem::rename(place.temporary.path(), moved);
      return 0;
    };
  }
  const DecidedEntries decided = place.decide({file("f", 1), file("g", 1)});
  std::filesystem::rename(moved, place.temporary.path());
  REQUIRE(decided.fatal.has_value());
  CHECK(decided.fatal->kind == ErrorKind::interrupted);
  CHECK(decided.decisions.size() == (before ? 0 : 2));
}

TEST_CASE("entries__decided_again_and_again__no_descriptor_is_left_open") {
  Watched place(archive_options | session::option_checksum);
  place.temporary.write("full/x", "x");
  std::filesystem::create_directory(place.temporary.path("empty"));
  place.temporary.write("f", "abc");
  Entry same = file("f", 3, 0600);
  same.has_digest = true;
  same.digest = session::file_digest({xxh3_128(as_bytes("abc"))});
  Entry other = same;
  other.digest.low ^= 1;
  const auto decide_all = [&] {
    place.decide({file("full", 1), file("empty", 1), link("full", "x"), same, other, directory("d"), leave("d")});
    place.root->opened()->claims.release_all(place.owner);
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  decide_all();
  const auto once = decide_all();
  for (int i = 0; i < 5; ++i) CHECK(decide_all() == once);
}

TEST_CASE("fatal_error__kinds_and_words") {
  CHECK(fatal_error(ESTALE, "").kind == ErrorKind::interrupted);
  CHECK(says(fatal_error(ESTALE, ""), "its root"));
  CHECK(says(fatal_error(ESTALE, "a/b\n"), "a/b%0A"));
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) CHECK(fatal_error(error, "f").kind == ErrorKind::no_space);
  for (const int error : {EROFS, EIO}) CHECK(fatal_error(error, "f").kind == ErrorKind::file_io);
  CHECK(says(fatal_error(EIO, "f\n"), "cannot write f%0A: Input/output error"));
}

}  // namespace ccixfer::recv
