// Which worker of a router gets the next connection.
#include "app/main/worker_spread.h"

#include <catch2/catch.hpp>
#include <vector>

using ccixfer::program::WorkerSpread;

TEST_CASE("worker_spread__connections_come_and_go__the_one_with_the_fewest_gets_the_next") {
  std::vector<size_t> loads(3);
  WorkerSpread spread([&loads](size_t worker) { return loads[worker]; });
  const auto next = [&] {
    const size_t worker = spread.goes_elsewhere(loads.size()) ? spread.place(loads.size()) : 0;
    ++loads[worker];
    return worker;
  };
  for (int i = 0; i < 12; ++i) static_cast<void>(next());
  CHECK(loads == std::vector<size_t>{4, 4, 4});
  loads = {4, 1, 4};
  CHECK(next() == 1);
  CHECK(next() == 1);
  loads = {0, 2, 2};
  CHECK(next() == 0);
}

TEST_CASE("worker_spread__equally_many__they_take_turns") {
  const std::vector<size_t> loads{5, 5, 5};
  WorkerSpread spread([&loads](size_t worker) { return loads[worker]; });
  std::vector<size_t> came(3);
  for (int i = 0; i < 6; ++i) ++came[spread.goes_elsewhere(3) ? spread.place(3) : 0];
  CHECK(came == std::vector<size_t>{2, 2, 2});
}

TEST_CASE("worker_spread__some_workers_lack_the_device__it_goes_to_none_of_them") {
  std::vector<size_t> loads{2, 0, 1};
  WorkerSpread spread([&loads](size_t worker) { return loads[worker]; });
  const auto not_the_second = [](size_t worker) { return worker != 1; };
  REQUIRE(spread.goes_elsewhere(3, not_the_second));
  CHECK(spread.place(3, not_the_second) == 2);
  CHECK_FALSE(spread.goes_elsewhere(3, [](size_t) { return false; }));
  REQUIRE(spread.goes_elsewhere(3));
  CHECK(spread.place(3) == 1);
}

TEST_CASE("worker_spread__nobody_takes_it_any_more_when_it_has_come__one_that_could_has_it") {
  const std::vector<size_t> loads{2, 0, 1};
  WorkerSpread spread([&loads](size_t worker) { return loads[worker]; });
  const auto nobody = [](size_t) { return false; };
  const auto third = [](size_t worker) { return worker == 2; };
  REQUIRE(spread.goes_elsewhere(3, third));
  CHECK(spread.place(3, nobody, third) == 2);
  CHECK(spread.place(3, third, [](size_t) { return true; }) == 2);
}
