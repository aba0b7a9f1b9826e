// The source's small tables: pieces, entries' phases, lanes, the rate.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "app/send/entry_queue.h"
#include "app/send/entry_table.h"
#include "app/send/lane_table.h"
#include "app/send/rate_cap.h"
#include "app/session/item.h"

namespace ccixfer::send {
namespace {
constexpr uint64_t segment = session::piece_bytes;

TEST_CASE("pieces__random_adds_and_takes__as_a_plain_set") {
  const unsigned seed = 20240611;
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    PieceSet set;
    std::set<uint64_t> plain;
    for (int i = 0; i < 40; ++i) {
      const uint64_t first = random() % 60;
      const uint64_t count = random() % 9;
      switch (random() % 3) {
        case 0:
          REQUIRE(set.add(first, count));
          for (uint64_t piece = first; piece < first + count; ++piece) plain.insert(piece);
          break;
        case 1:
          REQUIRE(set.remove(first) == (plain.erase(first) == 1));
          break;
        default:
          if (plain.empty()) break;
          REQUIRE(set.take() == *plain.begin());
          plain.erase(plain.begin());
      }
      REQUIRE(set.count() == plain.size());
      REQUIRE(set.empty() == plain.empty());
      std::set<uint64_t> missing;
      for (uint64_t piece = first; piece < first + count; ++piece) {
        if (plain.count(piece) == 0) missing.insert(piece);
      }
      for (const session::Want::Range& range : set.missing(first, first + count)) {
        REQUIRE(range.count > 0);
        for (uint64_t piece = range.first; piece < range.first + range.count; ++piece) REQUIRE(missing.erase(piece) == 1);
      }
      REQUIRE(missing.empty());
    }
  }
}

TEST_CASE("entry_phase__every_pair__only_these_moves") {
  using P = EntryPhase;
  const std::vector<std::pair<P, P>> allowed = {
      {P::free, P::announced}, {P::announced, P::queued}, {P::announced, P::sent}, {P::announced, P::free},
      {P::queued, P::reading}, {P::queued, P::free},      {P::reading, P::sent},   {P::reading, P::refused},
      {P::sent, P::refused},   {P::reading, P::ended},    {P::reading, P::free},   {P::sent, P::queued},
      {P::sent, P::ended},     {P::sent, P::free},        {P::refused, P::ended},  {P::refused, P::free},
      {P::ended, P::free},     {P::announced, P::ended},  {P::queued, P::ended},
  };
  for (int from = 0; from < 7; ++from) {
    for (int to = 0; to < 7; ++to) {
      const std::pair<P, P> move{static_cast<P>(from), static_cast<P>(to)};
      CHECK(may_move(move.first, move.second) == (std::find(allowed.begin(), allowed.end(), move) != allowed.end()));
    }
  }
}

TEST_CASE("entries__slots_are_reused__and_found_by_index") {
  EntryTable table;
  for (uint64_t index = 0; index < 100000; ++index) {
    Entry& entry = table.at(table.add(index, 0));
    entry.path = "some/path/that/is/longer/than/a/small/string";
    if (index < 5) continue;
    Entry* found = table.find(index - 5);
    REQUIRE(found != nullptr);
    table.end(*found);
    REQUIRE(table.find(index - 5) == nullptr);
  }
  CHECK(table.used() == 5);
}

TEST_CASE("lanes__choice__fewest_in_the_air_among_those_with_credit") {
  LaneTable lanes;
  CHECK(!lanes.choose(segment));
  for (const session::LaneIndex lane : std::initializer_list<session::LaneIndex>{0, 1, 2}) {
    lanes.up(lane);
    REQUIRE(lanes.opened(lane, session::LaneOpen{1, 100, 5, 16}));
  }
  CHECK(!lanes.choose(segment));
  REQUIRE(lanes.credit(1, {2}));
  REQUIRE(lanes.credit(2, {2}));
  CHECK(lanes.choose(segment) == 1);
  lanes.put_accepted(1);
  CHECK(lanes.choose(segment) == 2);
  lanes.put_accepted(2);
  lanes.put_accepted(2);
  CHECK(lanes.choose(segment) == 1);
  lanes.put_accepted(1);
  CHECK(!lanes.choose(segment));
  CHECK(!lanes.has_idle_credit());
  REQUIRE(lanes.credit(2, {3}));
  lanes.put_ended(2);
  lanes.put_ended(2);
  CHECK(lanes.has_idle_credit());
  lanes.stall(2);
  CHECK(!lanes.choose(segment));
  lanes.unstall();
  CHECK(lanes.choose(segment) == 2);
  lanes.down(2);
  CHECK(!lanes.choose(segment));
}

TEST_CASE("lanes__destination_wants_to_be_asked__once_for_each_credit_that_is_used_up") {
  LaneTable lanes;
  CHECK(!lanes.ask());
  for (const session::LaneIndex lane : std::initializer_list<session::LaneIndex>{0, 1}) {
    lanes.up(lane);
    REQUIRE(lanes.opened(lane, session::LaneOpen{1, 100, 5, 16}));
  }
  CHECK(!lanes.ask());
  REQUIRE(lanes.credit(1, {0, true}));
  CHECK(lanes.ask() == 1);
  CHECK(!lanes.ask());  // it was
  REQUIRE(lanes.credit(1, {2, true}));
  CHECK(!lanes.ask());  // there is credit
  lanes.put_accepted(1);
  CHECK(!lanes.ask());
  lanes.put_accepted(1);
  CHECK(lanes.ask() == 1);
  REQUIRE(lanes.credit(1, {2, false}));
  REQUIRE(lanes.credit(0, {0, true}));
  CHECK(lanes.ask() == 0);
  lanes.down(0);
  lanes.up(0);  // another lane session: the question died with the last one
  REQUIRE(lanes.opened(0, session::LaneOpen{2, 100, 5, 16}));
  REQUIRE(lanes.credit(0, {0, true}));
  CHECK(lanes.ask() == 0);
}

TEST_CASE("entries__a_place_that_is_used_again__is_as_new") {
  EntryTable table;
  Entry& before = table.at(table.add(1, 0));
  before.resend = before.stream = true;
  before.counted_bytes = before.before_bytes = 5;
  before.outcome.outcome = session::SourceOutcome::unreadable;
  before.items = session::item_made;
  before.path = before.target = before.linked_to = "f";
  before.large = std::make_unique<LargeFile>();
  table.move(before, EntryPhase::queued);
  table.move(before, EntryPhase::reading);
  table.move(before, EntryPhase::sent);
  CHECK(before.was_sent);
  table.end(before);
  CHECK(table.find(1) == nullptr);
  CHECK(table.used() == 0);
  const uint32_t slot = table.add(2, 0);
  const Entry& after = table.at(slot);
  REQUIRE(&after == &before);
  CHECK(after.index == 2);
  CHECK(table.find(2) == &after);
  CHECK_FALSE((after.resend || after.was_sent || after.stream));
  CHECK(after.counted_bytes + after.before_bytes == 0);
  CHECK(after.jobs == 0);
  CHECK(after.outcome.outcome == session::SourceOutcome::ok);
  CHECK(after.items == 0);
  CHECK(after.path.empty());
  CHECK((after.target.empty() && after.linked_to.empty()));
  CHECK(after.large == nullptr);
}

TEST_CASE("entries__one_ends_while_a_job_uses_it__its_place_is_kept_until_the_job_ends") {
  EntryTable table;
  Entry& entry = table.at(table.add(1, 3));
  CHECK(table.has_entries_of(3));
  CHECK_FALSE(table.has_entries_of(2));
  CHECK_FALSE(table.has_entries_of(4));
  table.move(entry, EntryPhase::queued);
  table.move(entry, EntryPhase::reading);
  entry.jobs = 2;
  CHECK(table.job_ended(entry));
  ++entry.jobs;
  table.end(entry);
  CHECK(table.find(1) == nullptr);
  CHECK_FALSE(table.job_ended(entry));
  CHECK(table.used() == 1);
  CHECK(table.has_entries_of(3));
  CHECK_FALSE(table.job_ended(entry));
  CHECK(table.used() == 0);
  CHECK_FALSE(table.has_entries_of(3));
}

TEST_CASE("entry_queue__entries_end_while_they_wait__passed_over_and_purged") {
  EntryTable table;
  EntryQueue queue(table);
  CHECK(queue.front() == nullptr);
  Entry& first = table.at(table.add(0, 0));
  table.move(first, EntryPhase::queued);
  queue.push(first);
  table.end(first);
  Entry& second = table.at(table.add(1, 0));  // in the slot of the first
  REQUIRE(&second == &first);
  CHECK(queue.front() == nullptr);
  table.move(second, EntryPhase::queued);
  queue.push(second);
  CHECK(queue.front() == &second);
  const size_t most = 2 * size_t{session::entries_outstanding_max};
  for (uint64_t index = 2; index < 2 * most; ++index) {
    Entry& ends = table.at(table.add(index, 0));
    table.move(ends, EntryPhase::queued);
    queue.push(ends);
    table.end(ends);
    REQUIRE(queue.places() <= most);
  }
  CHECK(queue.front() == &second);
  queue.pop();
  CHECK(queue.front() == nullptr);
}

// Pieces of the largest file, asked for one after the other from either end, are one range.
TEST_CASE("pieces__that_touch__are_one_range_however_many") {
  for (const bool upwards : {true, false}) {
    PieceSet pieces;
    constexpr uint64_t many = PieceSet::ranges_max + 10;
    bool fits = true;
    for (uint64_t i = 0; i < many; ++i) fits = pieces.add(upwards ? i : many - 1 - i, 1) && fits;
    CHECK(fits);
    CHECK(pieces.count() == many);
    CHECK(pieces.take() == 0);
  }
  PieceSet apart;
  bool fits = true;
  for (uint64_t i = 0; i < PieceSet::ranges_max; ++i) fits = apart.add(2 * i, 1) && fits;
  CHECK(fits);
  CHECK_FALSE(apart.add(2 * PieceSet::ranges_max, 1));
}

namespace {
LaneTable two_lanes() {
  LaneTable lanes;
  for (const session::LaneIndex lane : std::initializer_list<session::LaneIndex>{0, 1}) {
    lanes.up(lane);
    REQUIRE(lanes.opened(lane, session::LaneOpen{1, 100, 5, 16}));
    REQUIRE(lanes.credit(lane, {8}));
  }
  return lanes;
}
}  // namespace

TEST_CASE("lanes__slow_lane_beside_a_quick_one__takes_no_more_than_its_path_holds") {
  LaneTable lanes = two_lanes();
  lanes.put_took(1, segment, std::chrono::milliseconds(10));  // quick enough that nothing holds it back
  for (int put = 0; put < 3; ++put) lanes.put_accepted(1, segment);
  lanes.put_accepted(0, segment);
  CHECK(lanes.choose(segment) == 0);  // the one with less in the air
  lanes.put_accepted(0, segment);
  lanes.put_took(0, segment, std::chrono::seconds(1));
  lanes.put_took(0, 2 * segment, std::chrono::seconds(2));  // one at a time would have been as quick
  CHECK(lanes.choose(segment) == 1);
  lanes.put_ended(0, segment);
  lanes.put_ended(0, segment);
  CHECK(lanes.choose(segment) == 0);
  lanes.put_accepted(0, segment);
  lanes.down(1);
  CHECK(lanes.choose(segment) == 0);  // alone it has what its credit allows
  CHECK(lanes.has_credit());
}

TEST_CASE("lanes__until_a_put_has_ended__each_lane_beside_others_has_one_and_the_next") {
  LaneTable lanes = two_lanes();
  for (const session::LaneIndex lane : std::initializer_list<session::LaneIndex>{0, 1, 0, 1}) {
    CHECK(lanes.choose(segment) == lane);
    lanes.put_accepted(lane, segment);
  }
  CHECK_FALSE(lanes.choose(segment));
}

TEST_CASE("lanes__slow_lane_at_the_end__takes_none_that_a_quick_one_brings_sooner") {
  LaneTable lanes = two_lanes();
  lanes.put_took(0, 2 * segment, std::chrono::milliseconds(100));
  lanes.put_took(1, segment, std::chrono::seconds(2));
  lanes.put_accepted(0, segment);
  CHECK(lanes.choose(segment) == 0);        // though it has more in the air
  CHECK(lanes.choose(100 * segment) == 1);  // so much is ready that the quick one is busy meanwhile
  while (lanes.choose(segment)) {
    CHECK(lanes.choose(segment) == 0);
    lanes.put_accepted(0, segment);
  }
  CHECK(lanes.at(1).in_air == 0);  // the quick one has no room now, and is waited for
  CHECK(lanes.at(0).in_air > 1);
}

TEST_CASE("lanes__a_put_that_goes_again__is_in_the_air_and_takes_no_number") {
  LaneTable lanes;
  for (const session::LaneIndex lane : std::initializer_list<session::LaneIndex>{0, 1}) {
    lanes.up(lane);
    REQUIRE(lanes.opened(lane, session::LaneOpen{1, 100, 5, 16}));
    REQUIRE(lanes.credit(lane, {1}));
  }
  lanes.put_accepted_again(0);
  CHECK(lanes.anything_in_air());
  CHECK(lanes.choose(segment) == 1);  // the one with less in the air
  lanes.put_ended(0);
  CHECK_FALSE(lanes.anything_in_air());
  CHECK(lanes.choose(segment) == 0);
  lanes.put_accepted(0);
  lanes.put_accepted(1);
  CHECK(!lanes.choose(segment));  // only what went for the first time used its credit
}

TEST_CASE("lanes__nonsense__refused") {
  LaneTable lanes;
  lanes.up(0);
  CHECK(!lanes.credit(0, {4}));
  CHECK(!lanes.opened(0, session::LaneOpen{1, 100, 5, 0}));
  CHECK(!lanes.opened(0, session::LaneOpen{1, ~uint64_t{0} - 3, 5, 16}));
  CHECK(lanes.opened(0, session::LaneOpen{1, 100, 5, 16}));
  CHECK(!lanes.opened(0, session::LaneOpen{1, 100, 5, 16}));
  CHECK(lanes.credit(0, {4}));
  CHECK(!lanes.credit(0, {3}));
  CHECK(lanes.credit(7, {3}));  // of a lane that is gone: late, not wrong
}

TEST_CASE("lanes__a_put_ends_on_a_lane_that_never_was__nothing") {
  LaneTable lanes;
  lanes.put_ended(0);
  lanes.up(0);
  REQUIRE(lanes.opened(0, session::LaneOpen{1, 100, 5, 16}));
  REQUIRE(lanes.credit(0, {4}));
  lanes.put_ended(0);
  lanes.put_ended(1);
  CHECK_FALSE(lanes.anything_in_air());
  CHECK(lanes.choose(segment) == 0);
}

TEST_CASE("rate__debt__is_paid_before_the_next") {
  RateCap rate(1'000'000);
  Instant now{};
  now += std::chrono::seconds(100);
  CHECK(rate.may_send(now));
  rate.sent(now, 500'000);
  CHECK(!rate.may_send(now));
  CHECK(rate.free_at() - now == std::chrono::milliseconds(480));
  CHECK(rate.may_send(rate.free_at()));
  // Wherever the clock begins, and after any idle time, there is no more than a burst ahead of the rate.
  for (const Instant begin : {Instant{} + std::chrono::seconds(1), Instant{} + std::chrono::hours(24 * 365 * 50)}) {
    RateCap anywhere(1'000'000);
    REQUIRE(anywhere.may_send(begin));
    anywhere.sent(begin, 1'000'000);
    CHECK_FALSE(anywhere.may_send(begin + std::chrono::milliseconds(979)));
    CHECK(anywhere.may_send(begin + std::chrono::seconds(1)));
    anywhere.sent(begin + std::chrono::hours(1), 1'000'000);
    CHECK_FALSE(anywhere.may_send(begin + std::chrono::hours(1) + std::chrono::milliseconds(979)));
  }
  RateCap none(0);
  none.sent(now, 1u << 30);
  CHECK(none.may_send(now));
}

TEST_CASE("rate__another_one_while_it_runs__debts_are_paid_at_the_new_one") {
  const Instant now = Instant{} + std::chrono::seconds(100);
  RateCap rate(1'000'000);
  rate.sent(now, 1'020'000);  // a second, behind the burst
  CHECK(rate.free_at() - now == std::chrono::seconds(1));
  rate.set(10'000'000, now);
  CHECK(rate.free_at() - now == std::chrono::milliseconds(100));
  rate.set(500'000, now);
  CHECK(rate.free_at() - now == std::chrono::seconds(2));
  rate.set(0, now);
  CHECK(rate.may_send(now));
  rate.sent(now, 1u << 30);
  CHECK(rate.may_send(now));
  rate.set(1'000'000, now);  // what went while there was no cap is no debt
  CHECK(rate.may_send(now));
  rate.sent(now, 1'000'000);
  CHECK_FALSE(rate.may_send(now + std::chrono::milliseconds(979)));
}

// Whatever is asked for: 64 KiB to a segment at a time, the rate changed in the middle, no more than a burst and a segment off.
TEST_CASE("rate__a_timetable__holds_within_each_ten_seconds_to_a_burst_and_a_segment") {
  for (const uint64_t size : {uint64_t{65'536}, uint64_t{4} << 20}) {
    RateCap rate(100'000'000);
    Instant now = Instant{} + std::chrono::hours(1);
    for (const uint64_t bytes_per_s : {uint64_t{100'000'000}, uint64_t{20'000'000}, uint64_t{400'000'000}}) {
      rate.set(bytes_per_s, now);
      const Instant end = now + std::chrono::seconds(10);
      double sent = 0;
      while (now < end) {
        if (rate.may_send(now)) {
          rate.sent(now, size);
          sent += static_cast<double>(size);
        } else {
          now = std::min(end, rate.free_at());
        }
      }
      const double wanted = static_cast<double>(bytes_per_s) * 10;
      CHECK(std::abs(sent - wanted) <= 0.05 * wanted);
    }
  }
}

}  // namespace
}  // namespace ccixfer::send
