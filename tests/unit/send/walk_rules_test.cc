// Files of rules above a source.
#include "app/send/walk_rules.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

// Below a served root, and of a push, in which the place is absolute.
struct Parents {
  Parents() {
    dir.file("par/in/src/x", "");
    dir.file("par/.r", "- *.secret\n");
    root = ::open(dir.path("").c_str(), O_RDONLY | O_DIRECTORY);
  }
  ~Parents() {
    ::close(root);
    CHECK(files.open_now == 0);
  }
  Parents(const Parents&) = delete;
  Parents& operator=(const Parents&) = delete;
  [[nodiscard]] Result<std::vector<filter::Rules::Above>> read(bool served) {
    const std::string place = served ? "par/in/src" : send::absolute_place(dir.path(""), "par/in/src");
    return send::rules_above(files, served ? root : ports::FileSystem::no_directory, rules, place);
  }
  TempDir dir;
  WatchedFiles files;
  filter::Rules rules = rules_of({": /.r"});
  int root = -1;
};

TEST_CASE("rules_above__file_or_directory_cannot_be_read__is_an_error_and_what_is_not_there_is_none") {
  Parents parents;
  const bool served = GENERATE(true, false);
  CAPTURE(served);
  REQUIRE(parents.read(served));
  REQUIRE(parents.read(served)->size() == 1);
  CHECK(parents.read(served)->front().text == "- *.secret\n");
  int error = 0;
  const std::string failing = GENERATE("file", "directory");
  parents.files.hook = [&](std::string_view call, std::string_view name) {
    const bool is_it = failing == "file" ? name == ".r" : name.ends_with("par");
    return call == "open" && is_it ? error : 0;
  };
  for (const int passing : {-EIO, -EMFILE, -ESTALE, -EACCES}) {
    CAPTURE(failing, passing);
    error = passing;
    const auto above = parents.read(served);
    REQUIRE_FALSE(above);
    CHECK(above.error().kind == ErrorKind::file_io);
    CHECK(above.error().message.find(failing == "file" ? ".r" : "par") != std::string::npos);
    CHECK(above.error().message.find(std::generic_category().message(-passing)) != std::string::npos);
  }
  for (const int absent : {-ENOENT, -ENOTDIR}) {
    error = absent;
    const auto above = parents.read(served);
    REQUIRE(above);
    CHECK(above->empty());
  }
}

TEST_CASE("rules_above__what_is_no_file_is_none__and_too_much_is_an_error") {
  Parents parents;
  const bool served = GENERATE(true, false);
  std::filesystem::remove(parents.dir.path("par/.r"));
  std::filesystem::create_directory(parents.dir.path("par/.r"));
  REQUIRE(parents.read(served));
  CHECK(parents.read(served)->empty());
  std::filesystem::remove(parents.dir.path("par/.r"));
  parents.dir.file("par/.r", std::string((1u << 20) + 1, '#'));
  const auto above = parents.read(served);
  REQUIRE_FALSE(above);
  CHECK(above.error().kind == ErrorKind::file_io);
}

TEST_CASE("walk__served_rules_above_the_source_cannot_be_read__ends_the_walk") {
  Parents parents;
  WalkOptions options = of({"par/in/src"});
  options.served_root = parents.root;
  options.rules = rules_of({": /.r"});
  Walk walk(options);
  REQUIRE(walk.select(parents.files));
  parents.files.hook = [](std::string_view call, std::string_view name) { return call == "open" && name == ".r" ? -EIO : 0; };
  WalkBatch batch;
  walk.step(parents.files, batch, true);
  REQUIRE(batch.error);
  CHECK(batch.error->kind == ErrorKind::file_io);
  CHECK(batch.records.empty());
  walk.close(parents.files);
}

}  // namespace
}  // namespace ccixfer::send_test
