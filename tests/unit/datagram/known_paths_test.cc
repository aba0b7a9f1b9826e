// A transport that is told what earlier connections found of its paths, and that tells what its own found.
#include <map>
#include <set>

#include "tests/unit/datagram/flow.h"

namespace ccixfer::datagram::testing {
namespace {

using reliability::Congestion;
using reliability::KnownPath;

constexpr uint64_t rate = 10'000'000;
constexpr uint64_t fast = 100'000'000;

struct Memory final : reliability::PathMemory {
  std::optional<KnownPath> known;
  mutable std::vector<std::string> asked;
  std::map<std::string, KnownPath, std::less<>> found;
  [[nodiscard]] std::optional<KnownPath> recall(std::string_view host) const override {
    asked.emplace_back(host);
    return known;
  }
  void remember(std::string_view host, const KnownPath& path) override { found[std::string(host)] = path; }
};

sim::DatagramLinkOptions far(uint64_t bytes_per_s) {
  sim::DatagramLinkOptions link;
  link.rate_bytes_per_s = bytes_per_s;
  link.queue_bytes = static_cast<uint32_t>(bytes_per_s / 10);
  link.receive_bytes = 32u << 20;
  link.delay_min = link.delay_max = 50ms;
  link.datagram_bytes = 1472;
  return link;
}

struct Far {
  explicit Far(std::optional<KnownPath> known, uint64_t bytes_per_s = rate)
      : rig(far(bytes_per_s), {}, 1, Congestion::bbr, nullptr, nullptr, memory) {
    memory->known = known;
    rig.connect();
    flow.emplace(rig, *rig.a.transport, rig.a.sink, rig.at_a);
    CHECK(std::set<std::string>(memory->asked.begin(), memory->asked.end()) == std::set<std::string>{"b"});
  }
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  Rig rig;
  std::optional<Flow> flow;
};

uint64_t first_bytes(std::optional<KnownPath> known) {
  Far far(known, fast);
  run_for(far.rig, 500ms, {&*far.flow});
  return far.flow->done_bytes();
}

TEST_CASE("known_paths__of_a_path_that_was_known__more_arrives_in_the_first_round_trips") {
  const uint64_t plain = first_bytes(std::nullopt);
  CHECK(first_bytes(KnownPath{fast, 100ms}) > plain * 3 / 2);
  CHECK(first_bytes(KnownPath{fast, 10ms}) == plain);  // another path
}

TEST_CASE("known_paths__what_a_connection_found__is_told_when_it_ends_rests_or_goes_with_its_transport") {
  for (const int way : {0, 1, 2}) {
    INFO(way);
    Far far(std::nullopt);
    run_for(far.rig, 3s, {&*far.flow});
    CHECK(far.memory->found.empty());
    if (way == 0) {
      far.rig.a.transport->disconnect(far.rig.at_a);
      far.rig.world.wake(far.rig.a.node);
      REQUIRE(far.rig.run([&] { return !far.memory->found.empty(); }));
    } else if (way == 1) {
      REQUIRE(far.rig.run([&] { return !far.memory->found.empty(); }));  // nothing more is written
      CHECK(far.rig.a.sink.disconnected.empty());
    } else {
      far.rig.a.transport.reset();
    }
    REQUIRE(far.memory->found.contains("b"));
    const KnownPath& found = far.memory->found.at("b");
    CHECK(found.bytes_per_s > rate / 10 * 9);
    CHECK(found.bytes_per_s < rate / 10 * 11);
    CHECK(found.round_trip >= 100ms);
    CHECK(found.round_trip < 120ms);
  }
}

TEST_CASE("known_paths__of_a_connection_that_said_little__nothing_is_told") {
  Far far(KnownPath{rate, 100ms});
  CHECK(far.rig.a.send(far.rig.at_a, filled(100, 1), 7) == Status::success);
  REQUIRE(far.rig.run([&] { return far.rig.a.status_of(7).has_value(); }));
  far.rig.a.transport.reset();
  CHECK(far.memory->found.empty());
}

}  // namespace
}  // namespace ccixfer::datagram::testing
