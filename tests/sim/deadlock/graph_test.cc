// T3: which buffer may wait for which, by the maps of running routers, without running any traffic.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "routing/router/fragment_pool.h"
#include "routing/router/map_query.h"
#include "tests/sim/deadlock/world.h"
#include "transports/stream/stream_transport.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::seconds;

namespace {

// Asks a router for its records, as `ccixfer routes` does.
class Asker final : public sim::Actor {
 public:
  Asker(Net& net, uint32_t subnet) : net_(net), node_(net.world.add_node("asker")), entropy_(1) {
    sim::SimNetOptions options;
    options.networks = {{fmt::format("n{}", subnet), fmt::format("10.{}.0.99", subnet)}};
    auto transport = std::make_unique<stream::StreamTransport>(
        ports::TransportOptions{}, std::make_unique<sim::SimNet>(net.fabric, node_, options), counters_);
    endpoint_ = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport),
                                                std::make_shared<cci::MemoryTable>(entropy_, counters_), counters_);
    net.world.add_actor(node_, this);
  }
  ~Asker() override { net_.world.remove_actor(node_, this); }
  std::vector<RouterRecord> ask(const std::string& uri) {
    query_.emplace(*endpoint_, uri, seconds(5), 1);
    net_.world.wake(node_);
    REQUIRE(net_.run([&] { return query_->done(); }));
    REQUIRE(query_->result());
    return *query_->result();
  }
  void turn(Instant now) override {
    if (query_) query_->turn(now);
    endpoint_->turn(now);
    while (auto event = endpoint_->get_event()) {
      if (query_) static_cast<void>(query_->on_event(*event));
    }
  }
  [[nodiscard]] Instant next_deadline() const override { return endpoint_->next_deadline(); }

 private:
  Net& net_;
  sim::NodeId node_;
  Counters counters_;
  sim::SimEntropy entropy_;
  std::unique_ptr<cci::Endpoint> endpoint_;
  std::optional<MapQuery> query_;
};

using Place = std::pair<uint64_t, uint8_t>;  // router, class of its buffer
using Graph = std::map<Place, std::set<Place>>;
// Of the buffer at the router that is `crossed` routers after the first.
using ClassAt = std::function<uint8_t(uint8_t crossed)>;

// Follows every way that forwarding may take, fallbacks included, from router to router.
void follow(const RouterMap& map, const ClassAt& class_at, SubnetId source, SubnetId to, uint64_t router, SubnetId in,
            uint8_t crossed, Graph& graph, size_t& longest) {
  longest = std::max<size_t>(longest, crossed + 1u);
  if (crossed + 1u >= hops_max) return;  // the next router would refuse
  for (const NextHop& hop : map.next_hops(router, source, in, to)) {
    if (hop.last) continue;
    graph[{router, class_at(crossed)}].insert({hop.router, class_at(static_cast<uint8_t>(crossed + 1))});
    SubnetId over;
    for (const RouterRecord& record : map.records()) {
      if (record.router == router) over = record.devices[hop.device].subnet;
    }
    follow(map, class_at, source, to, hop.router, over, static_cast<uint8_t>(crossed + 1), graph, longest);
  }
}

Graph graph_of(const RouterMap& map, const ClassAt& class_at, size_t& longest) {
  Graph graph;
  for (const SubnetId from : map.subnets()) {
    for (const SubnetId to : map.subnets()) {
      if (from == to) continue;
      for (const RouterRecord& record : map.records()) {
        for (const DeviceRecord& device : record.devices) {
          if (device.subnet == from) follow(map, class_at, from, to, record.router, from, 0, graph, longest);
        }
      }
    }
  }
  return graph;
}

bool has_cycle(const Graph& graph) {
  std::set<Place> open, closed;
  const std::function<bool(const Place&)> search = [&](const Place& place) {
    if (closed.contains(place)) return false;
    if (!open.insert(place).second) return true;
    if (const auto found = graph.find(place); found != graph.end()) {
      for (const Place& next : found->second) {
        if (search(next)) return true;
      }
    }
    open.erase(place);
    closed.insert(place);
    return false;
  };
  return std::any_of(graph.begin(), graph.end(), [&](const auto& entry) { return search(entry.first); });
}

// Subnets of each router. Every router pair of a line below shares one.
const std::vector<std::vector<std::vector<uint32_t>>> shapes = {
    {{1, 11, 14}, {2, 12, 11}, {3, 13, 12}, {4, 14, 13}},                                  // a ring, by hops
    {{1, 11, 12, 13}, {2, 11, 14, 15}, {3, 12, 14, 16}, {4, 13, 15, 16}},                  // all with all
    {{11, 12, 15}, {12, 13, 16}, {13, 11, 17}, {21, 22, 15}, {22, 23, 16}, {23, 21, 17}},  // a prism
    {{1, 11}, {11, 12}, {12, 13}, {13, 14}, {14, 2}},                                      // a line
};

}  // namespace

TEST_CASE("T3 no buffer waits for itself in running routers; one increment less and it does") {
  const size_t shape = GENERATE(size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4});
  Net net(shape + 1);
  std::vector<StaticRoute> statics;
  if (shape == shapes.size()) {
    net.ring();
    statics = net.ring_routes(true);
  } else {
    for (const auto& subnets : shapes[shape]) net.router(subnets);
    net.settle();
    net.world.run_for(seconds(2));
  }
  Asker asker(net, net.subnets_of[0][0]);
  const uint32_t there = net.subnets_of[0][0];
  const auto records = asker.ask(fmt::format("sim://10.{}.0.1:7000", there));
  REQUIRE(records.size() == net.routers.size());
  const RouterMap map(records, {Metric::bandwidth, Metric::hops}, statics);
  const FragmentPool pool(4096, 8 * 4096);
  const ClassAt counted = [&](uint8_t crossed) { return pool.class_of(crossed); };
  size_t longest = 0;
  const Graph graph = graph_of(map, counted, longest);
  INFO("shape " << shape << ", " << graph.size() << " places, up to " << longest << " routers");
  CHECK(graph.size() >= records.size());
  CHECK_FALSE(has_cycle(graph));
  // A packet that is not counted once, at its first, second ... router.
  bool any = false;
  for (uint8_t dropped = 0; dropped + 1u < longest; ++dropped) {
    const ClassAt lacking = [&](uint8_t crossed) {
      return pool.class_of(static_cast<uint8_t>(crossed > dropped ? crossed - 1 : crossed));
    };
    size_t ignored = 0;
    any = has_cycle(graph_of(map, lacking, ignored)) || any;
  }
  CHECK(any);
}
