// An administrator moves, removes and replaces directories, between transfers and during one.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "app/recv/root.h"
#include "tests/unit/recv/rig.h"

namespace ccixfer::recv {

using session::EntryType;
using session::Verdict;
using namespace test;
namespace fs = std::filesystem;

namespace {

const DestinationOptions archive_options{.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};

// The root is a directory of the temporary one; "archive" stands beside it.
struct Ground : Rig {
  explicit Ground(const DestinationOptions& wanted = archive_options) : Rig(wanted, 1, "root") {
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

TEST_CASE("directories__removed_and_made_anew_after_the_verdict__interrupted_whatever_its_inode_number") {
  Ground ground;
  ground.announce({directory_entry(""), directory_entry("run"), file_entry("run/a", 3)});
  fs::remove(ground.temporary.path("root/run"));
  ground.make("root/run");
  ground.source().put_pack({{2, "abc"}});
  ground.expect_interrupted();
  CHECK(ground.source().results.empty());
}

TEST_CASE("directories__moved_while_files_are_renamed_into_it__none_of_them_is_told_as_delivered") {
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

TEST_CASE("directories__moved_after_everything_was_delivered_and_before_the_summary__interrupted") {
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
      [&] { return ground.session->destination->totals().files + ground.session->destination->totals().files_unchanged == 1; }));
  ground.finish(entries.size());
  CHECK(ground.temporary.read("root/run/a") == "abc");
  CHECK(ground.temporary.has("root/run/empty"));
}

TEST_CASE("directories__root_moved_and_made_anew_while_the_daemon_runs__the_next_transfer_goes_to_the_new_one") {
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

TEST_CASE("directories__staging_removed_under_a_running_daemon__made_anew_for_the_next_session") {
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
  Root::Impl& root = *ground.root->impl;
  KnownDirectories known(ground.files, root.fd, root.staging_identity, 3);
  const auto enter = [&](const std::string& name) {
    ground.make("root/" + name);
    HeldFileRef held;
    REQUIRE(known.open(name, held) == 0);
  };
  for (const char* name : {"a", "b", "c"}) enter(name);
  CHECK(known.left("a") == 0);
  CHECK(known.left("b") == 0);
  enter("d");
  SECTION("they are forgotten") {
    CHECK(known.left("c") == 0);
    ground.move("root/a", "archive/a");
    CHECK(known.check("a") == 0);
    std::string which;
    CHECK(known.check_all(which) == 0);
    ground.move("root/d", "archive/d");  // is not left yet
    CHECK(known.check_all(which) == -ESTALE);
    CHECK(which == "d");
  }
  SECTION("one of them was moved") {
    ground.move("root/a", "archive/a");
    CHECK(known.left("c") == -ESTALE);
  }
}

}  // namespace ccixfer::recv
