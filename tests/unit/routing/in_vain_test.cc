// What waits at a router behind an end that stood still lately, while a router before it has nothing left for others.
#include "tests/unit/routing/passing.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

// Connections from a router on the left to an end on the right, with a penalty's share of one buffer.
struct Stopped : Passing {
  Stopped() : Passing(true, 1) {
    connections.push_back(left.connection);
    while (connections.size() < 3) connections.push_back(open(true, 1));
    open_target();
  }
  void speak_on(size_t number) { left.connection = connections[number]; }
  void offer_on(size_t number) {
    speak_on(number);
    FragmentMessage fragment = offer(left, MessageKind::write_request, number);
    fragment.data_class = 1;
    left.say(fragment);
    rest();
  }
  // The router on the left says that others wait for what this connection holds there.
  bool cut_when_told(size_t number) {
    speak_on(number);
    left.gone = false;
    left.say_plain(MessageKind::others_wait);
    rest();
    return left.gone && left.lost == connections[number];
  }
  // The end stands still, is cut off for it on its first connection, and is remembered.
  void cut_off_the_first() {
    right.freeze(true);
    offer_on(0);
    REQUIRE(held() == 1);
    left.gone = false;
    for (int i = 0; i < 40 && !left.gone; ++i) {
      left.say_plain(MessageKind::others_wait);
      world.run_for(milliseconds(100));
    }
    REQUIRE(left.gone);
    REQUIRE(left.lost == connections[0]);
    REQUIRE(held() == 0);
  }
  std::vector<cci::Connection> connections;
};

}  // namespace

TEST_CASE("router_standstill__waits_in_vain_behind_an_end_that_was_cut_off__goes_as_soon_as_others_wait") {
  Stopped met;
  met.cut_off_the_first();
  CHECK_FALSE(met.cut_when_told(1));  // it waits for nothing here
  met.offer_on(1);
  CHECK(met.held() == 1);
  CHECK_FALSE(met.cut_when_told(1));  // it has a buffer, and may still move
  met.offer_on(2);
  CHECK(met.held() == 1);
  CHECK(met.cut_when_told(2));
  CHECK(met.known() == 1);
}

TEST_CASE("router_standstill__its_penalty_is_over__has_the_share_of_any_other_again") {
  Stopped met;
  met.cut_off_the_first();
  const bool over = GENERATE(true, false);
  met.right.freeze(false);
  met.world.run_for(over ? penalty_time : penalty_time - seconds(1));
  met.right.freeze(true);
  met.offer_on(1);
  met.offer_on(2);
  CHECK(met.held() == (over ? 2 : 1));
}

TEST_CASE("router_standstill__cut_off_and_has_moved_since__has_the_share_of_any_other_again") {
  Stopped met;
  met.cut_off_the_first();
  met.right.freeze(false);
  for (const size_t number : {size_t{1}, size_t{2}}) {
    met.forget();
    met.offer_on(number);
    REQUIRE(met.run([&] { return met.left.last(MessageKind::fragment_ack).has_value(); }));
  }
  met.right.freeze(true);
  met.offer_on(1);
  met.offer_on(2);
  CHECK(met.held() == 2);
}

// Bytes of a fragment that failed are taken back: what comes after it counts from there.
TEST_CASE("router_clock_of_a_side__what_failed_is_taken_back_and_the_next_bytes_count") {
  Clock clock;
  clock.note(progress_bytes_min, milliseconds(100));
  CHECK(clock.stands == Duration{0});
  clock.note(2 * progress_bytes_min - 1, milliseconds(100));
  CHECK(clock.stands == milliseconds(100));  // too little to count
  clock.note(0, milliseconds(100));
  CHECK(clock.stands == milliseconds(200));
  clock.note(progress_bytes_min, milliseconds(100));
  CHECK(clock.stands == Duration{0});
}

// Each would hold up whoever is before it for as long again, and nobody has said of those that others wait.
TEST_CASE("router_standstill__an_end_is_cut_off_on_one_connection__its_others_that_wait_for_it_go_at_once") {
  Stopped met;
  met.right.freeze(true);
  for (const size_t number : {size_t{1}, size_t{2}, size_t{0}}) met.offer_on(number);
  REQUIRE(met.held() == 3);
  met.left.gone = false;
  for (int i = 0; i < 40 && !met.left.gone; ++i) {
    met.left.say_plain(MessageKind::others_wait);
    met.world.run_for(milliseconds(100));
  }
  REQUIRE(met.left.gone);
  CHECK(met.known() == 0);
}
