// A pull to standard output, and the temporary directory that it goes through.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

TEST_CASE("transfers__pull_to_standard_output__a_whole_file_and_nothing_else") {
  TemporaryDirectory from;
  const std::string content(3u << 20, 'x');  // more than one buffer
  from.write("d/big", content);
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  const auto pull = [&](std::vector<std::string> uris, bool dry = false) {
    ReceiveCommand command = pull_of(std::move(uris), "-");
    command.transfer.dry_run = dry;
    return of(Ran(receiving(command)).end);
  };
  {
    Output output;
    CHECK(pull({uri + "/d/big"}) == "ok: ");
    output.take();
    CHECK(output.file.all() == content);
  }
  Output output;
  const std::string one = "usage: one file goes to standard output: -: give the URI of one file";
  CHECK(pull({uri + "/d/big", uri + "/d/big"}) == one);
  CHECK(pull({uri + "/d/"}) == one);
  std::filesystem::create_symlink("nowhere", from.path("d/link"));  // nor is it an end in part
  CHECK(
      pull({uri + "/d"}) ==
      "source_selection: not a file: d: one file goes to standard output: give the URI of one file, or a directory in place of -");
  const Tally of_directory = Ran(receiving(pull_of({uri + "/d"}, "-"))).end.tally;
  CHECK(of_directory.bytes_sent < content.size());  // it was not pulled first, however much it is
  ReceiveCommand list = pull_of({uri + "/d"}, "-");
  list.transfer.sync.files_from = from.path("f");
  CHECK(of(Ran(receiving(list)).end) == one);
  CHECK(pull({uri + "/none"}).rfind("source_selection: ", 0) == 0);
  CHECK(pull({uri + "/d/big"}, true) == "ok: ");
  CHECK(output.take().empty());
}

TEST_CASE("transfers__standard_output_that_takes_no_more__is_an_error") {
  TemporaryDirectory from;
  from.write("f", "hello");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  const int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  dup2(full, STDOUT_FILENO);
  close(full);
  const CommandEnd ended = Ran(receiving(pull_of({uri + "/f"}, "-"))).end;
  dup2(before, STDOUT_FILENO);
  close(before);
  CHECK(of(ended) == "file_io: cannot write: standard output: No space left on device: make room there");
  CHECK(ended.tally.files == 0);  // it came, and is nowhere
  CHECK(ended.tally.files_failed == 1);
  CHECK(ended.tally.bytes == 0);
}

TEST_CASE("transfers__the_temporary_directory__is_TMPDIR_and_goes") {
  TemporaryDirectory from, temporary;
  from.write("f", "hello");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  const char* given = std::getenv("TMPDIR");
  const std::string before = given != nullptr ? given : "";
  const auto pull = [&](const std::string& directory) {
    setenv("TMPDIR", directory.c_str(), 1);
    Output output;
    return of(Ran(receiving(pull_of({uri + "/f"}, "-"))).end);
  };
  const std::string none = pull(temporary.path("none"));
  const std::string there = pull(temporary.path());
  const std::string relative = pull("a-name-that-is-not-there");  // then as if none was given
  given != nullptr ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  CHECK(none == "file_io: cannot make a temporary directory: No such file or directory: set TMPDIR to a writable one");
  CHECK(there == "ok: ");
  CHECK(relative == "ok: ");
  CHECK(std::filesystem::is_empty(temporary.path()));
}
