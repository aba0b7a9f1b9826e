// Two nodes on one link, a server on one and an asker on the other, over the real stream transport in the simulated world: virtual
// time, so that what is measured can be known beforehand.
#pragma once
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "app/bench/asker.h"
#include "app/bench/server.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/world.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::bench {

inline constexpr Duration one_way = std::chrono::milliseconds(1);  // long beside the world's turn delays of 50 us
inline constexpr const char* uri = "sim://10.0.0.1:7000";

struct Side : sim::Actor {
  Side(sim::Fabric& fabric, sim::NodeId node, const char* address, bool listen, uint64_t seed)
      : entropy(seed), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {
    sim::SimNetOptions options;
    options.networks = {{"lan", address}};
    options.listen = listen;
    options.port = 7000;
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                               std::make_unique<sim::SimNet>(fabric, node, options), counters);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
  }
  void turn(Instant now) override { work(now); }
  [[nodiscard]] Instant next_deadline() const override { return deadline ? deadline() : endpoint->next_deadline(); }
  Counters counters;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::function<void(Instant)> work;
  std::function<Instant()> deadline;
};

struct Pair {
  explicit Pair(uint64_t seed, const PlanText& text)
      : world(seed),
        fabric(world, link()),
        west(world.add_node("west")),
        east(world.add_node("east")),
        there(fabric, west, "10.0.0.1", true, seed * 2 + 1),
        here(fabric, east, "10.0.0.2", false, seed * 2 + 2),
        server(*there.endpoint, there.entropy, Wait::spin),
        asker(*here.endpoint, here.entropy, *make_plan(text), uri) {
    there.deadline = [this] { return server.next_deadline(); };
    there.work = [this](Instant now) { server.turn(now); };
    here.work = [this](Instant now) {
      asker.turn(now);
      while (auto row = asker.next_row()) rows.push_back(*row);
    };
    here.deadline = [this] { return asker.wants_spin() ? Instant{} : asker.next_deadline(); };
    world.add_actor(west, &there);
    world.add_actor(east, &here);
    world.wake(east);
  }
  ~Pair() {
    if (world.alive(west)) world.remove_actor(west, &there);
    world.remove_actor(east, &here);
  }
  static sim::LinkOptions link() {
    sim::LinkOptions options;
    options.delay_min = options.delay_max = one_way;
    options.again_chance = 0;
    options.split_chance = 0;
    return options;
  }
  sim::RunEnd run(Duration longest = std::chrono::seconds(100)) {
    return world.run_until([this] { return asker.ended(); }, after(world.now(), longest), 5'000'000);
  }
  const Row& row(const std::string& test, uint64_t size = 0) {
    for (const Row& one : rows) {
      if (one.test == test && (size == 0 || one.size_bytes == size)) return one;
    }
    FAIL("no row " << test);
    return rows.front();
  }
  sim::World world;
  sim::Fabric fabric;
  sim::NodeId west, east;
  Side there, here;
  Server server;
  Asker asker;
  std::vector<Row> rows;
};

inline bool between(Duration value, Duration low, Duration high) {
  INFO(value.count() << " ns, from " << low.count() << " to " << high.count());
  CHECK(value >= low);
  CHECK(value <= high);
  return value >= low && value <= high;
}

}  // namespace ccixfer::bench
