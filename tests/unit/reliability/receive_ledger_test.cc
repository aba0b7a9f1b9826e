// Which packet numbers are fresh, and when acknowledgements are due.
#include "core/reliability/receive_ledger.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/reliability/rtt.h"
#include "transports/sim/random.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Range;
using reliability::ReceiveLedger;
using Verdict = reliability::ReceiveLedger::Verdict;

namespace {
const Instant start{std::chrono::seconds(100)};
}

TEST_CASE("receive_ledger__in_order_old_duplicate_future__each_number_fresh_once") {
  ReceiveLedger ledger;
  REQUIRE(ledger.look(0) == Verdict::fresh);
  ledger.received(0, true, start);
  REQUIRE(ledger.look(0) == Verdict::duplicate);
  REQUIRE(ledger.look(5) == Verdict::fresh);             // future
  REQUIRE(ledger.look(UINT64_MAX) == Verdict::too_old);  // who says this has nothing to say after it
  REQUIRE(ledger.look(UINT64_MAX - 1) == Verdict::fresh);
  ledger.received(5, true, start);
  REQUIRE(ledger.look(5) == Verdict::duplicate);
  REQUIRE(ledger.look(3) == Verdict::fresh);  // old, but did not come yet
  ledger.received(3, true, start);
  REQUIRE(ledger.look(3) == Verdict::duplicate);
  ledger.received(4, true, start);
  const auto ack = ledger.take_ack(start);
  REQUIRE(ack.count == 2);
  REQUIRE(ack.list[0] == Range{3, 5});
  REQUIRE(ack.list[1] == Range{0, 0});
}

TEST_CASE("receive_ledger__ack__after_a_moment_at_the_second_and_when_out_of_order_at_once") {
  ReceiveLedger ledger;
  REQUIRE_FALSE(ledger.ack_wanted());
  ledger.received(0, false, start);  // an ack alone asks for none
  REQUIRE_FALSE(ledger.ack_wanted());
  REQUIRE(ledger.ack_deadline() == never);
  ledger.received(1, true, start);
  REQUIRE(ledger.ack_deadline() == start + reliability::ack_delay_max);
  ledger.received(2, true, start + 100us);
  REQUIRE(ledger.ack_deadline() == start + 100us);
  REQUIRE(ledger.take_ack(start + 300us).delay == 200us);
  REQUIRE_FALSE(ledger.ack_wanted());
  REQUIRE(ledger.ack_deadline() == never);
  ledger.received(4, true, start + 1s);
  REQUIRE(ledger.ack_deadline() == start + 1s);
}

TEST_CASE("receive_ledger__more_gaps_than_it_remembers__the_oldest_count_as_duplicates") {
  ReceiveLedger ledger;
  for (uint64_t i = 0; i <= ReceiveLedger::ranges_max; ++i) ledger.received(2 * i, true, start);
  REQUIRE(ledger.look(0) == Verdict::too_old);
  REQUIRE(ledger.look(1) == Verdict::fresh);
  REQUIRE(ledger.take_ack(start).count == ReceiveLedger::ranges_max);
}

TEST_CASE("receive_ledger__the_ack_arrived__what_is_below_is_forgotten_and_never_fresh") {
  ReceiveLedger ledger;
  for (uint64_t i = 0; i < 200; i += 2) ledger.received(i, true, start);
  ledger.ack_arrived(190);
  REQUIRE(ledger.look(190 - ReceiveLedger::late_numbers - 1) == Verdict::too_old);
  REQUIRE(ledger.look(191) == Verdict::fresh);
  REQUIRE(ledger.look(10) == Verdict::too_old);
}

TEST_CASE("receive_ledger__random_order_and_duplicates__never_fresh_twice_acks_what_came") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    ReceiveLedger ledger;
    std::set<uint64_t> came;
    for (uint64_t step = 0; step < 500; ++step) {
      const uint64_t number = step / 2 + random.below(random.chance(0.1) ? 200 : 8);
      const bool fresh = ledger.look(number) == Verdict::fresh;
      if (fresh) {
        REQUIRE(came.insert(number).second);
        ledger.received(number, random.chance(0.8), start);
      } else if (!came.contains(number)) {
        REQUIRE(ledger.look(number) == Verdict::too_old);
      }
      if (random.chance(0.2)) {
        const auto ack = ledger.take_ack(start);
        for (const Range& range : ack.ranges()) {
          for (uint64_t n = range.first; n <= range.last; ++n) REQUIRE(came.contains(n));
        }
        REQUIRE(ack.largest() == *came.rbegin());
        if (random.chance(0.3)) ledger.ack_arrived(ack.largest());
      }
    }
  }
}

TEST_CASE("receive_ledger__the_ack_arrived_and_nothing_is_missing__keeps_late_numbers_only") {
  ReceiveLedger ledger;
  for (uint64_t i = 0; i < 200; ++i) ledger.received(i, true, start);
  ledger.ack_arrived(10);
  REQUIRE(ledger.look(0) == Verdict::duplicate);  // fewer than are kept
  REQUIRE(ledger.look(200) == Verdict::fresh);
  ledger.ack_arrived(190);
  const uint64_t kept = 190 - ReceiveLedger::late_numbers;
  REQUIRE(ledger.look(kept - 1) == Verdict::too_old);
  REQUIRE(ledger.look(kept) == Verdict::duplicate);
  ledger.ack_arrived(100);  // of an older one: nothing comes back
  REQUIRE(ledger.look(kept - 1) == Verdict::too_old);
  REQUIRE(ledger.look(200) == Verdict::fresh);
}

// Every second packet brings an acknowledgement. Late numbers come behind as many others as are in flight.
TEST_CASE("receive_ledger__packets_in_flight__cost_the_same_whether_64_or_6000") {
  const auto steps = [](uint64_t in_flight, uint64_t every) {  // one of `every` comes late
    ReceiveLedger ledger;
    uint64_t packets = 0;
    const auto receive = [&](uint64_t number) {
      if (ledger.look(number) != Verdict::fresh) return;
      ledger.received(number, true, start);
      if (++packets % 2 == 0) static_cast<void>(ledger.take_ack(start));
      if (number > in_flight) ledger.ack_arrived(number - in_flight);
    };
    for (uint64_t number = 0; number < 20'000; ++number) {
      if (every == 0 || number % every != 0) receive(number);
      if (every != 0 && number >= in_flight && number % every == 0) receive(number - in_flight / every * every);
    }
    return static_cast<double>(ledger.steps()) / static_cast<double>(packets);
  };
  CHECK(steps(64, 0) == 1);
  CHECK(steps(6000, 0) == 1);
  constexpr double most = 1 + 6 + ReceiveLedger::ranges_max;
  for (const uint64_t every : {3u, 10u, 100u}) {
    CAPTURE(every);
    CHECK(steps(64, every) < most);
    CHECK(steps(6000, every) < most);
  }
}

TEST_CASE("receive_ledger__the_peer_knows_more_than_we_keep__all_of_it_goes") {
  ReceiveLedger ledger;
  ledger.received(3, true, Instant{std::chrono::seconds(1)});
  ledger.ack_arrived(1'000'000'000);
  CHECK(ledger.look(3) == ReceiveLedger::Verdict::too_old);
  CHECK(ledger.look(1'000'000'001) == ReceiveLedger::Verdict::fresh);
}
