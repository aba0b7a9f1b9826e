// Which transfers --on-complete is told of, and under which names.
#include "app/main/ended_transfer.h"

#include <catch2/catch.hpp>

#include "core/base/local_kinds.h"
#include "core/host/command_helper.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

CommandEnd ended_well() {
  CommandEnd end;
  end.transfer = std::string(32, 'a');
  return end;
}

}  // namespace

TEST_CASE("ended_transfer__more_sources_than_a_result_holds__the_first_are_named_and_the_rest_counted") {
  SendCommand push;
  push.destination = "tcp://h:1/in/";
  for (int i = 0; i < 5000; ++i) push.sources.push_back("/data/a directory of runs/run" + std::to_string(i));
  const auto names = dialled_transfer(push, ended_well());
  REQUIRE(names.has_value());
  CHECK(names->path.starts_with("/data/a directory of runs/run0 /data/a directory of runs/run1 "));
  CHECK(names->path.ends_with(" more"));
  const size_t counted = names->path.rfind(" and ");
  const auto named = (5000 - std::stoul(names->path.substr(counted + 5)));
  CHECK(names->path.substr(0, counted).ends_with("/run" + std::to_string(named - 1)));
  CHECK(result_of(*names, ended_well(), 0).size() < host::CommandHelper::text_bytes_max);
}

TEST_CASE("ended_transfer__some_sources__are_all_named") {
  SendCommand push;
  push.destination = "tcp://h:1/in/";
  push.sources = {"/a", "/b"};
  CHECK(dialled_transfer(push, ended_well())->path == "/a /b");
  push.sources = {std::string(5000, 'x')};
  CHECK(dialled_transfer(push, ended_well())->path == push.sources.front());
}

TEST_CASE("ended_transfer__that_never_began__is_told_of_but_by_another_run_and_by_one_of_a_team") {
  SendCommand push;
  push.destination = "tcp://h:1/in/";
  push.sources = {"/a"};
  CommandEnd end;
  end.error = {ErrorKind::authentication, "no key"};
  const auto names = dialled_transfer(push, end);
  REQUIRE(names.has_value());
  const std::string result = result_of(*names, end, 0);
  CHECK(result.find("\"exit\":41") != std::string::npos);
  CHECK(result.find("\"transfer\"") == std::string::npos);
  ReceiveCommand pull;
  pull.uris = {"tcp://h:1/f"};
  pull.directory = "d";
  CHECK(dialled_transfer(pull, end).has_value());

  push.team.part = "2/4";
  CHECK_FALSE(dialled_transfer(push, end).has_value());
  CHECK(dialled_transfer(push, ended_well()).has_value());
  push.team.part.clear();
  end.error.kind = already_running;
  CHECK_FALSE(dialled_transfer(push, end).has_value());
  push.transfer.dry_run = true;
  CHECK_FALSE(dialled_transfer(push, ended_well()).has_value());
}

TEST_CASE("ended_transfer__a_command_that_fails_before_it_runs__tells_whom_it_was_to_tell") {
  const recv::test::TemporaryDirectory here;
  SendCommand push;
  push.destination = "tcp://h:1/in/";
  push.sources = {"/a"};
  const Error closed{ErrorKind::timeout, "the window is closed"};
  tell_unbegun(push, closed, nullptr);  // nobody
  push.transfer.on_complete = "cat > " + here.path("told");
  tell_unbegun(push, closed, nullptr);
  CHECK(here.read("told").find("\"exit\":30") != std::string::npos);
}

}  // namespace ccixfer::program
