#include "app/main/json_place.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace ccixfer::program;

namespace {

using Words = std::vector<const char*>;

int of_words(Words words) {
  words.insert(words.begin(), "ccixfer");
  return json_fd_of(static_cast<int>(words.size()), words.data());
}

int of_command(Words words) {
  words.insert(words.begin(), "ccixfer");
  const auto command = parse_command_line(static_cast<int>(words.size()), words.data());
  REQUIRE(command);
  return json_fd_of(*command);
}

}  // namespace

TEST_CASE("json_place__a_pull_to_standard_output__has_its_events_on_standard_error") {
  CHECK(of_command({"recv", "--json", "tcp://h:1/f", "-"}) == 2);
  CHECK(of_command({"recv", "--json", "tcp://h:1/f", "d"}) == 1);
  CHECK(of_command({"send", "--json", "-", "tcp://h:1/f"}) == 1);
  CHECK(of_command({"ping", "tcp://h:1"}) == 1);
}

TEST_CASE("json_place__a_command_line_that_is_none__keeps_out_of_the_data_as_well") {
  CHECK(of_words({"recv", "--json", "--nonsense", "tcp://h:1/f", "-"}) == 2);
  CHECK(of_words({"recv", "tcp://h:1/f", "-", "--json", "-j", "x"}) == 2);
  CHECK(of_words({"recv", "--json", "--nonsense", "tcp://h:1/f", "d"}) == 1);
  CHECK(of_words({"send", "--json", "--nonsense", "-", "tcp://h:1/f"}) == 1);
  CHECK(of_words({"recv", "--nonsense", "tcp://h:1/f", "-"}) == -1);
  CHECK(json_fd_of(0, nullptr) == -1);
}
