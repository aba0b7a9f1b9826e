// Who gets the next buffer of a router.
#include "routing/router/buffer_grants.h"

#include <catch2/catch.hpp>
#include <list>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);
constexpr uint32_t fragment = 4096;

// Two devices of unknown rate, and as many buffers as there are asked for.
struct Waiting {
  explicit Waiting(uint32_t buffers, RouterMechanisms mechanisms = {}, uint64_t rate = 0, uint64_t bits_per_s = 0)
      : devices(two(bits_per_s)),
        pool(fragment, uint64_t{buffers} * fragment),
        grants(mechanisms, rate, pool, table, stood_still, devices) {}
  static std::vector<RouterDevice> two(uint64_t bits_per_s) {
    std::vector<RouterDevice> all(2);
    for (RouterDevice& device : all) device.rate_bits_per_s = bits_per_s;
    return all;
  }
  RelayedConnection& connection(bool proven = true) {
    RelayedConnection& made = table.add();
    made.legs[1].device = 1;
    made.ends[1] = "end";
    if (proven) made.fragments.prove(start);
    return made;
  }
  void queue(RelayedConnection& of, uint64_t number, uint8_t data_class = 0, uint8_t from = 0) {
    grants.queue(of, data_class, {number, fragment, from});
  }
  uint64_t next(uint8_t data_class = 0, Instant now = start) {  // 0: none
    auto granted = grants.next(data_class, now);
    if (!granted) return 0;
    given.push_back(std::move(*granted));
    classes.push_back(data_class);
    return given.back().fragment;
  }
  void give_back() {  // the first one
    grants.is_over(given.front().share);
    pool.give(classes.front(), std::move(given.front().buffer));
    given.pop_front();
    classes.pop_front();
  }
  ~Waiting() {
    while (!given.empty()) give_back();
  }

  Devices devices;
  FragmentPool pool;
  ConnectionTable table;
  StoodStill stood_still;
  BufferGrants grants;
  std::list<GrantedBuffer> given;
  std::list<uint8_t> classes;
};

}  // namespace

TEST_CASE("buffer_grants__connections_that_wait__take_turns") {
  Waiting waiting(64);
  RelayedConnection& a = waiting.connection();
  RelayedConnection& b = waiting.connection();
  for (uint64_t i = 1; i <= 3; ++i) waiting.queue(a, 10 + i);
  for (uint64_t i = 1; i <= 2; ++i) waiting.queue(b, 20 + i);
  std::vector<uint64_t> order;
  while (const uint64_t next = waiting.next()) order.push_back(next);
  CHECK(order == std::vector<uint64_t>{11, 21, 12, 22, 13});
  CHECK(a.fragments.buffers(0) == 3);
  CHECK(waiting.next(1) == 0);
}

TEST_CASE("buffer_grants__without_turns__are_served_as_they_came") {
  RouterMechanisms mechanisms;
  mechanisms.turns = false;
  Waiting waiting(64, mechanisms);
  RelayedConnection& a = waiting.connection();
  RelayedConnection& b = waiting.connection();
  for (uint64_t i = 1; i <= 2; ++i) waiting.queue(a, 10 + i);
  waiting.queue(b, 21);
  CHECK(waiting.next() == 11);
  CHECK(waiting.next() == 12);
  CHECK(waiting.next() == 21);
}

TEST_CASE("buffer_grants__no_buffer_is_left__none_and_the_pressure_is_told_once") {
  Waiting waiting(classes_max);
  RelayedConnection& a = waiting.connection();
  RelayedConnection& b = waiting.connection();
  waiting.queue(a, 11);
  waiting.queue(b, 21);
  CHECK(waiting.next() == 11);
  CHECK(waiting.next() == 0);
  const Pressed pressed = waiting.grants.take_pressed();
  CHECK(pressed.buffers);
  CHECK_FALSE(pressed.trial);
  CHECK_FALSE(waiting.grants.take_pressed().buffers);
  waiting.give_back();
  CHECK(waiting.next() == 21);
}

TEST_CASE("buffer_grants__a_connection_on_trial__has_one_buffer_of_each_direction") {
  Waiting waiting(64);
  RelayedConnection& on_trial = waiting.connection(false);
  for (uint64_t i = 1; i <= 2; ++i) waiting.queue(on_trial, 10 + i, 0, 0);
  CHECK(waiting.next() == 11);
  CHECK(waiting.given.back().share == Share::trial);
  CHECK(waiting.next() == 0);
  waiting.queue(on_trial, 21, 1, 1);
  CHECK(waiting.next(1) == 21);
  on_trial.fragments.prove(start);
  CHECK(waiting.next() == 12);
}

TEST_CASE("buffer_grants__many_on_trial__have_half_of_the_shared_buffers_together") {
  Waiting waiting(classes_max + 10);
  for (uint64_t i = 1; i <= 20; ++i) waiting.queue(waiting.connection(false), i);
  uint32_t granted = 0;
  while (waiting.next() != 0) ++granted;
  CHECK(granted == 5);
  CHECK(waiting.grants.take_pressed().trial);
  RelayedConnection& moving = waiting.connection();
  for (const uint64_t number : {100u, 101u}) waiting.queue(moving, number);
  CHECK(waiting.next() == 100);
  waiting.give_back();
  CHECK(waiting.next() == 6);  // it kept its place before the one that moves
  CHECK(waiting.next() == 101);
}

TEST_CASE("buffer_grants__an_end_that_stood_still__has_an_eighth_of_the_shared_buffers") {
  Waiting waiting(classes_max + 16);
  waiting.stood_still.remember("end", penalty_time, start + seconds(1));
  for (uint64_t i = 1; i <= 20; ++i) waiting.queue(waiting.connection(), i);
  uint32_t granted = 0;
  while (waiting.next(0, start + seconds(1)) != 0) ++granted;
  CHECK(granted == 2);
}

TEST_CASE("buffer_grants__a_connection_that_stands_still__gets_no_further_buffer") {
  Waiting waiting(64);
  RelayedConnection& still = waiting.connection();
  for (uint64_t i = 1; i <= 3; ++i) waiting.queue(still, i);
  CHECK(waiting.next() == 1);
  still.progress.stands = stalled_after - Duration(1);
  CHECK(waiting.next() == 2);
  still.progress.stands = stalled_after;
  CHECK(waiting.next() == 0);
}

TEST_CASE("buffer_grants__networks_of_known_rate__bound_what_a_connection_holds") {
  Waiting waiting(64, {}, 0, 8 * 1'000'000);
  RelayedConnection& busy = waiting.connection();
  for (uint64_t i = 1; i <= 40; ++i) waiting.queue(busy, i);
  uint32_t granted = 0;
  while (waiting.next() != 0) ++granted;
  CHECK(granted == 2 * window_fragments_min);
  busy.legs[1].traffic.wait = milliseconds(20);  // 20 kB, twice: ten fragments, rounded up
  while (waiting.next() != 0) ++granted;
  CHECK(granted == window_fragments_min + 10);
}

TEST_CASE("buffer_grants__the_rate_is_used_up__none_until_it_is_time") {
  Waiting waiting(64, {}, fragment * 10);
  RelayedConnection& connection = waiting.connection();
  for (uint64_t i = 1; i <= 2; ++i) waiting.queue(connection, i);
  CHECK(waiting.next() == 1);
  CHECK(waiting.next() == 0);
  const Instant due = waiting.grants.next_deadline(start);
  CHECK(due == start + milliseconds(100) - rate_burst);
  CHECK(waiting.next(0, due) == 2);
  CHECK(waiting.grants.next_deadline(due) == never);  // nobody waits
}

TEST_CASE("buffer_grants__a_connection_is_gone__is_passed_over") {
  Waiting waiting(64);
  RelayedConnection& gone = waiting.connection();
  waiting.queue(gone, 11);
  waiting.queue(waiting.connection(), 21);
  waiting.table.remove(gone);
  CHECK(waiting.next() == 21);
}

TEST_CASE("buffer_grants__what_waited_was_dropped__the_connection_waits_anew") {
  Waiting waiting(64);
  RelayedConnection& connection = waiting.connection();
  waiting.queue(connection, 11);
  CHECK(connection.fragments.take_all() == std::vector<uint64_t>{11});
  CHECK(waiting.next() == 0);
  waiting.queue(connection, 12);
  CHECK(waiting.next() == 12);
}
