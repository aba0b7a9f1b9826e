// What a further worker of a router has after a change of its devices that fails on the way.
#include "app/main/worker_devices.h"

#include <catch2/catch.hpp>

#include "core/host/clock.h"
#include "core/host/entropy.h"

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

DeviceConfig of_tcp(const std::string& name) {
  DeviceConfig device;
  device.name = name;
  device.transport = "tcp";
  device.ip = "127.0.0.1";
  return device;
}

// A worker whose router has the devices a and b. Endpoints of the devices in `fails` cannot be made.
struct Worker {
  Worker() {
    const auto begin = [this](std::vector<routing::RouterDevice> all) -> Result<void> {
      auto made = routing::Router::create(options(), std::move(all), memory, entropy, counters);
      if (!made) return tl::unexpected(made.error());
      router = std::move(*made);
      return {};
    };
    REQUIRE(devices.change(config({"a", "b"}), settings({"a", "b"}), begin));
  }
  static Config config(const std::vector<std::string>& names) {
    Config all;
    for (const std::string& name : names) all.devices.push_back(of_tcp(name));
    return all;
  }
  static std::vector<routing::RouterDevice> settings(const std::vector<std::string>& names) {
    std::vector<routing::RouterDevice> all;
    for (const std::string& name : names) {
      routing::RouterDevice& device = all.emplace_back();
      device.name = name;
      device.subnet = {1, static_cast<uint32_t>(name[0])};
      device.scheme = "tcp";
      device.rate_bits_per_s = 1'000'000'000;
      device.uri = "tcp://127.0.0.1:" + std::to_string(27'000 + name[0]);
    }
    return all;
  }
  static routing::RouterOptions options() {
    routing::RouterOptions all;
    all.memory_bytes = 1u << 20;
    all.follows = true;
    return all;
  }
  Result<void> reload(const std::vector<std::string>& names) { return reload(names, settings(names)); }
  Result<void> reload(const std::vector<std::string>& names, std::vector<routing::RouterDevice> wanted) {
    return devices.change(config(names), std::move(wanted), [this](std::vector<routing::RouterDevice> all) {
      return refuses ? fail(ErrorKind::usage, "a clash") : router->reconfigure(options(), std::move(all));
    });
  }

  host::SystemEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::set<std::string> fails;
  bool refuses = false;
  WorkerDevices devices{[this](const DeviceConfig& device) -> Result<Node> {
    if (fails.count(device.name) > 0) return fail(ErrorKind::network, "too many open files");
    NodeOptions bare;
    bare.bare = true;
    bare.memory = memory;
    return make_node(device, bare, entropy, counters);
  }};
  std::unique_ptr<routing::Router> router;  // it has the endpoints
};

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("worker_devices__the_second_new_one_fails__no_connection_moves_to_the_first") {
  Worker worker;
  REQUIRE(worker.devices.movable() == Names{"a", "b"});
  worker.fails = {"d"};
  CHECK(worker.reload({"a", "b", "c", "d"}).error().message == "too many open files");
  CHECK_FALSE(worker.router->has_device("c"));
  CHECK(worker.devices.movable() == Names{"a", "b"});  // the endpoint of c is gone, and its transport with it
  worker.fails = {};
  REQUIRE(worker.reload({"a", "b", "c", "d"}));
  CHECK(worker.devices.movable() == Names{"a", "b", "c", "d"});
  worker.devices.mover("c").adopt({});  // a connection whose stream ended on the way: it comes to a transport that lives
  worker.router->turn(host::SystemClock().now());
}

TEST_CASE("worker_devices__the_router_refuses_the_change__nothing_of_it_is_left") {
  Worker worker;
  worker.refuses = true;
  CHECK_FALSE(worker.reload({"a", "b", "c"}));
  CHECK(worker.devices.movable() == Names{"a", "b"});
  CHECK_FALSE(worker.devices.is_current());
  worker.refuses = false;
  REQUIRE(worker.reload({"a", "b", "c"}));
  CHECK(worker.router->has_device("c"));
  CHECK(worker.devices.movable() == Names{"a", "b", "c"});
}

// Worker 0 has taken the first change, by which m is its third device, and c is its fourth.
TEST_CASE("worker_devices__a_change_was_missed__not_current_until_one_succeeds_with_worker_0s_numbers") {
  Worker worker_0;
  Worker worker;
  const auto reload = [&](const std::vector<std::string>& names) {
    REQUIRE(worker_0.reload(names));
    return worker.reload(names, in_order_of(worker_0.router->devices(), Worker::settings(names)));
  };
  worker.fails = {"m"};
  CHECK(worker.devices.is_current());
  CHECK_FALSE(reload({"a", "b", "m"}));
  CHECK_FALSE(worker.devices.is_current());
  worker.fails = {};
  REQUIRE(reload({"a", "b", "c", "m"}));
  CHECK(worker.devices.is_current());
  CHECK(worker.router->devices()[2].first == "m");
  CHECK(worker.router->devices() == worker_0.router->devices());
}
