// Rates between two looks, transfers that ended, and the sum over the workers of a router, for the status page.
#include "app/main/status_teller.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "app/main/router_status.h"

using namespace ccixfer;
using namespace ccixfer::program;

TEST_CASE("rates__from_one_snapshot_to_the_next__and_nothing_where_the_last_did_not_have_it") {
  Rates rates;
  Instant now{std::chrono::seconds(100)};
  rates.begin(now);
  CHECK(rates.of("a", 1000) < 0);
  rates.begin(now += std::chrono::seconds(2));
  CHECK(rates.of("a", 5000) == 2000);
  CHECK(rates.of("b", 5000) < 0);
  CHECK(rates.of("c", 5000) < 0);
  rates.begin(now += std::chrono::seconds(1));
  CHECK(rates.of("b", 5000) == 0);
  CHECK(rates.of("c", 4000) < 0);  // another one of that name
  rates.begin(now += std::chrono::seconds(1));
  const double rising = rates.of("b", 6000);
  CHECK((rising > 0 && rising < 1000));  // between the old rate and the new one
  rates.begin(now += std::chrono::seconds(1));
  CHECK(rates.of("b", 6000) < rising);
  // Nobody asked for long: a rate over all that time would be none.
  rates.begin(now += std::chrono::hours(1));
  CHECK(rates.of("b", 6000) < 0);
  rates.begin(now += std::chrono::seconds(1));
  rates.begin(now += std::chrono::seconds(1));
  CHECK(rates.of("b", 7000) < 0);  // it was not asked about, and is forgotten
}

TEST_CASE("ended_transfers__the_last_lines_of_a_history__whole_ones_and_so_many") {
  std::string pattern = (std::filesystem::temp_directory_path() / "ccixfer-ended-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const int directory = ::open(pattern.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto written = [&](const std::string& text) {
    std::ofstream(pattern + "/history") << text;
    EndedTransfers ended;
    ended.read(directory, "history");
    return ended.lines();
  };
  CHECK(written("").empty());
  CHECK(written("one\ntwo\nhalf a li") == std::vector<std::string>{"one", "two"});
  std::string many;
  for (size_t i = 0; i < ended_shown_max + 7; ++i) many += std::to_string(i) + "\n";
  CHECK(written(many).size() == ended_shown_max);
  CHECK(written(many).front() == "7");
  // Longer than what is read of it: the first line that is read is not a whole one.
  const auto tail = written(std::string(1u << 20, 'x') + "\nlast\n");
  CHECK(tail == std::vector<std::string>{"last"});
  CHECK(written(std::string(1u << 20, 'x')).empty());
  EndedTransfers none;
  none.read(directory, "is not there");
  CHECK(none.lines().empty());
  ::close(directory);
  std::filesystem::remove_all(pattern);
}

TEST_CASE("router_status__of_several_workers__counts_all_of_them") {
  report::StatusRouter router;
  router.connections = 3;
  router.more = 1;
  router.buffers_used = 2;
  router.buffers_count = 8;
  add_workers(router, {.connections = 4, .buffers_used = 5, .buffers_count = 16});
  CHECK(router.connections == 7);
  CHECK(router.more == 5);  // they are in no list here
  CHECK(router.buffers_used == 7);
  CHECK(router.buffers_count == 24);
}
