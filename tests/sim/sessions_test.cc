// Sessions of one process beside and after one another: a receiver that was idle, one that dies again and again, many senders.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/hall.h"
#include "tests/sim/seeds.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::Hall;

namespace {

void a_few_small_files(sim::SimFileSystem& files, size_t index) {
  for (int i = 0; i < 5; ++i)
    files.put("/src/f" + std::to_string(i), std::string(1000 + index, static_cast<char>('a' + i)), 0644,
              ports::FileTime{1'700'000'000, 0});
}

}  // namespace

TEST_CASE("sessions__a_receiver_that_was_idle_for_an_hour__takes_the_first_sender_at_once") {
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + testing::seed_count(10); ++seed) {
    INFO("seed " << seed);
    // So near, and so busy, that the receiver sees the connection and its hello in one turn.
    sim::LinkOptions near;
    near.delay_min = 0us;
    near.delay_max = 10us;
    sim::WorldOptions busy;
    busy.turn_delay_max = 2ms;
    Hall hall(seed, 63, near, busy);
    hall.listen();
    Hall::Guest& guest = hall.add_guest(a_few_small_files);
    hall.rest(1h);
    hall.start(guest, 60s, 0);  // no second session: the first one must do
    REQUIRE(hall.run_to_the_end(10s));
    CHECK(guest.dialler->result().message == "");
    CHECK(guest.dialler->result().kind == ErrorKind::ok);
    CHECK(hall.missing(guest) == "");
  }
}
