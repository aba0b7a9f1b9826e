// The small parts of a connection, each alone: the limit of a step, keepalive, messages behind a fence, the ready list.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "transports/connection/fenced_messages.h"
#include "transports/connection/keepalive.h"
#include "transports/connection/ready_list.h"
#include "transports/connection/step_limit.h"

namespace ccixfer::connection {
namespace {

using std::chrono::seconds;

constexpr Instant at(int64_t s) { return Instant{seconds(s)}; }
using Verdict = Keepalive::Verdict;

TEST_CASE("step_limit__set_outside_of_a_turn__runs_from_the_next_one") {
  StepLimit limit;
  CHECK(limit.is_stamped());
  CHECK(limit.deadline() == never);
  limit.set(seconds(10));
  CHECK_FALSE(limit.is_stamped());
  CHECK(limit.deadline() == never);
  limit.stamp(at(100));
  CHECK(limit.deadline() == at(110));
  limit.stamp(at(105));  // it does not begin again
  CHECK(limit.deadline() == at(110));
  limit.set(seconds(1));
  CHECK(limit.deadline() == never);
  limit.stamp(at(106));
  CHECK(limit.deadline() == at(107));
  limit.expire();
  CHECK(limit.deadline() == never);
  limit.set(forever);
  limit.stamp(at(108));
  CHECK(limit.deadline() == never);
}

TEST_CASE("keepalive__silence__three_probes_then_lost") {
  Keepalive keepalive;
  CHECK(keepalive.deadline() == never);
  keepalive.begin(seconds(5), at(0));
  CHECK(keepalive.deadline() == at(5));
  for (int64_t probe = 1; probe <= keepalive_probes_max; ++probe) {
    CHECK(keepalive.due(at(5 * probe)) == Verdict::probe);
    CHECK(keepalive.deadline() == at(5 * probe + 5));
  }
  CHECK(keepalive.due(at(20)) == Verdict::lost);
}

TEST_CASE("keepalive__whatever_is_heard__begins_the_count_anew") {
  Keepalive keepalive;
  keepalive.begin(seconds(5), at(0));
  for (int64_t turn = 0; turn < 10; ++turn) {
    CHECK(keepalive.due(at(5 + 10 * turn)) == Verdict::probe);
    CHECK(keepalive.due(at(10 + 10 * turn)) == Verdict::probe);
    keepalive.heard(at(11 + 10 * turn));
    CHECK(keepalive.deadline() == at(16 + 10 * turn));
  }
}

TEST_CASE("keepalive__asked_for__tells_once_and_is_off") {
  Keepalive keepalive;
  keepalive.begin(seconds(5), at(0));
  CHECK(keepalive.due(at(5)) == Verdict::probe);
  keepalive.ask(seconds(2));
  keepalive.stamp(at(100));  // it was long since the last turn
  CHECK(keepalive.deadline() == at(102));
  keepalive.stamp(at(101));
  CHECK(keepalive.deadline() == at(102));
  for (int64_t probe = 0; probe < keepalive_probes_max; ++probe) CHECK(keepalive.due(at(102 + 2 * probe)) == Verdict::probe);
  CHECK(keepalive.due(at(108)) == Verdict::tell);
  CHECK(keepalive.deadline() == never);
}

TEST_CASE("keepalive__zero_or_forever_or_stopped__is_off") {
  const Duration period = GENERATE(Duration{0}, forever);
  Keepalive keepalive;
  keepalive.begin(period, at(0));
  CHECK(keepalive.deadline() == never);
  keepalive.ask(period);
  CHECK(keepalive.deadline() == never);
  keepalive.begin(seconds(1), at(0));
  CHECK(keepalive.deadline() == at(1));
  keepalive.stop();
  CHECK(keepalive.deadline() == never);
}

TEST_CASE("fenced_messages__released_in_order_as_far_as_the_fences_are_passed") {
  FencedMessages<std::string> fenced;
  std::vector<std::string> sent;
  uint64_t passed = 0;
  const auto release = [&] {
    fenced.release([&](uint64_t operations) { return operations <= passed; },
                   [&](uint64_t token, std::string message, Duration timeout) {
                     sent.push_back(message + std::to_string(token) + (timeout == seconds(7) ? "!" : ""));
                   });
  };
  CHECK(fenced.empty());
  release();
  fenced.push(1, "a", forever, 1);
  fenced.push(2, "b", seconds(7), 2);
  fenced.push(3, "c", forever, 2);
  fenced.push(4, "d", forever, 3);
  CHECK(fenced.size() == 4);
  release();
  CHECK(sent.empty());
  passed = 2;
  release();
  CHECK(sent == std::vector<std::string>{"a1", "b2!", "c3"});
  CHECK(fenced.size() == 1);
  std::vector<uint64_t> ended;
  fenced.push(5, "e", forever, 3);
  fenced.fail_all([&](uint64_t token) { ended.push_back(token); });
  CHECK(ended == std::vector<uint64_t>{4, 5});
  CHECK(fenced.empty());
}

TEST_CASE("ready_list__each_once_in_order_and_what_is_added_meanwhile_is_for_the_next_turn") {
  ReadyList list;
  bool queued[3] = {false, false, false};
  list.add(2, queued[2], false);
  list.add(0, queued[0], true);
  list.add(2, queued[2], false);
  CHECK(list.urgent());
  std::vector<uint32_t> served;
  list.serve_all([&](uint32_t index) {
    served.push_back(index);
    queued[index] = false;
    if (index == 2) list.add(1, queued[1], true);
  });
  CHECK(served == std::vector<uint32_t>{2, 0});
  CHECK_FALSE(list.empty());
  CHECK_FALSE(list.urgent());
  list.add(1, queued[1], false);  // it has become urgent
  CHECK(list.urgent());
  list.forget([](uint32_t index) { return index == 1; });
  CHECK(list.empty());
}

TEST_CASE("ready_list__a_patient_one_is_taken_back_if_it_is_the_last_and_nobody_is_urgent") {
  ReadyList list;
  bool queued[2] = {false, false};
  list.take_back(0, queued[0]);  // it is not there
  CHECK(list.empty());
  list.add(0, queued[0], true);
  list.add(1, queued[1], true);
  list.take_back(0, queued[0]);  // it is not the last
  CHECK(queued[0]);
  list.take_back(1, queued[1]);
  CHECK_FALSE(queued[1]);
  list.add(0, queued[0], false);
  list.take_back(0, queued[0]);
  CHECK(queued[0]);
  CHECK_FALSE(list.empty());
}

}  // namespace
}  // namespace ccixfer::connection
