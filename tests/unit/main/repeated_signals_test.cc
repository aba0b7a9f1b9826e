// Which second signal counts as the first one again.
#include "app/main/repeated_signals.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace ccixfer::program {

using namespace std::chrono_literals;

namespace {

constexpr Instant start{10s};
constexpr pid_t somebody = 7, another = 8;

}  // namespace

TEST_CASE("repeated_signals__the_same_of_one_process_a_moment_later__is_one") {
  for (const int number : {SIGINT, SIGTERM}) {
    RepeatedSignals signals;
    CHECK_FALSE(signals.is_repeated(number, SI_USER, somebody, start));
    CHECK(signals.is_repeated(number, SI_USER, somebody, start + 1ms));
    CHECK(signals.is_repeated(number, SI_USER, somebody, start + 24ms));  // however often
    CHECK_FALSE(signals.is_repeated(number, SI_USER, somebody, start + 1s));
    CHECK(signals.is_repeated(number, SI_USER, somebody, start + 1001ms));
  }
}

TEST_CASE("repeated_signals__another_signal_or_another_sender__is_another_one") {
  RepeatedSignals signals;
  CHECK_FALSE(signals.is_repeated(SIGTERM, SI_USER, somebody, start));
  CHECK_FALSE(signals.is_repeated(SIGINT, SI_USER, somebody, start + 1ms));
  CHECK_FALSE(signals.is_repeated(SIGTERM, SI_USER, another, start + 1ms));
  CHECK_FALSE(signals.is_repeated(SIGTERM, SI_KERNEL, another, start + 2ms));  // a person at the terminal
  CHECK_FALSE(signals.is_repeated(SIGTERM, SI_QUEUE, another, start + 2ms));   // a job's parent, which counts for itself
  CHECK(signals.is_repeated(SIGTERM, SI_USER, another, start + 2ms));
}

TEST_CASE("repeated_signals__of_what_ends_nothing__each_counts") {
  for (const int number : {SIGUSR1, SIGHUP}) {
    RepeatedSignals signals;
    CHECK_FALSE(signals.is_repeated(number, SI_USER, somebody, start));
    CHECK_FALSE(signals.is_repeated(number, SI_USER, somebody, start));
  }
}

}  // namespace ccixfer::program
