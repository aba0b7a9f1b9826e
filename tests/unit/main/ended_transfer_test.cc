#include "app/main/ended_transfer.h"

#include <catch2/catch.hpp>

#include "core/host/command_helper.h"

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

}  // namespace ccixfer::program
