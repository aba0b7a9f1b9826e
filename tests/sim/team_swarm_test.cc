// Teams send one tree in worlds made from seeds: it arrives whole, whichever process or receiver is lost.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/seeds.h"
#include "tests/sim/team.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::TeamOptions;
using testing::TeamResult;
using testing::TeamWorld;

namespace {

TeamOptions drawn(sim::Random& random) {
  TeamOptions options;
  options.members = static_cast<uint16_t>(random.between(2, 5));
  options.router = random.chance(0.3);
  options.lanes = static_cast<uint16_t>(random.between(1, 3));
  options.starts_within = random.between(Duration(0), random.chance(0.8) ? Duration(5ms) : Duration(500ms));
  options.tree.entries_max = random.chance(0.5) ? 200 : 40;
  options.tree.large_chance = 0.5;
  // So small that a small tree is shared by all.
  options.limits.window_bytes_min = random.chance(0.7) ? random.between(8'000, 200'000) : random.between(1'000'000, 12u << 20);
  options.limits.window_files_min = random.between(1, 20);
  options.limits.portion_bytes = random.between(1'000, 100'000);
  options.limits.shared_file_bytes = random.chance(0.7) ? 4u << 20 : 1u << 30;
  options.limits.shared_pieces = 1;
  options.link.delay_max = random.between(Duration(100us), Duration(20ms));
  options.link.rate_bytes_per_s = random.chance(0.5) ? random.between(500'000, 5'000'000) : 1'000'000'000;
  options.link.window_bytes = static_cast<uint32_t>(random.between(2'000, 1'000'000));
  if (random.chance(0.7)) {
    options.crashes = static_cast<unsigned>(random.below(4));
    options.receiver_crashes = static_cast<unsigned>(random.below(2));
    options.interrupts = static_cast<unsigned>(random.below(2));
    options.resets = static_cast<unsigned>(random.below(4));
    options.changes = random.chance(0.3) ? static_cast<unsigned>(random.between(1, 3)) : 0;
    if (random.chance(0.3)) options.link.reset_mean = random.between(Duration(200ms), Duration(5s));
    options.link.half_open_chance = random.chance(0.3) ? 0.5 : 0;
  }
  return options;
}

}  // namespace

TEST_CASE("swarm__several_processes_send_one_tree__it_arrives_whole_whoever_is_lost") {
  unsigned faults = 0, again = 0, shared = 0;
  const uint64_t seeds = testing::seed_count(10);
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 11);
    const TeamOptions options = drawn(random);
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << result.faults << " faults, " << result.again
                 << " times again, " << result.senders << " sent " << result.bytes_sent << " of " << result.bytes << " bytes, "
                 << result.events << " events");
    CHECK(result.violation == "");
    faults += result.faults;
    again += result.again;
    if (result.senders > 1) ++shared;
  }
  INFO(faults << " faults, " << again << " times again, " << shared << " of " << seeds << " trees were sent by several");
  CHECK((seeds < 10 || (faults > 0 && again > 0 && 3 * shared > seeds)));
}

TEST_CASE("swarm__a_team_without_faults__sends_no_byte_twice") {
  const uint64_t seeds = testing::seed_count(10);
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 12);
    TeamOptions options = drawn(random);
    options.crashes = options.receiver_crashes = options.interrupts = options.resets = options.changes = 0;
    options.link.reset_mean = forever;
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << result.events << " events");
    CHECK(result.violation == "");
    CHECK(result.again == 0);
    CHECK(result.bytes_sent == result.bytes);
  }
}

// What a lost member had sent is written all the same, and it comes again as another member: no piece of it may be named to it
// twice.
TEST_CASE("swarm__a_member_is_lost_while_its_pieces_are_written__all_end_well") {
  const uint64_t seeds = std::max<uint64_t>(10, testing::seed_count(10) / 5);  // each moves large files
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 13);
    TeamOptions options;
    options.members = static_cast<uint16_t>(random.between(2, 3));
    options.starts_within = 1ms;
    options.tree.entries_max = 2;
    options.tree.large_chance = 1;
    options.tree.large_bytes_min = 40u << 20;
    options.tree.large_bytes_max = 60u << 20;
    options.limits.shared_file_bytes = 4u << 20;
    options.limits.shared_pieces = static_cast<uint64_t>(random.between(1, 4));
    options.limits.window_bytes_min = 8u << 20;  // so that the others have no room for what is given back
    options.link.delay_max = 1ms;
    options.link.rate_bytes_per_s = 200'000'000;
    options.receiver_work.work_min = 20ms;
    options.receiver_work.work_max = 300ms;
    options.resets = static_cast<unsigned>(random.between(1, 4));
    options.faults_within = 1500ms;
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << result.faults << " faults, " << result.senders << " sent "
                 << result.bytes_sent << " of " << result.bytes << " bytes");
    CHECK(result.violation == "");
    CHECK(result.again == 0);
  }
}

// A source keeps open what it is to send pieces of, and has room for few such files: no member waits for another one because of it.
TEST_CASE("swarm__more_shared_files_than_a_member_may_have__all_end_well") {
  const uint64_t seeds = std::max<uint64_t>(2, testing::seed_count(10) / 30);  // each moves some hundred megabytes
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 14);
    TeamOptions options;
    options.members = static_cast<uint16_t>(random.between(2, 4));
    options.starts_within = 1ms;
    options.tree.entries_max = 4;
    options.more_large = 24;
    options.limits.shared_file_bytes = 4u << 20;
    options.limits.shared_pieces = 1;
    options.limits.window_bytes_min = 256u << 20;  // so that all pieces are given at once
    options.link.delay_max = 1ms;
    options.link.rate_bytes_per_s = 200'000'000;
    options.resets = random.chance(0.7) ? static_cast<unsigned>(random.between(1, 4)) : 0;
    options.faults_within = 1500ms;
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << result.faults << " faults, " << result.senders << " sent "
                 << result.bytes_sent << " of " << result.bytes << " bytes");
    CHECK(result.violation == "");
    CHECK(result.again == 0);
    if (result.faults == 0) CHECK(result.bytes_sent == result.bytes);
  }
}

// What changed waits for the next session, and keeps the leader from nothing.
TEST_CASE("swarm__team_with_many_shared_files_that_change__all_end_well") {
  unsigned faults = 0;
  const uint64_t seeds = std::max<uint64_t>(2, testing::seed_count(10) / 30);  // each moves some hundred megabytes
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 16);
    TeamOptions options;
    options.members = static_cast<uint16_t>(random.between(1, 2));
    options.starts_within = 1ms;
    options.tree.entries_max = 4;
    options.more_large = 24;
    options.limits.shared_file_bytes = random.chance(0.5) ? 4u << 20 : 1u << 30;
    options.limits.shared_pieces = 1;
    options.limits.window_bytes_min = 8u << 20;  // two changed files fill it
    options.link.delay_max = 1ms;
    options.link.rate_bytes_per_s = 10'000'000;  // most files are not read yet when they change
    options.changes = static_cast<unsigned>(random.between(10, 20));
    options.faults_within = 1s;
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << result.faults << " changes, " << result.senders << " sent "
                 << result.bytes_sent << " of " << result.bytes << " bytes");
    CHECK(result.violation == "");
    faults += result.faults;
  }
  CHECK(faults > 0);
}

// Some members bring pieces of large files to a receiver beside the first, which writes them into the same disk.
TEST_CASE("swarm__several_receivers_of_one_disk__the_tree_arrives_whole_whoever_is_lost") {
  unsigned faults = 0, used = 0;
  const uint64_t seeds = std::max<uint64_t>(10, testing::seed_count(10) / 10);
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x7ea3 + 15);
    TeamOptions options;
    options.members = static_cast<uint16_t>(random.between(2, 4));
    options.seconds = static_cast<uint16_t>(random.between(1, 2));
    options.router = random.chance(0.3);
    options.starts_within = random.between(Duration(0), Duration(5ms));
    options.tree.entries_max = 2;
    options.tree.large_chance = 1;
    options.tree.large_bytes_min = 40u << 20;
    options.tree.large_bytes_max = 80u << 20;
    options.more_large = static_cast<unsigned>(random.below(4));
    options.limits.shared_file_bytes = 4u << 20;
    options.limits.shared_pieces = static_cast<uint64_t>(random.between(1, 2));
    options.limits.window_bytes_min = 8u << 20;
    options.link.delay_max = random.between(Duration(100us), Duration(10ms));
    options.link.rate_bytes_per_s = random.between(10'000'000, 60'000'000);
    options.receiver_work.work_max = random.between(Duration(1ms), Duration(100ms));
    options.second_work.work_max = random.between(Duration(1ms), random.chance(0.3) ? Duration(3s) : Duration(50ms));
    if (random.chance(0.8)) {
      options.crashes = static_cast<unsigned>(random.below(2));
      options.receiver_crashes = random.chance(0.2) ? 1 : 0;
      options.second_crashes = static_cast<unsigned>(random.below(3));
      options.interrupts = random.chance(0.2) ? 1 : 0;
      options.resets = static_cast<unsigned>(random.below(6));
      options.changes = random.chance(0.2) ? 1 : 0;
      options.link.half_open_chance = random.chance(0.3) ? 0.5 : 0;
      options.faults_within = random.between(Duration(500ms), Duration(4s));
    }
    const TeamResult result = TeamWorld(seed, options).run();
    INFO("seed " << seed << ", " << options.members << " members, " << options.seconds << " second receivers, " << result.faults
                 << " faults, " << result.again << " times again, " << result.senders << " sent " << result.bytes_sent << " of "
                 << result.bytes << " bytes, " << result.bytes_to_seconds << " to second receivers");
    CHECK(result.violation == "");
    if (result.faults == 0) CHECK(result.bytes_sent == result.bytes);
    faults += result.faults;
    if (result.bytes_to_seconds > 0) ++used;
  }
  INFO(faults << " faults, in " << used << " of " << seeds << " worlds second receivers were used");
  CHECK((seeds < 10 || (faults > 0 && 4 * used > seeds)));
}
