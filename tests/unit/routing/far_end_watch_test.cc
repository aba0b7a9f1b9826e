// When the silence of a routed connection's far end asks for a probe, and when it has a meaning.
#include "routing/transport/far_end_watch.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;
using Verdict = FarEndWatch::Verdict;

namespace {

constexpr Instant start = Instant{} + seconds(1000);

}  // namespace

TEST_CASE("far_end_watch__silence_that_nobody_watches__three_probes_and_then_it_is_lost") {
  FarEndWatch watch;
  watch.heard(start);
  FarEndWatch::Look look = watch.look(start, seconds(15));
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == start + seconds(15));
  for (uint32_t probe = 0; probe < keepalive_probes_max; ++probe) {
    const Instant due = look.next;
    CHECK(watch.look(due - Duration{1}, seconds(15)).verdict == Verdict::quiet);
    look = watch.look(due, seconds(15));
    CHECK(look.verdict == Verdict::probe);
    CHECK(look.next == due + seconds(15));
  }
  CHECK(watch.look(look.next, seconds(15)).verdict == Verdict::lost);
}

TEST_CASE("far_end_watch__an_answer_to_a_probe__begins_anew") {
  FarEndWatch watch;
  watch.heard(start);
  for (uint32_t i = 1; i <= keepalive_probes_max; ++i) {
    CHECK(watch.look(start + seconds(15) * i, seconds(15)).verdict == Verdict::probe);
  }
  watch.heard(start + seconds(46));
  const FarEndWatch::Look look = watch.look(start + seconds(60), seconds(15));
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == start + seconds(61));
  CHECK(watch.look(look.next, seconds(15)).verdict == Verdict::probe);
}

TEST_CASE("far_end_watch__without_a_keepalive__silence_means_nothing") {
  FarEndWatch watch;
  watch.heard(start);
  const FarEndWatch::Look look = watch.look(start + seconds(1'000'000), Duration::zero());
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == never);
}

TEST_CASE("far_end_watch__asked_by_the_application__a_probe_at_half_and_told_once") {
  FarEndWatch watch;
  watch.heard(start);
  CHECK_FALSE(watch.is_asked());
  CHECK_FALSE(watch.awaits_look());
  watch.ask(seconds(8));
  CHECK(watch.is_asked());
  CHECK(watch.awaits_look());
  const Instant asked = start + seconds(100);  // the next turn: the time counts from here
  FarEndWatch::Look look = watch.look(asked, seconds(15));
  CHECK_FALSE(watch.awaits_look());
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == asked + seconds(4));
  look = watch.look(look.next, seconds(15));
  CHECK(look.verdict == Verdict::probe);
  CHECK(look.next == asked + seconds(8));
  look = watch.look(look.next, seconds(15));
  CHECK(look.verdict == Verdict::tell);
  look = watch.look(asked + seconds(1000), seconds(15));
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == never);
}

TEST_CASE("far_end_watch__asked_and_then_heard__the_time_counts_from_what_was_heard") {
  FarEndWatch watch;
  watch.ask(seconds(8));
  CHECK(watch.look(start, seconds(15)).next == start + seconds(4));
  watch.heard(start + seconds(3));
  CHECK(watch.look(start + seconds(4), seconds(15)).next == start + seconds(7));
}

TEST_CASE("far_end_watch__asked_for_nothing__is_never_told_and_never_lost") {
  const Duration nothing = GENERATE(Duration::zero(), forever);
  FarEndWatch watch;
  watch.heard(start);
  watch.ask(nothing);
  const FarEndWatch::Look look = watch.look(start + seconds(1'000'000), seconds(15));
  CHECK(look.verdict == Verdict::quiet);
  CHECK(look.next == never);
}
