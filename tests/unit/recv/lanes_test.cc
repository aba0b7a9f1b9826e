// The destination's lanes by themselves: mailboxes of an endpoint, buffers of a pool, and a test that puts into them.
#include "app/recv/lanes.h"

#include <catch2/catch.hpp>
#include <deque>

#include "tests/unit/session/link_fixture.h"

namespace ccixfer::recv {

using session::PoolTurns;
using namespace std::chrono_literals;

namespace {

// What the test says, then numbers that nothing else has.
class ScriptedEntropy final : public ports::Entropy {
 public:
  std::deque<uint64_t> next;
  uint64_t next_u64() override {
    if (next.empty()) return last_ += session::stripes * 16 + 1;
    const uint64_t value = next.front();
    next.pop_front();
    return value;
  }

 private:
  uint64_t last_ = uint64_t{1} << 40;
};

constexpr uint64_t key = 7;
constexpr uint64_t lane_session = 9;
constexpr uint64_t base = session::stripes * 100;

struct Rig {
  explicit Rig(uint32_t buffers = 16, bool lone = true)
      : side(net, "fake://here", 1),
        mailboxes(side.endpoint->mailboxes()),
        link(*side.endpoint, session::Hello{}, user),
        pool(session::segment_bytes_max, buffers),
        turns(std::make_shared<PoolTurns>(buffers, lone)),
        rate(std::make_shared<RateAllowance>(0)),
        lanes(make()) {}
  ~Rig() {
    if (!lanes) return;
    lanes->close_all();
    take_cancelled();
    lanes.reset();
  }
  [[nodiscard]] std::unique_ptr<Lanes> make() { return std::make_unique<Lanes>(link, mailboxes, pool, entropy, turns, rate); }
  // A lane at `base`, with that key and session.
  void up(session::LaneIndex lane) {
    entropy.next = {key, lane_session, base};
    lanes->up(lane);
    entropy.next.clear();
  }
  void turn(uint32_t buffers_max = 100, uint32_t in_jobs = 0) { lanes->turn(now, buffers_max, in_jobs); }
  [[nodiscard]] uint32_t posted() const { return pool.count() - pool.free_count(); }
  // What was posted and did not arrive comes back.
  size_t take_cancelled() {
    size_t cancelled = 0;
    while (const auto completion = mailboxes.next_completion()) cancelled += lanes->take(*completion) ? 0u : 1u;
    return cancelled;
  }
  Status put(uint64_t n, size_t length_bytes, uint64_t at = base) {
    ports::RemoteRef remote;
    remote.handle.kind = ports::HandleKind::mailbox;
    remote.handle.number = at + n % session::stripes;
    remote.handle.key = key;
    remote.put.source = 1;
    remote.put.operation = ++operations;
    remote.put.epoch = n / session::stripes;
    remote.put.total_bytes = length_bytes;
    const ports::Admission admission = mailboxes.begin_write(1, remote, length_bytes);
    if (admission.status != Status::success) return admission.status;
    CHECK(mailboxes.write_span(admission.ticket, 0).size() >= length_bytes);
    return mailboxes.end_write(admission.ticket, true).status;
  }
  [[nodiscard]] bool is_open(uint64_t mailbox) { return mailboxes.epoch(mailbox).has_value(); }

  session::fake::Net net;
  session::fake::Side side;
  rvma::MailboxTable& mailboxes;
  session::fake::Recorder user;
  session::Link link;
  memory::Pool pool;
  ScriptedEntropy entropy;
  std::shared_ptr<PoolTurns> turns;
  std::shared_ptr<RateAllowance> rate;
  std::unique_ptr<Lanes> lanes;
  Instant now{1s};
  uint64_t operations = 0;
};

}  // namespace

TEST_CASE("lanes__up_and_down__its_mailboxes_are_open_as_long_and_every_buffer_comes_back") {
  Rig rig;
  CHECK_FALSE(rig.lanes->has_live());
  CHECK(rig.lanes->next_deadline() == never);
  rig.up(3);
  CHECK(rig.lanes->has_live());
  CHECK(rig.lanes->is_live(3));
  CHECK_FALSE(rig.lanes->is_live(0));
  CHECK(rig.lanes->idle());
  CHECK(rig.is_open(base));
  for (const uint64_t mailbox : {base, base + 1, base + session::stripes - 1}) CHECK(rig.lanes->owns(mailbox));
  CHECK_FALSE(rig.lanes->owns(base - 1));
  CHECK_FALSE(rig.lanes->owns(base + session::stripes));
  rig.turn();
  CHECK(rig.posted() == window_segments_first);
  CHECK_FALSE(rig.lanes->idle());
  for (uint64_t stripe = 0; stripe < window_segments_first; ++stripe) CHECK(rig.is_open(base + stripe));
  CHECK_FALSE(rig.is_open(base + window_segments_first));  // opened when it is needed
  rig.lanes->down(0);                                      // there is none
  CHECK(rig.lanes->is_live(3));
  rig.lanes->down(3);
  CHECK_FALSE(rig.lanes->has_live());
  for (uint64_t stripe = 0; stripe < window_segments_first; ++stripe) CHECK_FALSE(rig.is_open(base + stripe));
  CHECK(rig.lanes->owns(base));  // until its buffers are back
  CHECK(rig.take_cancelled() == window_segments_first);
  CHECK(rig.lanes->idle());
  CHECK_FALSE(rig.lanes->owns(base));
  CHECK(rig.posted() == 0);
}

TEST_CASE("lanes__destroyed_while_one_lives__its_mailboxes_are_closed") {
  Rig rig;
  rig.up(0);
  REQUIRE(rig.is_open(base));
  CHECK(rig.turns->sessions() == 1);
  rig.lanes.reset();
  CHECK_FALSE(rig.is_open(base));
  CHECK(rig.turns->sessions() == 0);
}

TEST_CASE("lanes__fewer_buffers_than_lanes__one_each_as_far_as_they_go") {
  Rig rig;
  rig.up(0);
  rig.entropy.next = {key, lane_session + 1, 2 * base};
  rig.lanes->up(1);
  rig.entropy.next = {key, lane_session + 2, 3 * base};
  rig.lanes->up(2);
  rig.turn(2);
  CHECK(rig.posted() == 2);
  CHECK(rig.put(0, 10) == Status::success);
  CHECK(rig.put(0, 10, 2 * base) == Status::success);
  CHECK(rig.put(0, 10, 3 * base) != Status::success);
}

TEST_CASE("lanes__a_put_arrives__is_told_by_its_place_and_a_buffer_takes_its_turn") {
  Rig rig;
  rig.up(0);
  rig.turn();
  REQUIRE(rig.put(1, 50) == Status::success);
  REQUIRE(rig.put(0, 40) == Status::success);
  for (const uint64_t n : {1u, 0u}) {
    const auto completion = rig.mailboxes.next_completion();
    REQUIRE(completion);
    const auto arrival = rig.lanes->take(*completion);
    REQUIRE(arrival);
    CHECK(arrival->n == n);
    CHECK(arrival->lane_session == lane_session);
    CHECK(arrival->length_bytes == (n == 1 ? 50 : 40));
    CHECK(arrival->buffer.bytes().size() == session::segment_bytes_max);
  }
  CHECK(rig.posted() == window_segments_first - 2);
  rig.now += 1ms;
  rig.turn();  // the source waits for credit: the window has doubled
  CHECK(rig.posted() == 2 * window_segments_first);
}

TEST_CASE("lanes__segments_beyond_the_stripes__go_round_in_epochs") {
  Rig rig;
  rig.up(0);
  for (uint64_t n = 0; n < 2 * session::stripes + 5; ++n) {
    rig.turn(4);
    REQUIRE(rig.put(n, 10) == Status::success);
    const auto completion = rig.mailboxes.next_completion();
    REQUIRE(completion);
    const auto arrival = rig.lanes->take(*completion);
    REQUIRE(arrival);
    CHECK(arrival->n == n);
  }
  rig.lanes->down(0);
  for (const uint64_t stripe : {uint64_t{0}, uint64_t{5}, uint64_t{session::stripes - 1}}) CHECK_FALSE(rig.is_open(base + stripe));
  rig.take_cancelled();
  CHECK(rig.posted() == 0);
}

TEST_CASE("lanes__its_mailbox_is_taken__another_is_drawn_eight_times") {
  Rig rig;
  REQUIRE(rig.mailboxes.open(base, {.key = 1}) == Status::success);
  rig.entropy.next = {key, lane_session};
  const bool often_enough = GENERATE(true, false);
  for (int i = 0; i < (often_enough ? 7 : 8); ++i) rig.entropy.next.push_back(base + 3);  // the low bits are of no matter
  rig.lanes->up(0);
  CHECK(rig.lanes->is_live(0) == often_enough);
  CHECK_FALSE(rig.lanes->owns(base));
  rig.turn();
  CHECK(rig.posted() == (often_enough ? window_segments_first : 0));
}

TEST_CASE("lanes__a_lane_of_ours_has_that_base__another_is_drawn") {
  Rig rig;
  rig.up(0);
  rig.turn();
  rig.lanes->down(0);  // its buffers are not back
  rig.entropy.next = {key + 1, lane_session + 1, base, 2 * base};
  rig.lanes->up(0);
  CHECK(rig.lanes->owns(2 * base));
  CHECK(rig.take_cancelled() == window_segments_first);
  CHECK_FALSE(rig.lanes->owns(base));
  CHECK(rig.lanes->owns(2 * base));
}

TEST_CASE("lanes__up_twice__the_second_takes_its_place") {
  Rig rig;
  rig.up(0);
  rig.turn();
  rig.entropy.next = {key + 1, 0, 0, lane_session + 1, 2 * base};  // no lane session is 0
  rig.lanes->up(0);
  CHECK_FALSE(rig.is_open(base));
  CHECK(rig.is_open(2 * base));
  CHECK(rig.take_cancelled() == window_segments_first);
  rig.turn();
  REQUIRE(rig.put(0, 10, 2 * base) == Status::mailbox_key);
  CHECK(rig.posted() == window_segments_first);
}

TEST_CASE("lanes__a_mailbox_cannot_be_posted_to__the_buffer_is_free_again") {
  Rig rig;
  rig.up(0);
  REQUIRE(rig.mailboxes.close(base) == Status::success);
  rig.turn();
  CHECK(rig.posted() == 0);
  CHECK(rig.lanes->idle());
}

TEST_CASE("lanes__several__share_evenly_what_the_session_may_hold") {
  Rig rig;
  rig.lanes->up(0);
  rig.lanes->up(1);
  SECTION("as much as their windows") {
    rig.turn();
    CHECK(rig.posted() == 2 * window_segments_first);
  }
  SECTION("less than that") {
    rig.turn(5);
    CHECK(rig.posted() == 5);  // two each, and one of them what is left
  }
  SECTION("less than one each: by turns") {
    rig.turn(1);
    CHECK(rig.posted() == 1);
    rig.lanes->down(0);
    const size_t of_the_first = rig.take_cancelled();
    CHECK(of_the_first == 1);
    rig.turn(1);
    CHECK(rig.posted() == 1);
  }
  SECTION("what is in jobs counts") {
    rig.turn(6, 4);
    CHECK(rig.posted() == 2);
    rig.turn(6, 6);
    CHECK(rig.posted() == 2);
    rig.turn(6, 3);
    CHECK(rig.posted() == 3);
  }
  SECTION("nothing") {
    rig.turn(0);
    CHECK(rig.posted() == 0);
  }
}

TEST_CASE("lanes__the_first_segment_takes_a_long_round_trip__all_lanes_have_large_windows") {
  Rig rig(4 * window_segments_long_path);
  rig.up(0);
  rig.lanes->up(1);
  rig.turn();
  CHECK(rig.posted() == 2 * window_segments_first);
  REQUIRE(rig.put(0, session::segment_trailer_bytes) == Status::success);
  const auto completion = rig.mailboxes.next_completion();
  REQUIRE(completion);
  static_cast<void>(rig.lanes->take(*completion));
  SECTION("a long one") {
    rig.now += window_long_path_least;
    rig.turn(1000);
    CHECK(rig.posted() == 2 * window_segments_long_path);
    rig.lanes->up(2);
    rig.turn(1000);
    CHECK(rig.posted() == 3 * window_segments_long_path);
  }
  SECTION("a short one") {
    rig.now += window_long_path_least - 1ns;
    rig.turn(1000);
    CHECK(rig.posted() == 2 * window_segments_first);
    rig.lanes->up(2);
    rig.turn(1000);
    CHECK(rig.posted() == 3 * window_segments_first);
  }
}

TEST_CASE("lanes__a_later_segment_waited_long__the_windows_grow_as_they_did") {
  Rig rig(4 * window_segments_long_path);
  rig.up(0);
  rig.turn();
  for (uint64_t n = 0; n < 2; ++n) {
    REQUIRE(rig.put(n, session::segment_trailer_bytes) == Status::success);
    const auto completion = rig.mailboxes.next_completion();
    REQUIRE(completion);
    static_cast<void>(rig.lanes->take(*completion));
    rig.turn(1000);
    rig.now += window_long_path_least;
  }
  CHECK(rig.posted() == 2 * window_segments_first);  // doubled once
}

TEST_CASE("lanes__a_question_for_a_buffer__within_the_credit_only") {
  Rig rig;
  CHECK(rig.lanes->asked(0, 5));  // of a lane on its way down
  rig.up(0);
  CHECK(rig.lanes->asked(0, 0));
  CHECK_FALSE(rig.lanes->asked(0, 1));
  rig.turn();
  CHECK(rig.lanes->asked(0, window_segments_first));
  CHECK(rig.lanes->asked(0, 1));
  CHECK_FALSE(rig.lanes->asked(0, window_segments_first + 1));
}

// Many sessions and few buffers: nothing is posted ahead, and who asks gets one at a time.
TEST_CASE("lanes__small_part_of_the_pool__a_buffer_only_for_who_asks") {
  Rig rig(4, false);
  auto other = rig.make();
  REQUIRE(rig.turns->ahead() == 0);
  rig.up(0);
  rig.turn();
  CHECK(rig.posted() == 0);
  CHECK(rig.lanes->next_deadline() == never);
  REQUIRE(rig.lanes->asked(0, 0));
  rig.turn();
  CHECK(rig.posted() == 1);
  CHECK(rig.lanes->next_deadline() == never);
  rig.turn();
  CHECK(rig.posted() == 1);         // once a question
  REQUIRE(rig.lanes->asked(0, 0));  // of before that buffer: it is answered
  rig.turn();
  CHECK(rig.posted() == 1);
  REQUIRE(rig.lanes->asked(0, 1));
  rig.turn();
  CHECK(rig.posted() == 1);  // it has not used that one
  REQUIRE(rig.put(0, 10) == Status::success);
  auto completion = rig.mailboxes.next_completion();
  REQUIRE(completion);
  auto arrival = rig.lanes->take(*completion);
  REQUIRE(arrival);
  rig.turn(100, 2);  // the part of the session is two
  CHECK(rig.posted() == 1);
  rig.turn(100, 1);
  CHECK(rig.posted() == 2);
  arrival.reset();
}

TEST_CASE("lanes__another_session_has_half_of_the_pool_ahead__nothing_is_posted_ahead_until_it_comes_back") {
  Rig rig(32, false);
  auto other = rig.make();
  for (uint32_t i = 0; i < 16; ++i) rig.turns->posted_ahead();  // by the other one
  rig.up(0);
  rig.turn();
  CHECK(rig.posted() == 0);
  REQUIRE(rig.lanes->asked(0, 0));
  rig.turn();
  CHECK(rig.posted() == 1);  // what is asked for is of the other half
  rig.turns->ahead_came_back();
  rig.turn();
  CHECK(rig.posted() == 2);
  rig.lanes->close_all();
  CHECK(rig.take_cancelled() == 2);
  CHECK(rig.turns->may_post_ahead());
  for (uint32_t i = 0; i < 15; ++i) rig.turns->ahead_came_back();
}

TEST_CASE("lanes__the_pool_is_used_up__asks_again_a_little_later_and_in_turn") {
  Rig rig(4, false);
  auto other = rig.make();
  rig.up(0);
  rig.entropy.next = {key, lane_session, 2 * base};
  other->up(0);
  std::vector<memory::Loan> lent;
  while (rig.pool.free_count() > 0) lent.push_back(rig.pool.lend());
  REQUIRE(rig.lanes->asked(0, 0));
  REQUIRE(other->asked(0, 0));
  rig.turn();
  other->turn(rig.now, 100, 0);
  CHECK(rig.lanes->next_deadline() > rig.now);
  CHECK(rig.lanes->next_deadline() <= rig.now + 100ms);
  lent.pop_back();
  other->turn(rig.now, 100, 0);  // it asked later
  CHECK(rig.pool.free_count() == 1);
  CHECK(other->next_deadline() != never);
  SECTION("the first takes it") {
    rig.turn();
    CHECK(rig.pool.free_count() == 0);
    CHECK(rig.lanes->next_deadline() == never);
  }
  SECTION("the first goes") {
    rig.lanes->down(0);
    other->turn(rig.now, 100, 0);
    CHECK(rig.pool.free_count() == 0);
    CHECK(other->next_deadline() == never);
  }
  SECTION("there is room for both") {
    lent.pop_back();
    other->turn(rig.now, 100, 0);
    CHECK(rig.pool.free_count() == 1);
  }
  lent.clear();
  rig.lanes->close_all();
  other->close_all();
  while (const auto completion = rig.mailboxes.next_completion()) {
    Lanes& of = rig.lanes->owns(completion->mailbox) ? *rig.lanes : *other;
    CHECK_FALSE(of.take(*completion).has_value());
  }
  CHECK(rig.lanes->idle());
  CHECK(other->idle());
  CHECK(rig.pool.free_count() == rig.pool.count());
}

TEST_CASE("lanes__rate__what_is_not_used_comes_back_and_the_next_buffer_has_its_time") {
  Rig rig;
  rig.lanes.reset();
  rig.rate = std::make_shared<RateAllowance>(session::segment_bytes_max);
  rig.lanes = rig.make();
  rig.up(0);
  rig.turn();
  CHECK(rig.posted() == 1);
  CHECK(rig.lanes->next_deadline() > rig.now);
  CHECK(rig.lanes->next_deadline() <= rig.now + 10ms);
  rig.turn();
  CHECK(rig.posted() == 1);
  rig.now += 2s;
  rig.turn();
  CHECK(rig.posted() == 2);
  rig.lanes->down(0);
  CHECK(rig.take_cancelled() == 2);
  rig.entropy.next = {key, lane_session, 2 * base};
  rig.lanes->up(0);
  rig.turn();
  CHECK(rig.posted() == 1);  // both came back empty, and no more than one is saved up
}

}  // namespace ccixfer::recv
