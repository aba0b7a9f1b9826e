// Pulls of which not all comes, over tcp on this host: what is said of the rest, and how they end.
#include <catch2/catch.hpp>
#include <filesystem>

#include "app/main/failed_list.h"
#include "app/main/transfer_loop.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

// The end's "N files failed: see the lines above" has these lines above it.
TEST_CASE("pulls_in_part__quiet__errors_of_what_has_no_name_are_said_too") {
  TemporaryDirectory from, to;
  for (int i = 0; i < 40; ++i) std::filesystem::create_symlink("nowhere", from.path("link" + std::to_string(i)));
  from.write("f", "x");
  Running serving(sending(server(from.path())));
  Running pulling(receiving(pull_of({serving.uri()}, to.path("d"))), {}, false, 0, true);
  CHECK(of(pulling.wait()) == "partial: 40 files failed: the rest is delivered");
  CHECK(pulling.said.text.lines("ccixfer: the source could not list 8 more: its own lines name them").size() == 1);
  CHECK(pulling.said.text.lines("ccixfer: link").size() == 32);
}

// As one of several SRC of a push, and as with rsync.
TEST_CASE("pulls_in_part__one_of_several_is_not_there__the_others_come_and_it_has_failed") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  from.write("b", "22");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  ReceiveCommand pull = pull_of({uri + "/a", uri + "/d/none", uri + "/b"}, to.path("d"));
  pull.transfer.failed_list = from.path("failed");
  Running pulling(receiving(pull));
  const CommandEnd& end = pulling.wait();
  CHECK(of(end) == "partial: 1 file failed: the rest is delivered");
  CHECK(end.tally.files == 2);
  CHECK(end.tally.files_failed == 1);
  CHECK(to.read("d/a") == "1");
  CHECK(to.read("d/b") == "22");
  CHECK(from.read("failed") == "d/none\n");
  CHECK(pulling.said.text.lines("ccixfer: d/none: No such file or directory").size() == 1);
}

TEST_CASE("pulls_in_part__none_of_several_is_there__it_is_an_error_of_the_selection") {
  TemporaryDirectory from, to;
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  Running pulling(receiving(pull_of({uri + "/a", uri + "/b"}, to.path("d"))));
  CHECK(pulling.wait().error.kind == ErrorKind::source_selection);
  CHECK(pulling.said.text.lines("No such file or directory").size() == 2);
  CHECK_FALSE(to.has("d"));
}

// The last of what was to come may be complete in the very moment of the signal, and the next one's end would be none of this
// one's.
TEST_CASE("pulls_in_part__stopped_before_the_next_one__that_does_not_begin") {
  const Ran ran([](const Process& process) -> CommandEnd {
    auto loop = TransferLoop::create(process, insecure(), {}, {});
    if (!loop) return {loop.error(), {}};
    const auto dial = [&](uint32_t retries) {
      TransferOptions options;
      options.retries = retries;
      return (*loop)->dial(make_plan((*loop)->services(), "tcp://127.0.0.1:1", options), {});
    };
    pthread_kill(pthread_self(), SIGTERM);
    CHECK(dial(1000).error.kind == ErrorKind::interrupted);
    return dial(0);
  });
  CHECK(of(ran.end) == "interrupted: interrupted: by a signal: run the same command again to resume");
}

// Who reads the list after 23 would send what an earlier run could not.
TEST_CASE("pulls_in_part__the_list_of_what_failed_is_not_whole__it_does_not_look_so") {
  TemporaryDirectory here;
  const auto ended = [&](bool can_be_written, Written& text) {
    Running running(
        [&](const Process& process) -> CommandEnd {
          auto list = FailedList::begin(here.path("failed"), ListFormat::lines, here.path()).value();
          list->session_begins();
          list->ended("f", "failed");
          list->ended("line\nbreak", "failed");
          if (!can_be_written) std::filesystem::create_directory(here.path("failed"));
          CommandEnd end{{ErrorKind::partial, "2 files failed"}, {}};
          finish_failed_list(process, list.get(), end);
          return end;
        },
        {}, false, 0, true);
    const Error error = running.wait().error;
    REQUIRE(write(text.fd(), running.said.text.all().data(), running.said.text.all().size()) >= 0);
    return error;
  };
  Written without, with;
  CHECK(ended(true, without).kind == ErrorKind::partial);
  CHECK(without.lines("1 names with line breaks are left out").size() == 1);
  CHECK(here.read("failed") == "f\n");
  REQUIRE(std::filesystem::remove(here.path("failed")));
  const Error error = ended(false, with);
  CHECK(error.kind == ErrorKind::file_io);
  CHECK(error.message.find("what stands there is of an earlier run") != std::string::npos);
  CHECK(with.lines("ccixfer: 2 files failed").size() == 1);
}
