// What a connection of bbr gets beside a flow of CUBIC and beside its like, over one bottleneck: nobody gets more than twice what
// the other gets, where the queue holds at least one product of rate and round trip. And what it gets when it is alone again.
#include <catch2/catch.hpp>
#include <cstdio>

#include "core/reliability/bbr.h"
#include "tests/unit/reliability/bottleneck.h"
#include "tests/unit/reliability/cubic.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Bbr;
using reliability::testing::Bottleneck;
using reliability::testing::BottleneckOptions;
using reliability::testing::Cubic;
using Phase = reliability::Bbr::Phase;

namespace {

enum class Rival : uint8_t { cubic, bbr };

std::unique_ptr<Bbr> bbr(uint64_t seed) { return std::make_unique<Bbr>(Bottleneck::datagram, seed); }

struct Shares {
  double ratio = 0;  // of bbr's share and the rival's
  double sum = 0;    // of both, of the path's rate
};

Shares shares(const BottleneckOptions& options, Rival rival, bool rival_first, Duration time) {
  Bottleneck path(options);
  const size_t ours = path.add(bbr(7), rival_first ? 5s : 0s);
  const Duration begins = rival_first ? 0s : 5s;
  const size_t other =
      rival == Rival::bbr ? path.add(bbr(8), begins) : path.add(std::make_unique<Cubic>(Bottleneck::datagram), begins);
  path.run(30s);
  const uint64_t ours_before = path.delivered_bytes(ours);
  const uint64_t other_before = path.delivered_bytes(other);
  path.run(time);
  const auto a = static_cast<double>(path.delivered_bytes(ours) - ours_before);
  const auto b = static_cast<double>(path.delivered_bytes(other) - other_before);
  return {a / b, (a + b) / static_cast<double>(options.rate) / std::chrono::duration<double>(time).count()};
}

void print(const BottleneckOptions& options, const char* what, const Shares& got) {
  std::printf("%4.0f Mb/s, %3.0f ms, queue %.1f, %-15s ratio %.2f, sum %.3f\n", static_cast<double>(options.rate) * 8e-6,
              std::chrono::duration<double>(options.round_trip).count() * 1e3, options.queue_products, what, got.ratio, got.sum);
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("fairness__a_flow_of_cubic_on_the_same_path__neither_gets_twice_what_the_other_gets") {
  for (const Duration round_trip : {20ms, 100ms}) {
    for (const double queue : {1.0, 2.0}) {
      for (const bool cubic_first : {false, true}) {
        const BottleneckOptions options{6'250'000, round_trip, queue, 0};
        const Shares got = shares(options, Rival::cubic, cubic_first, 100s);
        print(options, cubic_first ? "cubic first" : "bbr first", got);
        CHECK(got.ratio < 2);
        CHECK(got.ratio > 0.5);
        CHECK(got.sum > 0.97);
      }
    }
  }
}

TEST_CASE("fairness__two_of_a_kind__neither_gets_three_times_what_the_other_gets") {
  for (const double queue : {0.5, 1.0, 2.0}) {
    const BottleneckOptions options{6'250'000, 20ms, queue, 0};
    const Shares got = shares(options, Rival::bbr, false, 60s);
    print(options, "two bbr", got);
    CHECK(got.ratio < 3);
    CHECK(got.ratio > 1.0 / 3);
    CHECK(got.sum > 0.97);
  }
}

// Its own queue, which it builds at the start and in probes, is not taken for one of others; nor is what the path loses.
TEST_CASE("fairness__alone__it_never_shares_and_fills_the_path") {
  for (const double loss : {0.0, 0.01}) {
    for (const double queue : {0.5, 1.0, 4.0}) {
      CAPTURE(loss, queue);
      const BottleneckOptions options{6'250'000, 50ms, queue, loss};
      Bottleneck path(options);
      const size_t ours = path.add(bbr(7));
      bool shared = false;
      uint64_t before = 0;
      for (int i = 0; i < 300; ++i) {
        path.run(100ms);
        if (i == 29) before = path.delivered_bytes(ours);
        shared = shared || dynamic_cast<Bbr&>(path.control(ours)).phase() == Phase::sharing;
      }
      CHECK_FALSE(shared);
      const double share = static_cast<double>(path.delivered_bytes(ours) - before) / static_cast<double>(options.rate) / 27;
      std::printf("alone, queue %.1f, loss %.2f: %.3f\n", queue, loss, share);
      CHECK(share > 0.93);
    }
  }
}

// Alone in the phase it keeps a queue of its own, as CUBIC does. The next probe of the round trip empties it and shows that.
TEST_CASE("fairness__the_other_flow_ends__the_path_is_ours_without_a_queue_after_the_next_probe_of_the_round_trip") {
  for (const double loss : {0.0, 0.0005}) {
    CAPTURE(loss);
    const BottleneckOptions options{6'250'000, 50ms, 1, loss};
    Bottleneck path(options);
    const size_t ours = path.add(bbr(7));
    const size_t other = path.add(std::make_unique<Cubic>(Bottleneck::datagram), 2s);
    const auto& control = dynamic_cast<Bbr&>(path.control(ours));
    for (int i = 0; i < 600 && control.phase() != Phase::sharing; ++i) path.run(100ms);
    REQUIRE(control.phase() == Phase::sharing);
    path.run(10s);
    path.end(other);
    for (int i = 0; i < 250 && control.phase() == Phase::sharing; ++i) path.run(100ms);
    CHECK(control.phase() != Phase::sharing);
    path.run(1s);
    const uint64_t before = path.delivered_bytes(ours);
    path.run(8s);
    CHECK(static_cast<double>(path.delivered_bytes(ours) - before) > 0.95 * 8 * static_cast<double>(options.rate));
    CHECK(path.waiting() < options.round_trip / 2);
  }
}

TEST_CASE("fairness__nothing_is_answered_while_it_shares__the_window_begins_small_and_below_what_it_had") {
  Bottleneck path({6'250'000, 50ms, 1, 0});
  const size_t ours = path.add(bbr(7));
  path.add(std::make_unique<Cubic>(Bottleneck::datagram), 2s);
  auto& control = dynamic_cast<Bbr&>(path.control(ours));
  for (int i = 0; i < 600 && control.phase() != Phase::sharing; ++i) path.run(100ms);
  REQUIRE(control.phase() == Phase::sharing);
  const uint64_t had = control.window_bytes();
  control.timed_out();
  CHECK(control.phase() != Phase::sharing);
  CHECK(control.window_bytes() == 4 * Bottleneck::datagram);
  uint64_t most = 0;
  for (int i = 0; i < 3; ++i) {
    path.run(50ms);
    most = std::max(most, control.window_bytes());
  }
  CHECK(most <= had);
}

// The path is longer from some moment on, as after a change of the route: no queue, and nobody else.
TEST_CASE("fairness__the_path_itself_gets_longer__it_is_known_within_a_minute_and_losses_say_nothing_again") {
  const BottleneckOptions options{6'250'000, 20ms, 2, 0.01};
  Bottleneck path(options);
  const size_t ours = path.add(bbr(7));
  path.run(10s);
  path.lengthen(30ms);
  path.run(60s);
  CHECK(dynamic_cast<Bbr&>(path.control(ours)).phase() != Phase::sharing);
  const uint64_t before = path.delivered_bytes(ours);
  path.run(10s);
  CHECK(static_cast<double>(path.delivered_bytes(ours) - before) > 0.9 * 10 * static_cast<double>(options.rate));
}

TEST_CASE("figures_of_fairness", "[.figures]") {
  for (const uint64_t rate : {6'250'000u, 125'000'000u}) {
    for (const Duration round_trip : {5ms, 20ms, 100ms}) {
      for (const double queue : {0.5, 1.0, 2.0, 4.0}) {
        const BottleneckOptions options{rate, round_trip, queue, 0};
        print(options, "bbr first", shares(options, Rival::cubic, false, 100s));
        print(options, "cubic first", shares(options, Rival::cubic, true, 100s));
        print(options, "two bbr", shares(options, Rival::bbr, false, 100s));
      }
    }
  }
}
