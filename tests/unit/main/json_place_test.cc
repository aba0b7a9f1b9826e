// Where the events of --json go when standard output has data.
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
  CHECK(of_words({"recv", "--json", "--nonsense", "-", "-"}) == 2);  // a ticket's, and the file's
  CHECK(of_words({"recv", "--json", "--files-from", "-", "--nonsense", "tcp://h:1/f", "-"}) == 2);
  CHECK(of_words({"recv", "--json", "tcp://h:1/f", "-", "--nonsense", "--exclude-from", "-"}) == 2);
  CHECK(of_words({"recv", "--nonsense", "tcp://h:1/f", "-"}) == -1);
  CHECK(json_fd_of(0, nullptr) == -1);
}

TEST_CASE("json_place__a_command_line_that_is_none_and_reads_standard_input__has_its_event_on_standard_output") {
  for (const char* list : {"--files-from", "--exclude-from", "--include-from"}) {
    CHECK(of_words({"recv", "--json", list, "-", "--nonsense", "tcp://h:1/f", "d"}) == 1);
    CHECK(of_words({"recv", "--json", "--nonsense", "tcp://h:1/f", "d", list, "-"}) == 1);
  }
  CHECK(of_words({"recv", "--json", "--nonsense", "-", "d"}) == 1);  // a ticket
  CHECK(of_words({"recv", "-", "d", "--json", "-j", "x"}) == 1);
}
