// What connections cost on which nothing is in flight, and what thousands of them cost those that are busy.
#include "tests/sim/heap.h"
#include "tests/unit/datagram/crowd.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/sim/sim_datagram.h"

namespace ccixfer::datagram::testing {
namespace {

using namespace std::chrono_literals;
using ccixfer::testing::HeapAccount;
using ccixfer::testing::HeapScope;
using ccixfer::testing::OwnTrust;

// One process. What it takes from the heap is on its account.
class Member final : public sim::Actor {
 public:
  Member(sim::DatagramFabric& fabric, const std::string& name, size_t most, const DatagramOptions& options,
         std::shared_ptr<connection::HopTrust> trust)
      : world_(fabric.world()), node_(world_.add_node(name)), entropy_(most) {
    const HeapScope scope(&heap);
    end.emplace(options, std::make_unique<sim::SimDatagramNet>(fabric, node_, name, uint16_t{1}), entropy_, most, std::move(trust));
    world_.add_actor(node_, this);
  }
  ~Member() override { world_.remove_actor(node_, this); }
  void turn(Instant now) override {
    const HeapScope scope(&heap);
    ++turns;
    end->dial(uri, wanted, 200);
    end->turn(now);
  }
  [[nodiscard]] Instant next_deadline() const override { return end->transport->next_deadline(); }
  void dial(const std::string& listener, size_t count) {
    uri = listener;
    wanted = count;
    world_.wake(node_);
  }
  void say(size_t connection) {
    const HeapScope scope(&heap);
    end->say(end->open[connection]);
    world_.wake(node_);
  }

 private:
  sim::World& world_;
  sim::NodeId node_;
  sim::SimEntropy entropy_;

 public:
  HeapAccount heap;
  std::optional<CrowdEnd> end;
  std::string uri;
  size_t wanted = 0;
  uint64_t turns = 0;
};

struct Crowd {
  explicit Crowd(size_t diallers, size_t each, bool is_secured, const sim::DatagramLinkOptions& link = {},
                 const DatagramOptions& options = {})
      : fabric(world, link) {
    const auto trust = [&]() -> std::shared_ptr<connection::HopTrust> {
      return is_secured ? std::make_shared<OwnTrust>() : nullptr;
    };
    listener = std::make_unique<Member>(fabric, "listener", diallers * each, options, trust());
    listener->end->answers = true;
    for (size_t i = 0; i < diallers; ++i)
      all.push_back(std::make_unique<Member>(fabric, "dialler" + std::to_string(i), each, options, trust()));
  }
  void pass(Duration time) { static_cast<void>(world.run_for(time)); }
  [[nodiscard]] uint64_t visits() const {
    uint64_t total = listener->end->transport->visits();
    for (const auto& dialler : all) total += dialler->end->transport->visits();
    return total;
  }
  bool run(const std::function<bool()>& done) { return world.run_until(done, after(world.now(), 600s)) == sim::RunEnd::reached; }
  // Each dialler has so many connections then, of which each has carried a message there and back.
  void grow(size_t each) {
    for (const auto& dialler : all) dialler->dial(listener->end->transport->uri(), each);
    REQUIRE(run([&] { return count(&CrowdEnd::open) == each * all.size() && listener->end->open.size() == each * all.size(); }));
    for (const auto& dialler : all) {
      for (size_t i = spoken; i < each; ++i) dialler->say(i);
    }
    spoken = each;
    REQUIRE(run([&] { return sum(&CrowdEnd::messages) == each * all.size(); }));
  }
  size_t count(std::vector<ConnectionId> CrowdEnd::*list) const {
    size_t total = 0;
    for (const auto& dialler : all) total += ((*dialler->end).*list).size();
    return total;
  }
  size_t sum(size_t CrowdEnd::*number) const {
    size_t total = 0;
    for (const auto& dialler : all) total += (*dialler->end).*number;
    return total;
  }
  size_t dialler_bytes() const {
    size_t total = 0;
    for (const auto& dialler : all) total += dialler->heap.bytes();
    return total;
  }

  sim::World world{1};
  sim::DatagramFabric fabric;
  std::unique_ptr<Member> listener;
  std::vector<std::unique_ptr<Member>> all;
  size_t spoken = 0;  // of each dialler's connections
};

// What an idle connection may take, of either end.
constexpr size_t plain_bytes_max = 512;
constexpr size_t secured_bytes_max = 1536;

}  // namespace

TEST_CASE("idle_connections__hundreds_more__take_little_memory_each") {
  const bool is_secured = GENERATE(false, true);
  const bool is_path_known = GENERATE(true, false);
  const size_t step = is_secured ? 60 : 500;
  sim::DatagramLinkOptions link;
  link.path_bytes = is_path_known ? 0 : 1400;
  Crowd crowd(1, 3 * step, is_secured, link);
  crowd.grow(step);
  crowd.pass(60s);
  const size_t at_listener = crowd.listener->heap.bytes();
  const size_t at_dialler = crowd.dialler_bytes();
  crowd.grow(2 * step);
  const size_t busy = (crowd.listener->heap.bytes() - at_listener) / step;
  crowd.pass(60s);
  const size_t listener = (crowd.listener->heap.bytes() - at_listener) / step;
  const size_t dialler = (crowd.dialler_bytes() - at_dialler) / step;
  WARN((is_secured ? "secured" : "plain") << ", path " << (is_path_known ? "known" : "searched") << ": at the listener " << listener
                                          << " bytes, at the dialler " << dialler << "; before it was idle " << busy);
  CHECK(listener <= (is_secured ? secured_bytes_max : plain_bytes_max));
  CHECK(dialler <= (is_secured ? secured_bytes_max : plain_bytes_max));
}

TEST_CASE("ten_thousand_connections__at_one_endpoint__carry_messages_and_rest") {
  constexpr size_t diallers = 4, each = 2500, all = diallers * each;
  Crowd crowd(diallers, each, false);
  const size_t before = crowd.listener->heap.bytes();
  crowd.grow(each);
  CHECK(crowd.listener->end->messages == all);
  CHECK(crowd.sum(&CrowdEnd::sent) == all);
  crowd.pass(30s);
  CHECK((crowd.listener->heap.bytes() - before) / all <= plain_bytes_max);
  // Keepalive: of each pair one end probes and both look at it some times, and nobody else is looked at.
  const uint64_t visits = crowd.visits();
  const uint64_t turns = crowd.listener->turns;
  const uint64_t datagrams = crowd.fabric.totals().sent;
  crowd.pass(20s);
  const uint64_t probes = all * 20 / 5;
  CHECK(crowd.fabric.totals().sent - datagrams >= probes);
  CHECK(crowd.fabric.totals().sent - datagrams <= 3 * probes);
  INFO("visits for each probe: " << static_cast<double>(crowd.visits() - visits) / static_cast<double>(probes)
                                 << ", turns: " << crowd.listener->turns - turns);
  CHECK(crowd.visits() - visits <= 10 * probes);
  CHECK(crowd.sum(&CrowdEnd::failed) + crowd.sum(&CrowdEnd::lost) + crowd.listener->end->lost == 0);
}

TEST_CASE("ten_thousand_connections__ten_are_busy__nobody_looks_at_the_others") {
  constexpr size_t each = 10'000, busy = 10, rounds = 100;
  DatagramOptions options;
  options.transport.keepalive = Duration{0};
  Crowd crowd(1, each, false, {}, options);
  crowd.grow(each);
  crowd.pass(60s);
  uint64_t visits = crowd.visits();
  crowd.pass(60s);
  CHECK(crowd.visits() == visits);
  CHECK(crowd.listener->end->transport->next_deadline() == never);
  sim::DatagramLinkOptions link;
  SECTION("a network that has room") {}
  SECTION("a network that has none now and then") { link.again_chance = 0.5; }
  crowd.fabric.set_link(link);
  visits = crowd.visits();
  for (size_t i = 0; i < rounds; ++i) {
    const size_t wanted = crowd.sum(&CrowdEnd::messages) + busy;
    for (size_t c = 0; c < busy; ++c) crowd.all[0]->say(c * (each / busy));
    REQUIRE(crowd.run([&] { return crowd.sum(&CrowdEnd::messages) == wanted; }));
  }
  crowd.pass(1s);
  INFO("visits for each message there and back: " << static_cast<double>(crowd.visits() - visits) / (busy * rounds));
  CHECK(crowd.visits() - visits <= 40 * busy * rounds);
}

}  // namespace ccixfer::datagram::testing
