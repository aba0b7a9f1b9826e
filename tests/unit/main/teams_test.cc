// Which process of a team leads, and which ones do not fit.
#include "app/main/teams.h"

#include <catch2/catch.hpp>

namespace {
using namespace ccixfer;
using namespace ccixfer::program;
using Seat = Teams::Seat;

session::TransferId key_of(uint8_t number) {
  session::TransferId key{};
  key[0] = number;
  return key;
}

session::TeamWish part(uint16_t number, uint16_t parts = 3) {
  session::TeamWish wish;
  wish.part = number;
  wish.parts = parts;
  wish.agreement = 7;
  wish.version = "1.0";
  return wish;
}

session::TeamEnded well() {
  session::TeamEnded how;
  how.files_ok = 5;
  return how;
}

TEST_CASE("the first one leads, others help, and teams do not meet") {
  Teams teams;
  CHECK(teams.admit(key_of(1), part(2), false, false)->seat == Seat::leads);
  CHECK(teams.admit(key_of(1), part(1), true, false)->seat == Seat::helps);
  CHECK(teams.admit(key_of(2), part(1), false, false)->seat == Seat::leads);
}

TEST_CASE("when the one that leads is lost, the next one to come leads the same run") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), false, false);
  const auto second = teams.admit(key_of(1), part(2), false, false);
  REQUIRE(second);
  CHECK(second->seat == Seat::leads);
  CHECK(second->record == first->record);
}

TEST_CASE("a part that comes when all is done hears it, and one that had a part begins the next run") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), false, false);
  CHECK(teams.admit(key_of(1), part(2), true, false)->seat == Seat::helps);
  teams.ended(key_of(1), well());
  const auto late = teams.admit(key_of(1), part(3), false, false);
  REQUIRE(late);
  CHECK(late->seat == Seat::late);
  CHECK(late->how.files_ok == 5);
  const auto next = teams.admit(key_of(1), part(3), false, false);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK(next->record != first->record);
  CHECK(teams.admit(key_of(1), part(1), true, false)->seat == Seat::helps);
}

TEST_CASE("what does not fit the team that runs is refused by name") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), false, false));
  session::TeamWish wish = part(2);
  wish.version = "2.0";
  auto refused = teams.admit(key_of(1), wish, true, false);
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().message.find("part 2/3 is version 2.0 of ccixfer, and part 1/3 is version 1.0") != std::string::npos);
  wish = part(2);
  wish.agreement = 8;
  CHECK(teams.admit(key_of(1), wish, true, false).error().message.find("part 2/3 asks for something else than part 1/3") !=
        std::string::npos);
  CHECK(!teams.admit(key_of(1), part(2, 4), true, false));
  refused = teams.admit(key_of(1), part(1), true, true);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("part 1/3 is here already") != std::string::npos);
  CHECK(teams.admit(key_of(1), part(2), true, false)->seat == Seat::helps);
}

TEST_CASE("a team that has ended keeps nobody with other options out") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), false, false);
  teams.ended(key_of(1), well());
  session::TeamWish wish = part(2);
  wish.agreement = 8;
  const auto next = teams.admit(key_of(1), wish, false, false);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK(next->record != first->record);
}

TEST_CASE("old teams are forgotten, so the list is bounded") {
  Teams teams;
  REQUIRE(teams.admit(key_of(0), part(1), false, false));
  teams.ended(key_of(0), well());
  for (size_t i = 1; i <= teams_remembered_max; ++i) {
    REQUIRE(teams.admit(key_of(static_cast<uint8_t>(i)), part(1), false, false));
  }
  CHECK(teams.admit(key_of(0), part(2), false, false)->seat == Seat::leads);
}

}  // namespace
