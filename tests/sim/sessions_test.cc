// Sessions of one process beside and after one another: a receiver that was idle, one that dies again and again, many senders.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <set>
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

// Round trips: the connection, the request and what answers it, the data and their result. What the source lists first is with the
// request.
TEST_CASE("sessions__one_small_file_over_a_long_path__is_there_in_few_round_trips") {
  sim::LinkOptions far;
  far.delay_min = far.delay_max = 50ms;
  Hall hall(testing::first_seed(), 63, far);
  hall.listen();
  Hall::Guest& guest = hall.add_guest([](sim::SimFileSystem& files, size_t) {
    files.put("/src/f", "content", 0644, ports::FileTime{1'700'000'000, 0});
  });
  hall.start(guest, 60s, 0);
  REQUIRE(hall.run_to_the_end(10s));
  CHECK(guest.dialler->result().kind == ErrorKind::ok);
  CHECK(hall.missing(guest) == "");
  CHECK(guest.ended_at < 460ms);  // one more would be 500
}

// More senders than buffers: each has its turn, and nobody waits for the end of another.
TEST_CASE("sessions__sixty_four_senders_and_eight_buffers__all_arrive_beside_one_another") {
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + std::min<uint64_t>(testing::seed_count(2), 20);
       ++seed) {
    INFO("seed " << seed);
    Hall hall(seed, 8);
    hall.listen();
    for (int i = 0; i < 64; ++i) hall.add_guest(a_few_small_files);
    for (const auto& guest : hall.guests) hall.start(*guest, 20s);
    REQUIRE(hall.run_to_the_end(120s));
    for (const auto& guest : hall.guests) {
      CHECK(guest->dialler->result().message == "");
      CHECK(hall.missing(*guest) == "");
      CHECK_FALSE(guest->waited);  // 64 are served at a time
    }
  }
}

// Those that have nothing to send hold nothing that others need.
TEST_CASE("sessions__many_that_are_slow__keep_nobody_waiting") {
  Hall hall(testing::first_seed(), 8);
  hall.listen();
  for (int i = 0; i < 20; ++i) {
    Hall::Guest& slow = hall.add_guest(a_few_small_files);
    slow.site->work.work_min = slow.site->work.work_max = 30s;  // its disk
    hall.start(slow, 3600s);
  }
  hall.rest(20s);
  Hall::Guest& quick = hall.add_guest(a_few_small_files);
  hall.start(quick, 20s);
  REQUIRE(hall.run_until([&] { return quick.dialler->ended(); }, 20s));
  CHECK(quick.dialler->result().message == "");
  REQUIRE(hall.run_to_the_end(3600s));
  for (const auto& guest : hall.guests) CHECK(hall.missing(*guest) == "");
}

TEST_CASE("sessions__no_room__wait_in_order_hear_their_place_and_have_no_timeout_meanwhile") {
  Hall hall(testing::first_seed(), 8);
  simulate::ListenPlan plan{false, "/dst"};
  plan.sessions_max = 2;
  hall.receiver.work.work_min = hall.receiver.work.work_max = 2s;  // a transfer takes longer than the timeout of those who wait
  hall.listen(plan);
  for (int i = 0; i < 8; ++i) {
    hall.start(hall.add_guest(a_few_small_files), 15s);
    hall.rest(50ms);  // so that the order is known
  }
  CHECK(hall.guests[2]->dialler->place() == 0u);
  CHECK(hall.guests[7]->dialler->place() == 5u);
  REQUIRE(hall.run_to_the_end(600s));
  for (size_t i = 0; i < hall.guests.size(); ++i) {
    INFO("sender " << i);
    CHECK(hall.guests[i]->dialler->result().message == "");
    CHECK(hall.missing(*hall.guests[i]) == "");
    CHECK(hall.guests[i]->waited == (i >= 2));
    if (i >= 2) CHECK(hall.guests[i]->ended_at > hall.guests[i - 2]->ended_at);
  }
  CHECK(hall.guests[7]->ended_at > 30s);  // else nobody waited for longer than the timeout
}

TEST_CASE("sessions__no_room_and_nobody_gets_on__who_waits_ends_with_timeout") {
  Hall hall(testing::first_seed(), 8);
  simulate::ListenPlan plan{false, "/dst"};
  plan.sessions_max = 1;
  hall.listen(plan);
  Hall::Guest& first = hall.add_guest(a_few_small_files);
  first.site->work.work_min = first.site->work.work_max = 1h;
  hall.start(first, 300s);  // a disk may take ten times that, but says so only as long as its host is heard
  hall.rest(1s);
  hall.fabric.cut("hall", "10.0.1.1");
  Hall::Guest& second = hall.add_guest(a_few_small_files);
  hall.start(second, 5s);
  REQUIRE(hall.run_until([&] { return second.dialler->ended(); }, 60s));
  CHECK_FALSE(hall.listener->idle());
  CHECK(second.dialler->result().kind == ErrorKind::timeout);
}

// A session that the peer begins anew waits for the jobs of the one that it lost.
TEST_CASE("sessions__the_session_before_takes_long_to_end__the_next_one_waits_and_is_told") {
  Hall hall(testing::first_seed());
  hall.receiver.work.work_min = hall.receiver.work.work_max = 45s;
  hall.listen();
  simulate::DialPlan dial;
  dial.transfer = session::TransferId{7};
  dial.timeout = 600s;
  Hall::Guest& lost = hall.add_guest(a_few_small_files);
  hall.start(lost, dial);
  hall.rest(5s);
  Hall::Guest& anew = hall.add_guest(a_few_small_files);
  anew.path = lost.path;
  anew.tree = lost.tree;
  hall.world.crash(lost.site->node);
  lost.dialler->bury();
  lost.dialler.reset();
  hall.start(anew, dial);
  REQUIRE(hall.run_until([&] { return anew.dialler->ended(); }, 3600s));
  CHECK(anew.dialler->result().message == "");
  CHECK(anew.dialler->result().kind == ErrorKind::ok);
}

// Each session is begun, answers, takes bytes, and dies when the first file is to get its name. How many there are within the
// timeout is chance: whether a crash leaves connections open that nobody answers.
TEST_CASE("sessions__a_receiver_that_dies_at_each_commit__the_timeout_comes") {
  constexpr unsigned worlds = 4;
  unsigned crashes = 0;
  for (unsigned world = 0; world < worlds; ++world) {
    Hall hall(testing::first_seed() + world);
    bool dying = false;
    hall.receiver.files.set_hook([&](std::string_view call, std::string_view) {
      if (call != "rename_at") return 0;
      if (!std::exchange(dying, true)) {
        ++crashes;
        hall.world.at(hall.world.now(), [&] { hall.crash_receiver(); });
        hall.world.at(after(hall.world.now(), 100ms), [&] {
          dying = false;
          hall.restart_receiver();
        });
      }
      return -EIO;
    });
    hall.listen();
    Hall::Guest& guest = hall.add_guest(a_few_small_files);
    hall.start(guest, 5s);
    REQUIRE(hall.run_to_the_end(60s));
    CHECK(guest.dialler->result().kind == ErrorKind::timeout);
    CHECK(guest.ended_at > 5s);
    CHECK(guest.ended_at < 20s);
  }
  CHECK(crashes > 2 * worlds);
}

// The cap is the process's: its sessions share it, and a new one does not begin it anew.
TEST_CASE("sessions__a_receiver_with_a_cap__all_senders_together_have_no_more") {
  Hall hall(testing::first_seed());
  simulate::ListenPlan plan{false, "/dst"};
  plan.rate_bytes_per_s = 32u << 20;
  hall.listen(plan);
  hall.rest(1h);  // the cap is no allowance that grows
  for (int i = 0; i < 4; ++i) {
    hall.start(hall.add_guest([](sim::SimFileSystem& files, size_t) { files.put("/src/f", std::string(64u << 20, 'x'), 0644); }),
               120s);
  }
  REQUIRE(hall.run_to_the_end(120s));
  Duration first = forever, last{0};
  for (const auto& guest : hall.guests) {
    CHECK(guest->dialler->result().message == "");
    first = std::min(first, guest->ended_at);
    last = std::max(last, guest->ended_at);
  }
  CHECK(last >= 7s);  // 256 MiB at 32 MiB/s, less a burst
  CHECK(last <= 12s);
  CHECK(first >= last / 3);  // nobody was served before the others: one after the other the first would end after a quarter
}

// As fair as it has to be: the slowest of many has at least 0.7 of what they have on average. That is meant for large files:
// a turn is two buffers, so files of a few segments are served in the order in which they ask.
TEST_CASE("sessions__sixty_four_large_files_at_once__the_slowest_has_most_of_the_mean") {
  Hall hall(testing::first_seed(), 16);  // one pool for all, of fewer buffers than there are senders
  simulate::ListenPlan plan{false, "/dst"};
  plan.rate_bytes_per_s = 64u << 20;
  hall.listen(plan);
  constexpr size_t bytes = 32u << 20;
  for (int i = 0; i < 64; ++i)
    hall.add_guest([](sim::SimFileSystem& files, size_t) { files.put("/src/f", std::string(bytes, 'x'), 0644); });
  for (const auto& guest : hall.guests) hall.start(*guest, 120s);
  REQUIRE(hall.run_to_the_end(120s));
  double slowest = 1e18, sum = 0;
  for (const auto& guest : hall.guests) {
    CHECK(guest->dialler->result().message == "");
    CHECK(hall.missing(*guest) == "");
    const double bytes_per_s = bytes / std::chrono::duration<double>(guest->ended_at).count();
    slowest = std::min(slowest, bytes_per_s);
    sum += bytes_per_s;
  }
  INFO("slowest " << slowest << ", mean " << sum / 64);
  CHECK(slowest >= 0.7 * sum / 64);
}
