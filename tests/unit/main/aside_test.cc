// Where --backup-dir and --link-dest lead, of pushes and of pulls.
#include "app/main/aside.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/recv/faulty_files.h"

using namespace ccixfer;
using namespace ccixfer::program;
using ccixfer::recv::test::TemporaryDirectory;

TEST_CASE("aside__backups_into_the_destination_itself__refused_unless_they_have_other_names") {
  const TemporaryDirectory home;
  std::filesystem::create_directories(home.path("dest/sub"));
  for (const char* there : {".", "./", "sub/..", "../dest", "../dest/"}) {
    INFO(there);
    for (const char* suffix : {"", "~"}) {
      session::Open open;
      open.backup = session::BackupWish{there, suffix};
      const auto push = aside_of(open, "dest");
      SyncOptions sync;
      sync.backup_directory = there;
      sync.suffix = suffix;
      const auto pull = aside_of(sync, home.path("dest"), false);
      CHECK(push.has_value() == (*suffix != '\0'));
      CHECK(pull.has_value() == (*suffix != '\0'));
      if (!push) CHECK(push.error().kind == ErrorKind::usage);
      if (!pull) CHECK(pull.error().kind == ErrorKind::usage);
    }
  }
  session::Open open;
  open.backup = session::BackupWish{"../kept", ""};
  CHECK(aside_of(open, "dest"));
  SyncOptions sync;
  sync.backup_directory = "sub";
  CHECK(aside_of(sync, home.path("dest"), false));
  CHECK(aside_of(sync, home.path("not there yet"), true));
  sync.backup_directory = ".";
  CHECK_FALSE(aside_of(sync, home.path("not there yet"), true));
}

TEST_CASE("aside__backups_around_the_destination__are_refused_with_delete_which_would_delete_nothing") {
  const TemporaryDirectory home;
  std::filesystem::create_directories(home.path("dest/sub"));
  const auto push = [](const char* there, bool deletes) {
    session::Open open;
    open.backup = session::BackupWish{there, ".o"};
    if (deletes) open.deletes = 100;
    return aside_of(open, "top/dest");
  };
  for (const char* there : {".", "../dest", "..", "../..", "/", "/top"}) {
    INFO(there);
    const auto refused = push(there, true);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::usage);
    CHECK(refused.error().message.find("--backup-dir with --delete") == 0);
    CHECK(push(there, false));
  }
  CHECK(push("kept", true));
  CHECK(push("../kept", true));
  CHECK(push("../des", true));
  SyncOptions sync;
  sync.suffix = ".o";
  sync.deletes = true;
  for (const char* there : {".", "../dest"}) {
    sync.backup_directory = there;
    CHECK_FALSE(aside_of(sync, home.path("dest"), false));
  }
  // Of a pull a directory outside of the destination is nobody's to delete.
  for (const char* there : {"..", "kept"}) {
    sync.backup_directory = there;
    CHECK(aside_of(sync, home.path("dest"), true));
  }
}
