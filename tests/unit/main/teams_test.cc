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
  wish.member = number;  // another process has another one
  wish.agreement = session::agreement_of(7ull << 32, 3ull << 32);
  wish.version = "1.0";
  return wish;
}

const auto led = [](const session::TransferId&) { return true; };
const auto not_led = [](const session::TransferId&) { return false; };
const Instant now{};

session::TeamEnded well() {
  session::TeamEnded how;
  how.files_ok = 5;
  return how;
}

TEST_CASE("the first one leads, others help, and teams do not meet") {
  Teams teams;
  CHECK(teams.admit(key_of(1), part(2), not_led, false, now)->seat == Seat::leads);
  CHECK(teams.admit(key_of(1), part(1), led, false, now)->seat == Seat::helps);
  CHECK(teams.admit(key_of(2), part(1), not_led, false, now)->seat == Seat::leads);
}

TEST_CASE("when the one that leads is lost, the next one to come leads the same run") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), not_led, false, now);
  const auto second = teams.admit(key_of(1), part(2), not_led, false, now);
  REQUIRE(second);
  CHECK(second->seat == Seat::leads);
  CHECK(second->record == first->record);
}

TEST_CASE("a part that comes when all is done hears it, and one that had a part begins the next run") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), not_led, false, now);
  CHECK(teams.admit(key_of(1), part(2), led, false, now)->seat == Seat::helps);
  teams.ended(key_of(1), well(), now);
  const auto late = teams.admit(key_of(1), part(3), not_led, false, now);
  REQUIRE(late);
  CHECK(late->seat == Seat::late);
  CHECK(late->how.files_ok == 5);
  session::TeamWish again = part(3);
  again.member = 33;
  const auto next = teams.admit(key_of(1), again, not_led, false, now);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK(next->record != first->record);
  CHECK(teams.admit(key_of(1), part(1), led, false, now)->seat == Seat::helps);
}

TEST_CASE("what does not fit the team that runs is refused by name") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  session::TeamWish wish = part(2);
  wish.version = "2.0";
  auto refused = teams.admit(key_of(1), wish, led, false, now);
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().message.find("part 2/3 is version 2.0 of ccixfer, and part 1/3 is version 1.0") != std::string::npos);
  wish = part(2);
  wish.agreement = session::agreement_of(8ull << 32, 3ull << 32);
  CHECK(teams.admit(key_of(1), wish, led, false, now).error().message.find("part 2/3 asks for something else than part 1/3") !=
        std::string::npos);
  CHECK(!teams.admit(key_of(1), part(2, 4), led, false, now));
  refused = teams.admit(key_of(1), part(1), led, true, now);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("part 1/3 is here already") != std::string::npos);
  CHECK(teams.admit(key_of(1), part(2), led, false, now)->seat == Seat::helps);
}

TEST_CASE("a team that has ended keeps nobody with other options out") {
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), not_led, false, now);
  teams.ended(key_of(1), well(), now);
  session::TeamWish wish = part(2);
  wish.agreement = session::agreement_of(8ull << 32, 3ull << 32);
  const auto next = teams.admit(key_of(1), wish, not_led, false, now);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK(next->record != first->record);
}

TEST_CASE("a part that sees another source is refused by name, also when the others have done everything") {
  const bool has_ended = GENERATE(false, true);
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  if (has_ended) teams.ended(key_of(1), well(), now);
  session::TeamWish wish = part(2);
  wish.agreement = session::agreement_of(7ull << 32, 4ull << 32);
  const auto comes = [&](Duration later) { return teams.admit(key_of(1), wish, has_ended ? not_led : led, false, now + later); };
  const auto refused = comes(has_ended ? late_max - Duration(1) : Duration(0));
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().message.find("part 2/3 sees another source than part 1/3") != std::string::npos);
  if (has_ended) CHECK(comes(late_max)->seat == Seat::leads);  // of another day's run
}

TEST_CASE("a source that was made anew keeps nobody out who had a part in the run that has ended") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  teams.ended(key_of(1), well(), now);
  session::TeamWish again = part(1);
  again.member = 11;
  again.agreement = session::agreement_of(7ull << 32, 4ull << 32);
  REQUIRE(teams.admit(key_of(1), again, not_led, false, now));
  session::TeamWish other = part(2);
  other.agreement = again.agreement;
  CHECK(teams.admit(key_of(1), other, led, false, now)->seat == Seat::helps);
}

TEST_CASE("old teams are forgotten, so the list is bounded") {
  Teams teams;
  REQUIRE(teams.admit(key_of(0), part(1), not_led, false, now));
  teams.ended(key_of(0), well(), now);
  for (size_t i = 1; i <= teams_remembered_max; ++i) {
    REQUIRE(teams.admit(key_of(static_cast<uint8_t>(i)), part(1), not_led, false, now));
  }
  CHECK(teams.admit(key_of(0), part(2), not_led, false, now)->seat == Seat::leads);
}

TEST_CASE("a team that is led is not forgotten, however many others come") {
  Teams teams;
  const auto is_led = [](const session::TransferId& key) { return key == key_of(0); };
  REQUIRE(teams.admit(key_of(0), part(1), not_led, false, now));
  for (size_t i = 1; i <= 2 * teams_remembered_max; ++i) {
    REQUIRE(teams.admit(key_of(static_cast<uint8_t>(i)), part(1), is_led, false, now));
  }
  const auto helps = teams.admit(key_of(0), part(2), is_led, false, now);
  REQUIRE(helps);
  CHECK(helps->seat == Seat::helps);
}

TEST_CASE("a helper that lost its connection when all was done hears the end, and who led begins anew") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  REQUIRE(teams.admit(key_of(1), part(2), led, false, now));
  teams.ended(key_of(1), well(), now);
  CHECK(teams.admit(key_of(1), part(2), not_led, false, now)->seat == Seat::late);
  CHECK(teams.admit(key_of(1), part(2), not_led, false, now)->seat == Seat::late);
  CHECK(teams.admit(key_of(1), part(1), not_led, false, now)->seat == Seat::leads);
}

TEST_CASE("a part that never came to a run that ended long ago begins one of its own") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  teams.ended(key_of(1), well(), now);
  CHECK(teams.admit(key_of(1), part(2), not_led, false, now + late_max - Duration(1))->seat == Seat::late);
  CHECK(teams.admit(key_of(1), part(3), not_led, false, now + late_max)->seat == Seat::leads);
}

TEST_CASE("a run that ended without a summary goes on with its own processes, and soon with new ones") {
  const Duration later = late_max * 100;
  session::TeamWish started_anew = part(1);
  started_anew.member = 11;
  struct Row {
    session::TeamWish wish;
    Duration when;
    bool goes_on;
  };
  const auto row = GENERATE_COPY(values<Row>({{started_anew, Duration(1), true},
                                              {started_anew, later + late_max - Duration(1), true},
                                              {started_anew, later + late_max, false},
                                              {part(1), later + late_max, true},
                                              {part(2), later + late_max, true},
                                              {part(3), later + late_max, false}}));
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), not_led, false, now);
  REQUIRE(first);
  const bool has_helper = row.when >= later;  // it came, or came again, while the transfer ran
  if (has_helper) REQUIRE(teams.admit(key_of(1), part(2), led, false, now + later)->seat == Seat::helps);
  const auto next = teams.admit(key_of(1), row.wish, not_led, false, now + row.when);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK((next->record == first->record) == row.goes_on);
}

TEST_CASE("a run whose processes were here until now goes on with a new one, however long ago they came") {
  const bool is_in_time = GENERATE(true, false);
  Teams teams;
  const auto first = teams.admit(key_of(1), part(1), not_led, false, now);
  REQUIRE(first);
  REQUIRE(teams.admit(key_of(1), part(2), led, false, now));
  const Instant lost = now + 6 * late_max;
  teams.is_here(key_of(1), lost);
  teams.is_here(key_of(2), lost);  // another team
  session::TeamWish started_anew = part(1);
  started_anew.member = 11;
  const auto next =
      teams.admit(key_of(1), started_anew, not_led, false, is_in_time ? lost + late_max - Duration(1) : lost + late_max);
  REQUIRE(next);
  CHECK(next->seat == Seat::leads);
  CHECK((next->record == first->record) == is_in_time);
}

TEST_CASE("it is known whether all parts have come to a run that has ended") {
  Teams teams;
  REQUIRE(teams.admit(key_of(1), part(1), not_led, false, now));
  REQUIRE(teams.admit(key_of(1), part(2), led, false, now));
  CHECK_FALSE(teams.has_ended(key_of(1)));
  CHECK_FALSE(teams.awaits_parts(key_of(1)));
  teams.ended(key_of(1), well(), now);
  CHECK(teams.has_ended(key_of(1)));
  CHECK(teams.awaits_parts(key_of(1)));
  REQUIRE(teams.admit(key_of(1), part(3), not_led, false, now));
  CHECK_FALSE(teams.awaits_parts(key_of(1)));
}

}  // namespace
