// An administrator moves, removes and replaces directories, between transfers and during one.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/rig.h"

namespace ccixfer::recv {

using session::EntryType;
using session::Verdict;
using namespace test;
namespace fs = std::filesystem;

namespace {

const DestinationOptions archive_options{.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};

// The root is a directory of the temporary one; "archive" stands beside it.
// Each case runs with descriptors to keep directories open, and without: then a directory is known by its generation.
struct Ground : Rig {
  explicit Ground(const DestinationOptions& wanted = archive_options) : Rig(wanted, 1, "root", GENERATE(size_t{1024}, size_t{0})) {
    fs::create_directory(temporary.path("archive"));
  }
  void move(const std::string& from, const std::string& to) const { fs::rename(temporary.path(from), temporary.path(to)); }
  void make(const std::string& path) const { fs::create_directory(temporary.path(path)); }
  [[nodiscard]] size_t names_in(const std::string& path) const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temporary.path(path)), {}));
  }
  // run/ with one file in it, delivered whole.
  void deliver(const std::string& name, const std::string& content) {
    announce({directory_entry(""), directory_entry("run"), file_entry("run/" + name, content.size()),
              directory_entry("run", EntryType::leave), directory_entry("", EntryType::leave)});
    if (source().verdicts[2] == Verdict::send) {
      source().put_pack({{2, content}});
      REQUIRE(run_until_result(2));
      CHECK(source().results[2].kind == ErrorKind::ok);
    }
    finish(5);
  }
  void expect_interrupted() {
    REQUIRE(session->run([&] { return source().aborted != nullptr || source().summary != nullptr; }));
    CHECK(source().summary == nullptr);
    REQUIRE(source().aborted != nullptr);
    CHECK(source().aborted->kind == ErrorKind::interrupted);
    CHECK(source().aborted->message.find("moved, removed or replaced") != std::string::npos);
  }
};

}  // namespace

TEST_CASE("directories__moved_between_transfers__the_next_goes_to_where_the_path_leads") {
  Ground ground;
  ground.deliver("a", "abc");
  ground.move("root/run", "archive/run");
  SECTION("a new one stands there") { ground.make("root/run"); }
  SECTION("nothing stands there") {}
  ground.again();
  SECTION("another file") {
    ground.deliver("b", "abcd");
    CHECK(ground.temporary.read("root/run/b") == "abcd");
  }
  SECTION("the same file") {
    ground.deliver("a", "abc");
    CHECK(ground.temporary.read("root/run/a") == "abc");
  }
  CHECK(ground.names_in("archive/run") == 1);
}

TEST_CASE("directories__removed_between_transfers__made_anew") {
  Ground ground;
  ground.deliver("a", "abc");
  fs::remove_all(ground.temporary.path("root/run"));
  ground.again();
  ground.deliver("a", "abc");
  CHECK(ground.temporary.read("root/run/a") == "abc");
}

TEST_CASE("directories__moved_after_the_verdict__interrupted_and_nothing_is_written_there") {
  Ground ground;
  ground.announce({directory_entry(""), directory_entry("run"), file_entry("run/a", 3)});
  ground.move("root/run", "archive/run");
  SECTION("gone") {}
  SECTION("a new one in its place") { ground.make("root/run"); }
  SECTION("a link in its place") { fs::create_symlink(ground.temporary.path("archive/run"), ground.temporary.path("root/run")); }
  SECTION("a file in its place") { ground.temporary.write("root/run", "x"); }
  ground.source().put_pack({{2, "abc"}});
  ground.expect_interrupted();
  CHECK(ground.source().results.empty());
  CHECK(ground.names_in("archive/run") == 0);
}

TEST_CASE("directories__made_anew_after_the_verdict__interrupted_whatever_its_inode") {
  Ground ground;
  ground.announce({directory_entry(""), directory_entry("run"), file_entry("run/a", 3)});
  fs::remove(ground.temporary.path("root/run"));
  ground.make("root/run");
  ground.source().put_pack({{2, "abc"}});
  ground.expect_interrupted();
  CHECK(ground.source().results.empty());
}

TEST_CASE("directories__moved_while_files_are_renamed_into_it__none_counts_as_delivered") {
  Ground ground;
  const bool large = GENERATE(false, true);
  const auto data = pattern(large ? piece + 1 : 3, 3);
  ground.announce({directory_entry(""), directory_entry("run"), file_entry("run/a", data.size())});
  ground.files.hook = [&ground](std::string_view call, std::string_view name) {
    if (call != "rename_at" || name != "a") return 0;
    ground.move("root/run", "archive/run");
    ground.make("root/run");
    return 0;
  };
  if (large) {
    ground.put_piece(2, 0, Bytes(data).first(piece));
    ground.put_piece(2, 1, Bytes(data).subspan(piece));
    ground.session->source_link->post(end_of(2));
  } else {
    ground.source().put_pack({{2, hex_free(data)}});
  }
  ground.expect_interrupted();
  CHECK(ground.source().results.empty());
}

TEST_CASE("directories__moved_while_verdicts_are_made__none_of_them_is_told") {
  Ground ground;
  ground.deliver("a", "abc");
  ground.again();
  ground.files.hook = [&ground, once = true](std::string_view call, std::string_view name) mutable {
    if (call != "stat_at" || name != "a" || !once) return 0;
    once = false;
    ground.move("root/run", "archive/run");
    return 0;
  };
  ground.source().put_entries({directory_entry(""), directory_entry("run"), file_entry("run/a", 3)}, 0, 0);
  ground.expect_interrupted();
  CHECK(ground.source().verdicts.empty());
}

TEST_CASE("directories__moved_after_the_last_delivery_before_the_summary__interrupted") {
  Ground ground;
  std::vector<session::Entry> entries{directory_entry(""),
                                      directory_entry("run"),
                                      directory_entry("run/empty"),
                                      directory_entry("run/empty", EntryType::leave),
                                      file_entry("run/a", 3),
                                      directory_entry("run", EntryType::leave),
                                      directory_entry("", EntryType::leave)};
  ground.announce(entries);
  ground.source().put_pack({{4, "abc"}});
  REQUIRE(ground.run_until_result(4));
  ground.session->settle();
  SECTION("the directory") { ground.move("root/run", "archive/run"); }
  SECTION("an empty one in it") { fs::remove(ground.temporary.path("root/run/empty")); }
  SECTION("the root") {
    ground.move("root", "archive/root");
    ground.make("root");
  }
  ground.session->source_link->post(session::End{entries.size()});
  ground.expect_interrupted();
  ground.files.hook = nullptr;
  // The source begins again, and finds what lacks.
  ground.again();
  ground.announce(entries);
  if (ground.source().verdicts[4] == Verdict::send) ground.source().put_pack({{4, "abc"}});
  REQUIRE(ground.session->run(
      [&] { return ground.session->destination->tally().files + ground.session->destination->tally().files_unchanged == 1; }));
  ground.finish(entries.size());
  CHECK(ground.temporary.read("root/run/a") == "abc");
  CHECK(ground.temporary.has("root/run/empty"));
}

TEST_CASE("directories__root_made_anew_under_a_daemon__the_next_transfer_goes_there") {
  Ground ground;
  ground.deliver("a", "abc");
  ground.move("root", "archive/root");
  ground.again();
  SECTION("made anew") {
    ground.make("root");
    ground.source().put_entries({directory_entry("")}, 0, 0);
    ground.expect_interrupted();  // found out by the first session; the dialler begins another
    ground.again();
    ground.deliver("a", "abc");
    CHECK(ground.temporary.read("root/run/a") == "abc");
    CHECK_FALSE(ground.temporary.has("archive/root/.ccixfer"));
    ground.session.reset();
    ground.root.reset();
    CHECK_FALSE(ground.temporary.has("root/.ccixfer"));
  }
  SECTION("not made anew: it is said what lacks") {
    ground.source().put_entries({directory_entry("")}, 0, 0);
    ground.expect_interrupted();
    ground.session.reset();
    ground.session = std::make_unique<Session>(*ground.root, ground.work, ground.options);
    REQUIRE(ground.session->run([&] { return ground.source().aborted != nullptr; }));
    CHECK(ground.source().aborted->kind == ErrorKind::file_io);
    CHECK(ground.source().aborted->message.find("cannot open the directory") != std::string::npos);
  }
  SECTION("back in its place: it goes on") {
    ground.source().put_entries({directory_entry("")}, 0, 0);
    ground.expect_interrupted();
    ground.move("archive/root", "root");
    ground.again();
    ground.deliver("b", "abcd");
    CHECK(ground.temporary.read("root/run/b") == "abcd");
  }
}

TEST_CASE("directories__staging_removed_under_a_daemon__made_anew_for_the_next_session") {
  Ground ground;
  const auto data = pattern(2 * piece, 3);
  SECTION("between transfers") {
    ground.deliver("a", "abc");
    fs::remove_all(ground.temporary.path("root/.ccixfer"));
    ground.again();
    ground.source().put_entries({directory_entry("")}, 0, 0);
  }
  SECTION("a small file is to be staged") {
    ground.announce({directory_entry(""), file_entry("a", 3)});
    fs::remove_all(ground.temporary.path("root/.ccixfer"));
    ground.source().put_pack({{1, "abc"}});
  }
  SECTION("pieces are staged") {
    ground.announce({directory_entry(""), file_entry("a", data.size())});
    ground.put_piece(1, 0, Bytes(data).first(piece));
    ground.session->settle(20);
    fs::remove_all(ground.temporary.path("root/.ccixfer"));
    ground.put_piece(1, 1, Bytes(data).subspan(piece));
  }
  SECTION("a large file is to be renamed") {
    ground.announce({directory_entry(""), file_entry("a", data.size())});
    for (const uint64_t i : {0u, 1u}) ground.put_piece(1, i, Bytes(data).subspan(i * piece, piece));
    ground.files.hook = [&ground](std::string_view call, std::string_view name) {
      if (call == "rename_at" && name == "a") fs::remove_all(ground.temporary.path("root/.ccixfer"));
      return 0;
    };
    ground.session->source_link->post(end_of(1));
  }
  ground.expect_interrupted();
  CHECK(ground.source().results.empty());
  ground.files.hook = nullptr;
  ground.again();
  ground.deliver("a", "abc");
  CHECK(ground.temporary.read("root/run/a") == "abc");
  ground.session.reset();
  ground.root.reset();
  CHECK_FALSE(ground.temporary.has("root/.ccixfer"));
}

TEST_CASE("directories__more_than_are_remembered__looked_at_before_they_are_forgotten") {
  Ground ground;
  OpenedRoot& root = *ground.root->opened();
  KnownDirectories known(ground.files, root.fd, root.staging_identity, root.held_directories, 3);
  const auto enter = [&](const std::string& name) {
    ground.make("root/" + name);
    HeldDirectoryRef held;
    KnownDirectories::Seen seen;
    REQUIRE(known.open(name, seen, held) == 0);
  };
  for (const char* name : {"a", "b", "c"}) enter(name);
  CHECK(known.left("a") == 0);
  CHECK(known.left("b") == 0);
  enter("d");
  SECTION("they are forgotten") {
    CHECK(known.left("c") == 0);
    ground.move("root/a", "archive/a");
    std::string which;
    CHECK(known.look({"a"}, which) == 0);
    CHECK(known.look_at_all(which) == 0);
    ground.move("root/d", "archive/d");  // is not left yet
    CHECK(known.look_at_all(which) == -ESTALE);
    CHECK(which == "d");
  }
  SECTION("one of them was moved") {
    ground.move("root/a", "archive/a");
    CHECK(known.left("c") == -ESTALE);
  }
}

namespace {

size_t open_descriptors() { return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {})); }

// A root below which `names` stand.
struct Shelf : Rig {
  Shelf(size_t descriptors_max, const std::vector<std::string>& names) : Rig(archive_options, 1, "", descriptors_max) {
    for (const std::string& name : names) fs::create_directories(temporary.path(name));
    session.reset();
    known = std::make_unique<KnownDirectories>(files, root->opened()->fd, root->opened()->staging_identity,
                                               root->opened()->held_directories);
  }
  ~Shelf() { known.reset(); }
  // As another job would.
  int open(const std::string& path) const {
    KnownDirectories::Seen seen;
    HeldDirectoryRef held;
    return known->open(path, seen, held);
  }
  // How many were opened.
  size_t opens(const std::function<void()>& then) {
    size_t count = 0;
    files.hook = [&count](std::string_view call, std::string_view) {
      if (call == "open") ++count;
      return 0;
    };
    then();
    files.hook = nullptr;
    return count;
  }
  std::unique_ptr<KnownDirectories> known;
};

}  // namespace

TEST_CASE("directories_held__another_job_uses_one__is_not_opened_again") {
  Shelf shelf(1024, {"a/b"});
  CHECK(shelf.opens([&] { CHECK(shelf.open("a/b") == 0); }) == 1);
  CHECK(shelf.opens([&] { CHECK(shelf.open("a/b") == 0); }) == 1);  // "a", to look where it leads now
  REQUIRE(shelf.open("a") == 0);
  CHECK(shelf.opens([&] { CHECK(shelf.open("a/b") == 0); }) == 0);
  fs::rename(shelf.temporary.path("a"), shelf.temporary.path("c"));
  fs::create_directories(shelf.temporary.path("a/b"));
  CHECK(shelf.open("a/b") == -ESTALE);
  shelf.known->forget("a");
  CHECK(shelf.open("a/b") == 0);
}

TEST_CASE("directories_held__more_than_may_be__those_used_longest_ago_are_closed") {
  Shelf shelf(32, {"a", "b", "c"});  // a quarter for all, a quarter of that for a session: two
  const size_t before = open_descriptors();
  for (const char* name : {"a", "b", "a", "c"}) REQUIRE(shelf.open(name) == 0);
  CHECK(open_descriptors() == before + 2);
  CHECK(shelf.root->opened()->held_directories.taken() == 2);
  CHECK(shelf.opens([&] { CHECK(shelf.open("a") == 0); }) == 0);
  CHECK(shelf.opens([&] { CHECK(shelf.open("c") == 0); }) == 0);
  CHECK(shelf.opens([&] { CHECK(shelf.open("b") == 0); }) == 1);
  CHECK(shelf.opens([&] { CHECK(shelf.open("a") == 0); }) == 1);
  SECTION("at the end all are") { shelf.known.reset(); }
  SECTION("what was forgotten too") { shelf.known->forget(""); }
  CHECK(open_descriptors() == before);
  CHECK(shelf.root->opened()->held_directories.taken() == 0);
}

TEST_CASE("directories_held__other_sessions_have_them_all__opened_by_each_job") {
  Shelf shelf(32, {"a", "b", "c", "d"});
  OpenedRoot& root = *shelf.root->opened();
  while (root.held_directories.take()) {
  }
  const size_t before = open_descriptors();
  for (int i = 0; i < 2; ++i) CHECK(shelf.opens([&] { CHECK(shelf.open("a") == 0); }) == 1);
  CHECK(open_descriptors() == before);
  fs::remove(shelf.temporary.path("a"));
  fs::create_directory(shelf.temporary.path("a"));  // may have its number
  CHECK(shelf.open("a") == -ESTALE);
  root.held_directories.give(1);
  CHECK(shelf.open("b") == 0);
  CHECK(open_descriptors() == before + 1);
  for (const char* name : {"c", "d"}) CHECK(shelf.open(name) == 0);  // takes the place of the one before
  CHECK(open_descriptors() == before + 1);
  fs::remove(shelf.temporary.path("b"));
  fs::create_directory(shelf.temporary.path("b"));
  CHECK(shelf.open("b") == -ESTALE);
  shelf.known.reset();
  root.held_directories.give(7);
  CHECK(root.held_directories.taken() == 0);
}

TEST_CASE("directories_held__one_that_may_not_be_read__is_known_all_the_same") {
  Shelf shelf(1024, {"a"});
  shelf.files.hook = [](std::string_view call, std::string_view) { return call == "open" ? -EACCES : 0; };
  REQUIRE(shelf.known->remember(shelf.root->opened()->fd, "a", "a") == 0);
  shelf.files.hook = nullptr;
  std::string which;
  CHECK(shelf.known->look({"a"}, which) == 0);
  fs::remove(shelf.temporary.path("a"));
  fs::create_directory(shelf.temporary.path("a"));
  CHECK(shelf.known->look({"a"}, which) == -ESTALE);
  CHECK(which == "a");
}

// '-' comes before '/', so "a-b" stands between "a" and what is in it.
TEST_CASE("directories_held__any_one_of_many_is_made_anew__a_pass_over_all_names_it") {
  const std::vector<std::string> names = {"a", "a-b", "a-b/c", "a/b", "a/b-c", "a/b/c", "a/b/d", "a/c", "ab", "b", "b/c/d"};
  const size_t descriptors_max = GENERATE(0u, 32u, 4096u);  // of a session: none is held, two, or all
  const std::string moved = GENERATE_COPY(from_range(names));
  INFO(moved << ", " << descriptors_max);
  Shelf shelf(descriptors_max, names);
  for (const std::string& name : names) REQUIRE(shelf.open(name) == 0);
  std::string which;
  REQUIRE(shelf.known->look_at_all(which) == 0);
  // Another directory of that name, with the same directories in it: only the one itself is another.
  fs::rename(shelf.temporary.path(moved), shelf.temporary.path("away"));
  fs::create_directory(shelf.temporary.path(moved));
  for (const auto& entry : fs::directory_iterator(shelf.temporary.path("away")))
    fs::rename(entry.path(), fs::path(shelf.temporary.path(moved)) / entry.path().filename());
  CHECK(shelf.known->look_at_all(which) == -ESTALE);
  CHECK(which == moved);
}

TEST_CASE("directories_held__a_directory_above_that_no_one_asked_for_is_moved__what_is_in_it_is_elsewhere") {
  Shelf shelf(4096, {"a/b/c"});
  REQUIRE(shelf.open("a/b") == 0);  // held, and not among those that are looked at
  REQUIRE(shelf.open("a/b/c") == 0);
  fs::rename(shelf.temporary.path("a/b"), shelf.temporary.path("a/away"));
  fs::create_directory(shelf.temporary.path("a/b"));
  fs::rename(shelf.temporary.path("a/away/c"), shelf.temporary.path("a/b/c"));
  std::string which;
  CHECK(shelf.known->look({"a/b/c"}, which) == -ESTALE);
}

TEST_CASE("directories_held__a_path_that_leads_elsewhere__is_told_from_a_disk_that_fails") {
  for (const bool known_before : {true, false}) {
    for (const int error : {ENOENT, ENOTDIR, ELOOP, EXDEV, ESTALE, EACCES, EIO}) {
      INFO((known_before ? "known, " : "new, ") << std::strerror(error));
      Shelf shelf(0, {"a/b"});  // none is held: each is opened by its path
      if (known_before) REQUIRE(shelf.open("a/b") == 0);
      shelf.files.hook = [&](std::string_view call, std::string_view) { return call == "open" ? -error : 0; };
      const bool elsewhere = error != EACCES && error != EIO;
      CHECK(shelf.open("a/b") == (known_before && elsewhere ? -ESTALE : -error));
      if (!known_before) continue;
      std::string which;  // its parent cannot be opened
      CHECK(shelf.known->look({"a/b"}, which) == (elsewhere ? -ESTALE : -error));
      shelf.files.hook = [&](std::string_view call, std::string_view) {
        return call == "identify" || call == "stat_at" ? -error : 0;
      };
      CHECK(shelf.known->look({"a/b"}, which) == (elsewhere ? -ESTALE : -error));
    }
  }
}

TEST_CASE("directories_held__identity_cannot_be_read__an_error_and_not_taken_for_known") {
  for (const bool known_before : {false, true}) {
    Shelf shelf(0, {"a"});  // none is held: one that is known is known by its generation
    if (known_before) REQUIRE(shelf.open("a") == 0);
    const char* call_of_it = known_before ? "identify" : "fstat";
    shelf.files.hook = [&](std::string_view call, std::string_view) { return call == call_of_it ? -EIO : 0; };
    CHECK(shelf.open("a") == -EIO);
    shelf.files.hook = nullptr;
    CHECK(shelf.open("a") == 0);
  }
}

TEST_CASE("directories_held__no_descriptor_is_left__they_are_closed_and_it_is_tried_again") {
  Shelf shelf(1024, {"a", "b"});
  REQUIRE(shelf.open("a") == 0);
  const int error = GENERATE(-EMFILE, -ENFILE);
  bool for_ever = false;
  shelf.files.hook = [&](std::string_view call, std::string_view name) {
    const bool fails = call == "open" && name == "b" && (for_ever || shelf.root->opened()->held_directories.taken() > 0);
    return fails ? error : 0;
  };
  CHECK(shelf.open("b") == 0);
  CHECK(shelf.root->opened()->held_directories.taken() == 1);
  for_ever = true;
  shelf.known->forget("b");
  CHECK(shelf.open("b") == error);
  shelf.files.hook = nullptr;
  fs::remove(shelf.temporary.path("a"));
  fs::create_directory(shelf.temporary.path("a"));
  CHECK(shelf.open("a") == -ESTALE);  // known by its generation since it was closed
}

}  // namespace ccixfer::recv
