// Which of several silent diallers has to go first.
#include "transports/connection/silent_diallers.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>

namespace ccixfer::connection {
namespace {

TEST_CASE("silent_diallers__of_several__the_one_that_came_first_is_due_first") {
  const auto at = [](int64_t ms) { return Instant{} + std::chrono::milliseconds(ms); };
  SilentDiallers silent;
  CHECK(silent.deadline() == never);
  silent.remove(3);  // it was never there
  silent.add(5, at(2));
  silent.add(1, at(3));
  silent.add(9, at(1));
  CHECK(silent.deadline() == at(1) + silence_when_crowded_max);
  CHECK(silent.first_due(silent.deadline() - Duration(1)) == std::nullopt);
  CHECK(silent.first_due(silent.deadline()) == 9u);
  silent.remove(9);
  silent.remove(9);
  CHECK(silent.first_due(never) == 5u);
  silent.remove(5);
  CHECK(silent.first_due(at(3) + silence_when_crowded_max) == 1u);
  silent.remove(1);
  CHECK(silent.first_due(never - Duration(1)) == std::nullopt);
}

}  // namespace
}  // namespace ccixfer::connection
