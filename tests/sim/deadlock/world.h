// For the tests of deadlock freedom: routers with hardly any buffers, flows over them, and, when nothing
// moves any more, who waits for whom.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/routing/routed_world.h"

namespace ccixfer::routing::test {

// Routers on numbered subnets: subnet s is network "n<s>", router r is 10.<s>.0.<r + 1> on it, applications are from 10.<s>.0.101
// on.
class Net : public Site {
 public:
  explicit Net(uint64_t seed = 1, sim::LinkOptions links = {}) : Site(seed, links) {}
  // One-MiB fragments, so many buffers, and one mechanism off.
  [[nodiscard]] static RouterOptions options_of(RouterMechanisms mechanisms, uint32_t buffers);
  [[nodiscard]] static RouterMechanisms without(bool RouterMechanisms::*one);
  // Which later ones dial: routers that share a subnet link up.
  size_t router(const std::vector<uint32_t>& subnets);
  App& app(uint32_t subnet);
  // Before its routers: a link of the network `subnet` at that rate, which its devices declare; quick and without whims.
  void set_rate(uint32_t subnet, uint64_t bytes_per_s);
  // The smallest pool: one buffer a class.
  void pool_of_one(uint8_t classes = classes_max);
  // Four routers in a ring with an application on a LAN of each; every LAN reaches the one opposite clockwise, over three routers.
  void ring(bool clockwise = true);
  [[nodiscard]] std::vector<RouterDevice> settings(size_t router) const;  // as they are, for reconfigure()
  [[nodiscard]] std::vector<StaticRoute> ring_routes(bool clockwise) const;
  static constexpr uint32_t ring_size = 4;

  // "r0/0 -> r1/0 -> r0/0": routers and buffer classes, each full of what waits for a buffer of the next one. "": no cycle.
  [[nodiscard]] std::string cycle() const;
  [[nodiscard]] uint32_t buffers_used() const;
  [[nodiscard]] uint64_t fragments_moved() const;

  std::vector<std::unique_ptr<App>> apps;
  std::vector<std::vector<uint32_t>> subnets_of;  // of each router
  std::map<uint32_t, uint64_t> rates;             // bytes a second, of those that were set

 private:
  [[nodiscard]] uint64_t rate_bits(uint32_t subnet) const;
  [[nodiscard]] int router_at(const std::string& uri) const;
  [[nodiscard]] std::vector<std::string> routers_on(uint32_t subnet, size_t below) const;  // of the first `below` routers
};

// One RMA of a size over a connection of its own, or over one that is given.
struct Flow {
  App* from = nullptr;
  App* to = nullptr;
  cci::Connection connection;
  bool write = true;
  std::vector<std::byte> source, target, expected;
  cci::Handle local, remote;
  bool started = false, ended = false;
  Status status = Status::error;
  Instant began{}, took_until{};
  [[nodiscard]] bool delivered() const { return ended && status == Status::success && target == expected; }
  // However it ended: no byte there that is neither of it nor from before.
  [[nodiscard]] bool clean() const;
};

class Flows {
 public:
  explicit Flows(Net& net) : net_(net) {}
  // Connects now; start() begins the transfer. Returns its number.
  size_t add(App& from, App& to, size_t bytes, bool write = true);
  size_t add(App& from, App& to, cci::Connection over, size_t bytes, bool write = true);
  void start(size_t flow);
  void start_all();
  // Until all that were started have ended (true), or no fragment moved and none ended for `quiet` of virtual time (false).
  [[nodiscard]] bool run(Duration quiet = std::chrono::seconds(3));
  // The same, until the one has ended.
  [[nodiscard]] bool run_until_ended(size_t flow, Duration at_most);
  void look();  // which have ended
  [[nodiscard]] bool all_delivered() const;
  [[nodiscard]] size_t ended() const;
  Flow& operator[](size_t flow) { return *flows_[flow]; }
  std::function<void()> watch;  // called at every step of run()
  [[nodiscard]] size_t size() const { return flows_.size(); }

 private:
  Net& net_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace ccixfer::routing::test
