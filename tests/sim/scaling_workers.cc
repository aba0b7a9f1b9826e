#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "app/bench/asker.h"
#include "app/bench/server.h"
#include "app/main/worker_spread.h"
#include "app/simulate/site.h"
#include "routing/router/map_snapshot.h"
#include "routing/router/router.h"
#include "tests/sim/scaling.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::testing {
namespace {

using std::chrono::microseconds, std::chrono::milliseconds, std::chrono::nanoseconds, std::chrono::seconds;

// Of a worker's processor: app/simulate/README.md says where they come from.
constexpr sim::ProcessorOptions worker_processor{nanoseconds(500), nanoseconds(1000), microseconds(50)};
constexpr Duration of_a_message = nanoseconds(1000);
constexpr uint64_t card_bytes_per_s = 100'000'000'000;  // 800 Gb/s: the workers share it
constexpr uint64_t end_bytes_per_s = 25'000'000'000;
constexpr Duration row_time = milliseconds(20);
constexpr uint32_t depth = 64;  // so that the ends are no bottleneck
constexpr Duration longest = seconds(100);
constexpr uint64_t events_max = 200'000'000;

sim::LinkOptions calm() {
  sim::LinkOptions link;
  link.delay_min = link.delay_max = microseconds(20);
  link.rate_bytes_per_s = end_bytes_per_s;
  link.window_bytes = 4u << 20;
  link.split_chance = link.again_chance = 0;
  return link;
}

// A router of several workers. In the program each is a thread; here each is a node of its own, which is a processor. Worker 0
// accepts, and a connection moves as it does there.
class WorkersRouter {
 public:
  WorkersRouter(sim::Fabric& fabric, size_t count) : spread_([this](size_t number) { return load_of(number); }) {
    for (size_t number = 0; number < count; ++number) workers_.push_back(std::make_unique<Worker>(*this, fabric, number));
    if (count > 1) {
      for (const auto& [device, mover] : workers_[0]->movers) mover->set_placement(std::make_shared<Placer>(*this, device));
    }
  }
  [[nodiscard]] bool ready() const { return workers_[0]->router->ready(); }
  [[nodiscard]] std::vector<size_t> connections() const {
    std::vector<size_t> all;
    for (const auto& worker : workers_) all.push_back(worker->router->connections_open());
    return all;
  }
  [[nodiscard]] std::vector<Duration> worked() const {
    std::vector<Duration> all;
    for (const auto& worker : workers_) all.push_back(worker->site.world.worked(worker->site.node));
    return all;
  }

 private:
  struct Worker final : public sim::Actor {
    Worker(WorkersRouter& all_, sim::Fabric& fabric, size_t number_)
        : all(all_),
          number(number_),
          site(fabric, fmt::format("worker {}", number),
               {{"left", fmt::format("10.0.0.{}", 200 + number)}, {"right", fmt::format("10.0.1.{}", 200 + number)}}),
          entropy(site.world.random().next()),
          memory(std::make_shared<cci::MemoryTable>(entropy, site.counters)) {
      site.world.set_processor(site.node, worker_processor);
      std::vector<routing::RouterDevice> devices;
      for (uint32_t i = 0; i < 2; ++i) {
        routing::RouterDevice& device = devices.emplace_back();
        device.name = site.networks[i].network;
        device.subnet = {1, i};
        device.scheme = "sim";
        device.rate_bits_per_s = 8 * card_bytes_per_s;
        sim::SimNetOptions net;
        net.networks = {site.networks[i]};
        net.card = device.name;
        net.listen = number == 0;
        net.port = number == 0 ? simulate::router_port : uint16_t{0};
        auto transport = std::make_unique<stream::StreamTransport>(
            ports::TransportOptions{}, std::make_unique<sim::SimNet>(fabric, site.node, net), site.counters);
        movers[device.name] = transport.get();
        device.endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, site.counters);
        if (number > 0) device.uri = fmt::format("sim://10.0.{}.200:{}", i, simulate::router_port);
      }
      routing::RouterOptions options;
      options.follows = number > 0;
      auto made = routing::Router::create(options, std::move(devices), memory, entropy, site.counters);
      REQUIRE(made.has_value());
      router = std::move(*made);
      site.world.add_actor(site.node, this);
    }
    ~Worker() override { site.world.remove_actor(site.node, this); }

    void turn(Instant now) override {
      const size_t adopted_now = adopted;
      router->turn(now);
      open = router->connections_open();
      told = adopted_now;
      const uint64_t passed = site.counters.get(Counter::routed_messages);
      site.world.work(site.node, of_a_message * static_cast<int64_t>(passed - std::exchange(messages, passed)));
      if (number == 0) all.tell_map();
    }
    [[nodiscard]] Instant next_deadline() const override { return router->next_deadline(); }

    WorkersRouter& all;
    const size_t number;
    simulate::Site site;
    sim::SimEntropy entropy;
    std::shared_ptr<cci::MemoryTable> memory;
    std::map<std::string, stream::StreamTransport*> movers;  // by device
    std::unique_ptr<routing::Router> router;
    uint64_t messages = 0;
    size_t moved = 0, adopted = 0, told = 0, open = 0;  // as RouterWorkers::Worker has them
  };

  struct Placer final : public stream::Placement {
    Placer(WorkersRouter& to, std::string of) : workers(to), device(std::move(of)) {}
    bool goes_elsewhere(ports::Role role) override {
      return role == ports::Role::hop && workers.spread_.goes_elsewhere(workers.workers_.size());
    }
    void move(stream::MovedConnection connection) override { workers.move(device, std::move(connection)); }
    WorkersRouter& workers;
    const std::string device;
  };

  [[nodiscard]] size_t load_of(size_t number) const {
    const Worker& worker = *workers_[number];
    return number == 0 ? worker.router->connections_open() : worker.open + worker.moved - worker.told;
  }
  // What takes a thread's wake-up in the program takes as long as a packet here.
  void move(const std::string& device, stream::MovedConnection connection) {
    Worker& to = *workers_[spread_.place(workers_.size())];
    ++to.moved;
    const auto held = std::make_shared<stream::MovedConnection>(std::move(connection));
    to.site.world.at_node(to.site.node, after(to.site.world.now(), microseconds(20)), [&to, device, held] {
      ++to.adopted;
      to.movers.at(device)->adopt(std::move(*held));
    });
  }
  void tell_map() {
    auto map = workers_[0]->router->map();
    if (map == map_) return;
    map_ = std::move(map);
    for (size_t number = 1; number < workers_.size(); ++number) {
      workers_[number]->router->follow(map_);
      workers_[number]->site.world.wake(workers_[number]->site.node);
    }
  }

  program::WorkerSpread spread_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<const routing::MapSnapshot> map_;
};

// One end of a measurement: a host with a routed endpoint.
struct End final : public sim::Actor {
  End(sim::Fabric& fabric, const std::string& network, const std::string& address, uint32_t subnet, bool listens)
      : site(fabric, address, {{network, address}}),
        entropy(site.world.random().next()),
        memory(std::make_shared<cci::MemoryTable>(entropy, site.counters)) {
    site.routing = simulate::Routing{{1, subnet}, {fmt::format("sim://10.0.{}.200:{}", subnet, simulate::router_port)}};
    endpoint = simulate::make_endpoint(site, listens, memory, entropy);
    site.world.add_actor(site.node, this);
  }
  ~End() override { site.world.remove_actor(site.node, this); }
  void turn(Instant now) override {
    if (server) server->turn(now);
    if (!asker) return;
    asker->turn(now);
    while (auto row = asker->next_row()) rows.push_back(*row);
  }
  [[nodiscard]] Instant next_deadline() const override {
    if (server) return server->next_deadline();
    return asker ? asker->next_deadline() : endpoint->next_deadline();
  }
  simulate::Site site;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::unique_ptr<bench::Server> server;
  std::unique_ptr<bench::Asker> asker;
  std::vector<bench::Row> rows;
};

double operations_per_s(const bench::Row& row) {
  return static_cast<double>(row.count) / std::chrono::duration<double>(row.took).count();
}

}  // namespace

WorkersResult run_workers(uint64_t seed, size_t workers, size_t pairs) {
  sim::World world(seed);
  sim::Fabric fabric(world, calm());
  for (const char* card : {"left", "right"}) fabric.set_card(card, card_bytes_per_s);
  WorkersRouter router(fabric, workers);
  std::vector<std::unique_ptr<End>> askers, servers;
  REQUIRE(world.run_until([&] { return router.ready(); }, after(world.now(), longest), events_max) == sim::RunEnd::reached);
  for (size_t i = 0; i < pairs; ++i) {
    servers.push_back(std::make_unique<End>(fabric, "right", fmt::format("10.0.1.{}", i + 1), 1, true));
    servers.back()->server = std::make_unique<bench::Server>(*servers.back()->endpoint, servers.back()->entropy, bench::Wait::poll);
    askers.push_back(std::make_unique<End>(fabric, "left", fmt::format("10.0.0.{}", i + 1), 0, false));
  }
  WorkersResult result;
  const auto measure = [&](bench::Test test, uint64_t size_bytes, std::vector<double>& busy,
                           const std::function<void(const bench::Row&)>& take) {
    bench::Plan plan;
    plan.tests = {test};
    plan.sizes_bytes = {size_bytes};
    plan.row_time = row_time;
    plan.depth = depth;
    for (size_t i = 0; i < pairs; ++i) {
      askers[i]->rows.clear();
      askers[i]->asker =
          std::make_unique<bench::Asker>(*askers[i]->endpoint, askers[i]->entropy, plan, servers[i]->endpoint->uri());
      world.wake(askers[i]->site.node);
    }
    const std::vector<Duration> before = router.worked();
    const Instant began = world.now();
    size_t most_open = 0;
    const auto ended = [&] {
      size_t open = 0;
      for (const size_t one : router.connections()) open += one;
      if (open > most_open) {
        most_open = open;
        result.connections = router.connections();
      }
      return std::all_of(askers.begin(), askers.end(), [](const auto& end) { return end->asker->ended(); });
    };
    REQUIRE(world.run_until(ended, after(world.now(), longest), events_max) == sim::RunEnd::reached);
    const std::vector<Duration> behind = router.worked();
    busy.clear();
    for (size_t i = 0; i < behind.size(); ++i)
      busy.push_back(static_cast<double>((behind[i] - before[i]).count()) / static_cast<double>((world.now() - began).count()));
    for (const auto& end : askers) {
      REQUIRE(end->asker->error().kind == ErrorKind::ok);
      REQUIRE(end->rows.size() == 1);
      take(end->rows.front());
      end->asker.reset();
    }
    static_cast<void>(world.run_for(seconds(1)));
  };
  measure(bench::Test::message_rate, 0, result.busy_with_messages,
          [&](const bench::Row& row) { result.messages_per_s += operations_per_s(row); });
  measure(bench::Test::rma_write, 1u << 20, result.busy_with_writes,
          [&](const bench::Row& row) { result.bytes_per_s += operations_per_s(row) * static_cast<double>(row.size_bytes); });
  return result;
}

}  // namespace ccixfer::testing
