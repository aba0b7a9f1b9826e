// A root: what opening it leaves and says when any call of it fails, whose what in it is, and what becomes of it at the end.
#include "app/recv/root.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::recv {

using namespace test;

namespace {

size_t descriptors_open() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

timespec time_of(const std::string& path) {
  struct stat stat {};
  REQUIRE(::stat(path.c_str(), &stat) == 0);
  return stat.st_mtim;
}

}  // namespace

TEST_CASE("root__any_call_fails_at_its_opening__an_error_with_words_and_nothing_stays_open") {
  for (const int failure : {EIO, ENOSPC}) {
    size_t failed = 0;
    bool reached = true;
    for (size_t at = 1; reached; ++at) {
      TemporaryDirectory temporary;
      FaultyFiles files;
      const size_t before = descriptors_open();
      size_t calls = 0;
      std::string which;
      files.hook = [&](std::string_view call, std::string_view name) {
        if (call == "close" || ++calls != at) return 0;
        which = fmt::format("{} {}", call, name);
        return -failure;
      };
      auto root = Root::open(files, temporary.path());
      reached = calls >= at;
      files.hook = nullptr;
      INFO(which);
      if (!root) {
        ++failed;
        const bool is_look = which.starts_with("identify");  // at the end: whatever it is, the root is not what it was
        if (!is_look) CHECK(root.error().kind == (failure == ENOSPC ? ErrorKind::no_space : ErrorKind::file_io));
        CHECK(root.error().message.find(temporary.path()) != std::string::npos);
      } else {
        CHECK((*root)->opened()->check() == 0);
        (*root).reset();
        CHECK(temporary.has(".ccixfer") == which.starts_with("unlink_at"));
      }
      CHECK(descriptors_open() == before);
    }
    CHECK(failed >= 8);
  }
}

TEST_CASE("root__syncs_and_looks_at_its_opening__each_must_go_well") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const std::string_view failing = GENERATE(as<std::string_view>(), "fsync", "identify", "mkdir_at", "fstat");
  files.hook = [&](std::string_view call, std::string_view) { return call == failing ? -EIO : 0; };
  const auto root = Root::open(files, temporary.path());
  REQUIRE_FALSE(root);
  CHECK(root.error().kind == ErrorKind::file_io);
  CHECK(root.error().message.find("Input/output error") != std::string::npos);
}

TEST_CASE("root__file_system_is_read_only__said_so") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  files.read_only = true;
  const auto root = Root::open(files, temporary.path());
  REQUIRE_FALSE(root);
  CHECK(root.error().kind == ErrorKind::file_io);
  CHECK(root.error().message.find("Read-only file system") != std::string::npos);
}

TEST_CASE("root__replaced_where_it_cannot_be_opened_again__says_what_to_start_to_whichever_side_hears_it") {
  TemporaryDirectory temporary;
  std::filesystem::create_directory(temporary.path("root"));
  FaultyFiles files;
  const auto root = Root::open(files, temporary.path("root")).value();
  root->fix(ErrorKind::interrupted);
  std::filesystem::rename(temporary.path("root"), temporary.path("elsewhere"));
  std::filesystem::create_directory(temporary.path("root"));
  root->opened()->stale.store(true);
  const auto renewed = root->renew();
  REQUIRE_FALSE(renewed);
  CHECK(renewed.error().kind == ErrorKind::interrupted);
  CHECK(renewed.error().message.ends_with("start what receives there again"));
  CHECK(root->is_out_of_reach());
}

TEST_CASE("root__opened__knows_what_a_new_file_gets_and_leaves_none") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const mode_t before = ::umask(027);
  const auto root = Root::open(files, temporary.path()).value();
  ::umask(before);
  CHECK(root->opened()->umask == 027);
  CHECK(root->opened()->uid == ::geteuid());
  CHECK(root->opened()->gid == ::getegid());
  struct stat stat {};
  REQUIRE(::stat(temporary.path().c_str(), &stat) == 0);
  CHECK(root->opened()->device == stat.st_dev);
  for (const auto& entry : std::filesystem::directory_iterator(temporary.path(".ccixfer"))) {
    CHECK(entry.path().filename().string().find(temporary_suffix) == std::string::npos);
  }
  // Which times the file system keeps was measured, too: nothing needs to be made for it again.
  CHECK(root->opened()->kept_times.same(files, root->opened()->device, -1, "", {root->opened()->device != 0 ? 1 : 0, 5}, {1, 5}));
  const std::string first = root->opened()->temporary_name();
  const std::string second = root->opened()->temporary_name();
  CHECK(first != second);
  CHECK(first.ends_with(temporary_suffix));
}

TEST_CASE("root__opened__knows_what_its_file_system_takes_and_tells") {
  for (const bool one_writer : {false, true}) {
    for (const bool tells : {false, true}) {
      TemporaryDirectory temporary;
      FaultyFiles files;
      files.tells = [&](ports::SpaceInfo& space) {
        space.one_writer_a_file = one_writer;
        space.syncfs_tells = tells;
      };
      const auto root = Root::open(files, temporary.path()).value();
      CHECK(root->opened()->one_writer_a_file == one_writer);
      CHECK(root->opened()->syncfs_tells == tells);
    }
  }
}

TEST_CASE("root__staging_directory_of_another_mode__is_made_ours_alone") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  std::filesystem::create_directory(temporary.path(".ccixfer"));
  ::chmod(temporary.path(".ccixfer").c_str(), 0755);
  const auto root = Root::open(files, temporary.path()).value();
  struct stat stat {};
  REQUIRE(::stat(temporary.path(".ccixfer").c_str(), &stat) == 0);
  CHECK((stat.st_mode & 07777u) == 0700);
}

TEST_CASE("root__file_in_the_place_of_staging__an_error_and_it_stays") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  temporary.write(".ccixfer", "precious");
  const auto root = Root::open(files, temporary.path());
  REQUIRE_FALSE(root);
  CHECK(root.error().kind == ErrorKind::file_io);
  CHECK(temporary.read(".ccixfer") == "precious");
}

TEST_CASE("root__looked_at__makes_nothing_and_need_not_be_there") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  temporary.write("file", "x");
  {
    const auto root = Root::look(files, temporary.path()).value();
    CHECK(root->opened()->fd >= 0);
    CHECK(root->opened()->check() == 0);
    CHECK(root->renew().has_value());
    const auto absent = Root::look(files, temporary.path("absent")).value();
    CHECK(absent->opened()->fd < 0);
  }
  CHECK_FALSE(temporary.has(".ccixfer"));
  CHECK(Root::look(files, temporary.path("file")).error().kind == ErrorKind::file_io);
}

TEST_CASE("root__closed__its_staging_goes_only_when_it_is_empty_and_its_own") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const std::string staging = temporary.path(".ccixfer");
  auto root = Root::open(files, temporary.path()).value();
  const timespec before = time_of(temporary.path());
  SECTION("nothing is in it") {
    root.reset();
    CHECK_FALSE(temporary.has(".ccixfer"));
    const timespec after = time_of(temporary.path());
    CHECK(before.tv_sec == after.tv_sec);
    CHECK(before.tv_nsec == after.tv_nsec);
  }
  SECTION("something of somebody's is in it") {
    temporary.write(".ccixfer/notes", "x");
    root.reset();
    CHECK(temporary.read(".ccixfer/notes") == "x");
  }
  SECTION("a partial file is in the ledger") {
    const Ledger::File file{path_key("f"), 5};
    REQUIRE(root->opened()->ledger->add({{file, "f", {{0, {1, 2}}}}}));
    root.reset();
    CHECK(temporary.has(".ccixfer/ledger.db"));
  }
  SECTION("a delivered file is remembered") {
    root->opened()->deliveries->add({1}, 1000, {{path_key("f"), 5, {1, {1, 1}, 1}}});
    root.reset();
    CHECK(temporary.has(".ccixfer/ledger.db"));
    CHECK(temporary.has(".ccixfer/delivered.db"));
  }
  SECTION("another stands in its place: it is left alone, empty as it is") {
    std::filesystem::rename(staging, temporary.path("moved"));
    std::filesystem::create_directory(staging);
    root.reset();
    CHECK(temporary.has(".ccixfer"));
    CHECK(temporary.has("moved/ledger.db"));
  }
  SECTION("another process's ledger stands in its place") {
    std::filesystem::rename(staging, temporary.path("moved"));
    temporary.write(".ccixfer/ledger.db", "theirs");
    temporary.write(".ccixfer/ledger.db-wal", "theirs too");
    root.reset();
    CHECK(temporary.read(".ccixfer/ledger.db") == "theirs");
    CHECK(temporary.read(".ccixfer/ledger.db-wal") == "theirs too");
  }
  SECTION("it was removed") {
    std::filesystem::remove_all(staging);
    root.reset();
    CHECK_FALSE(temporary.has(".ccixfer"));
  }
}

TEST_CASE("root__moved_or_replaced__the_next_session_opens_what_is_there") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const std::string path = temporary.path("root");
  std::filesystem::create_directory(path);
  auto root = Root::open(files, path).value();
  const auto first = root->opened();
  CHECK(first->check() == 0);
  CHECK_FALSE(first->stale.load());
  CHECK(root->renew().has_value());
  CHECK(root->opened() == first);
  SECTION("the root is elsewhere") { std::filesystem::rename(path, path + "-moved"); }
  SECTION("another is in its place") {
    std::filesystem::rename(path, path + "-moved");
    std::filesystem::create_directory(path);
  }
  SECTION("its staging is elsewhere") { std::filesystem::rename(path + "/.ccixfer", path + "-moved"); }
  SECTION("another staging is in its place") {
    std::filesystem::rename(path + "/.ccixfer", path + "-moved");
    std::filesystem::create_directory(path + "/.ccixfer");
  }
  CHECK(first->judged(-EIO) == -EIO);
  CHECK_FALSE(first->stale.load());  // nobody looked yet
  CHECK(first->judged(-ENOENT) == -ESTALE);
  CHECK(first->check() == -ESTALE);
  CHECK(first->stale.load());
  if (!std::filesystem::exists(path)) {
    CHECK_FALSE(root->renew().has_value());
    CHECK(root->opened() == first);
    std::filesystem::rename(path + "-moved", path);  // it is back
    REQUIRE(root->renew().has_value());
    CHECK(root->opened() == first);
    CHECK_FALSE(first->stale.load());
    CHECK(first->judged(-ENOENT) == -ENOENT);
    return;
  }
  REQUIRE(root->renew().has_value());
  CHECK(root->opened() != first);
  CHECK(root->opened()->check() == 0);
  CHECK_FALSE(root->opened()->stale.load());
}

TEST_CASE("root__confined_process__another_root_is_out_of_reach_and_another_staging_is_not") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const std::string path = temporary.path("root");
  std::filesystem::create_directory(path);
  auto root = Root::open(files, path).value();
  root->fix(ErrorKind::interrupted);
  const auto first = root->opened();
  SECTION("the staging directory was removed") {
    std::filesystem::remove_all(path + "/.ccixfer");
    CHECK(first->check() == -ESTALE);
    REQUIRE(root->renew().has_value());
    CHECK(root->opened() != first);
    CHECK_FALSE(root->is_out_of_reach());
  }
  SECTION("the root is gone, and comes back") {
    std::filesystem::rename(path, path + "-moved");
    CHECK(first->check() == -ESTALE);
    CHECK_FALSE(root->renew().has_value());
    CHECK_FALSE(root->is_out_of_reach());
    std::filesystem::rename(path + "-moved", path);
    CHECK(root->renew().has_value());
  }
  SECTION("another root is in its place") {
    std::filesystem::rename(path, path + "-moved");
    std::filesystem::create_directory(path);
    CHECK(first->check() == -ESTALE);
    CHECK_FALSE(root->is_out_of_reach());  // no session has asked for it yet
    const auto renewed = root->renew();
    REQUIRE_FALSE(renewed.has_value());
    CHECK(renewed.error().kind == ErrorKind::interrupted);
    CHECK(renewed.error().message.find(path) != std::string::npos);
    CHECK(root->is_out_of_reach());
    CHECK(root->opened() == first);
    CHECK_FALSE(std::filesystem::exists(path + "/.ccixfer"));
  }
}

}  // namespace ccixfer::recv
