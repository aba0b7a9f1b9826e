// What many workers of a router, and many senders of a team, do together. ./do bench has the whole size; here it is a small one.
#include "tests/sim/scaling.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <numeric>

#include "tests/sim/seeds.h"

using namespace ccixfer;
using testing::run_team;
using testing::run_workers;
using testing::ScaledTeamResult;
using testing::TeamTask;
using testing::WorkersResult;

namespace {

// How many are compared with one: CCIXFER_SIM_WORKERS, CCIXFER_SIM_MEMBERS.
size_t many_workers() { return testing::number_from_environment("CCIXFER_SIM_WORKERS", 3); }
uint16_t many_members() { return static_cast<uint16_t>(testing::number_from_environment("CCIXFER_SIM_MEMBERS", 4)); }

void print(const ScaledTeamResult& result, const char* what, unsigned members) {
  const auto [least, most] = std::minmax_element(result.sent_bytes.begin(), result.sent_bytes.end());
  std::printf("%u members, %s: %.1f MB/s in %.3f s, each sent %.0f to %.0f MB, the receiver was busy %.2f of the time\n", members,
              what, result.bytes_per_s / 1e6, result.seconds, static_cast<double>(*least) / 1e6, static_cast<double>(*most) / 1e6,
              result.receiver_busy);
}

void print(const WorkersResult& result) {
  std::printf("%zu workers: %.0f messages/s, %.1f MB/s; connections (busy with messages, with writes):", result.connections.size(),
              result.messages_per_s, result.bytes_per_s / 1e6);
  for (size_t i = 0; i < result.connections.size(); ++i)
    std::printf(" %zu (%.2f, %.2f)", result.connections[i], result.busy_with_messages[i], result.busy_with_writes[i]);
  std::printf("\n");
}

void compare_teams(TeamTask task, const char* what) {
  const uint16_t members = many_members();
  const ScaledTeamResult one = run_team(1, 1, task), many = run_team(1, members, task);
  CHECK(one.is_whole);
  CHECK(many.is_whole);
  REQUIRE_FALSE((one.sent_bytes.empty() || many.sent_bytes.empty()));
  print(one, what, 1);
  print(many, what, members);
  const double efficiency = many.bytes_per_s / (members * one.bytes_per_s);
  std::printf("efficiency of %u members, %s: %.3f\n", unsigned{members}, what, efficiency);
  CHECK(efficiency >= 0.9);
}

}  // namespace

TEST_CASE("scaling__workers_of_a_router__do_as_much_more_as_there_are_more_of_them") {
  const size_t workers = many_workers(), pairs = 4 * workers;  // so many that their own hosts are no bottleneck
  const WorkersResult one = run_workers(1, 1, pairs), many = run_workers(1, workers, pairs);
  const double messages = many.messages_per_s / (static_cast<double>(workers) * one.messages_per_s);
  const double bytes = many.bytes_per_s / (static_cast<double>(workers) * one.bytes_per_s);
  print(one);
  print(many);
  std::printf("efficiency of %zu workers: %.3f of the messages, %.3f of the bytes\n", workers, messages, bytes);
  for (const size_t connections : many.connections) CHECK(connections == 4);
  CHECK(messages >= 0.9);
  CHECK(bytes >= 0.9);
}

TEST_CASE("scaling__members_of_a_team__send_one_file_as_much_faster_as_there_are_more_of_them") {
  compare_teams(TeamTask::one_file, "one file");
}

TEST_CASE("scaling__members_of_a_team__send_many_files_as_much_faster_as_there_are_more_of_them") {
  compare_teams(TeamTask::files, "files");
}
