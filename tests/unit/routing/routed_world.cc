#include "tests/unit/routing/routed_world.h"

namespace ccixfer::routing::test {

RouterOptions Site::small() {
  RouterOptions options;
  options.fragment_bytes = 64u << 10;
  options.memory_bytes = 16u * (64u << 10);
  return options;
}

void Site::add_router(const std::string& name, std::vector<DeviceSpec> devices) {
  routers.push_back(std::make_unique<RouterNode>(world, fabric, name, std::move(devices), options));
}

void Site::chain(size_t count, const std::vector<uint32_t>& lent) {
  const RouterOptions all = options;
  for (size_t i = 0; i < count; ++i) {
    if (!lent.empty()) {
      options.fragment_bytes = lent.at(i);
      options.memory_bytes = all.memory_bytes / all.fragment_bytes * lent.at(i);
    }
    const std::string before = i == 0 ? "lan1" : "mid" + std::to_string(i);
    const std::string after = i + 1 == count ? "lan2" : "mid" + std::to_string(i + 1);
    const SubnetId in = i == 0 ? SubnetId{1, 1} : SubnetId{1, static_cast<uint32_t>(10 + i)};
    const SubnetId out = i + 1 == count ? SubnetId{1, 2} : SubnetId{1, static_cast<uint32_t>(11 + i)};
    // Every router is .1 on the subnet to its right and .2 on the one to its left, but for the clients' sides: the same names at
    // both ends.
    DeviceSpec left_device{before, i == 0 ? "10.0.0.1" : "10.9.0.2", in, {}};
    DeviceSpec right_device{after, i + 1 == count ? "10.0.0.1" : "10.9.0.1", out, {}};
    if (i > 0) left_device.peers = {"sim://10.9.0.1:7000"};
    if (i + 1 < count) right_device.peers = {"sim://10.9.0.2:7000"};
    add_router("r" + std::to_string(i + 1), {left_device, right_device});
  }
  options = all;
  left = std::make_unique<App>(world, fabric, "lan1", "10.0.0.2", SubnetId{1, 1}, std::vector<std::string>{"sim://10.0.0.1:7000"});
  right = std::make_unique<App>(world, fabric, "lan2", "10.0.0.2", SubnetId{1, 2}, std::vector<std::string>{"sim://10.0.0.1:7000"});
  settle();
}

void Site::parallel(size_t count) {
  std::vector<std::string> peers, gateways;
  for (size_t i = 0; i < count; ++i) {
    peers.push_back("sim://10.9.0." + std::to_string(2 + i) + ":7000");
    gateways.push_back("sim://10.0.0." + std::to_string(101 + i) + ":7000");
  }
  add_router("w", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"mid", "10.9.0.1", {1, 9}, peers}});
  for (size_t i = 0; i < count; ++i) {
    add_router("e" + std::to_string(i), {{"mid", "10.9.0." + std::to_string(2 + i), {1, 9}, {"sim://10.9.0.1:7000"}},
                                         {"lan2", "10.0.0." + std::to_string(101 + i), {1, 2}, {}}});
  }
  left = std::make_unique<App>(world, fabric, "lan1", "10.0.0.2", SubnetId{1, 1}, std::vector<std::string>{"sim://10.0.0.1:7000"});
  right = std::make_unique<App>(world, fabric, "lan2", "10.0.0.2", SubnetId{1, 2}, gateways);
  settle();
}

void Site::kill(size_t index) {
  world.crash(routers[index]->node);
  routers[index].reset();
}

void Site::restart(size_t index, sim::NodeId node, std::vector<DeviceSpec> devices) {
  world.restart(node);
  routers[index] = std::make_unique<RouterNode>(world, fabric, "", std::move(devices), options, node);
}

bool Site::run(const std::function<bool()>& done, Duration at_most) {
  return world.run_until(done, after(world.now(), at_most)) == sim::RunEnd::reached || done();
}

void Site::settle() {
  REQUIRE(run([&] {
    for (const auto& router : routers) {
      if (router != nullptr && !router->router->ready()) return false;
    }
    return true;
  }));
  world.run_for(std::chrono::milliseconds(50));
}

cci::Event Site::connect_event(App& from, const std::string& uri, Duration timeout) {
  cci::ConnectOptions how;
  how.timeout = timeout;
  how.data = as_bytes("hello");
  how.context = 5;
  const auto connection = from.endpoint->connect(uri, how);
  REQUIRE(connection);
  from.wake();
  REQUIRE(run([&] { return from.count(cci::EventType::connect) > 0; }, std::chrono::seconds(120)));
  cci::Event event = std::move(*from.take(cci::EventType::connect));
  CHECK(event.context == 5);
  return event;
}

cci::Connection Site::connect(App& from, const App& to, Duration timeout) {
  const cci::Event event = connect_event(from, to.uri(), timeout);
  INFO(event.reason);
  REQUIRE(event.status == Status::success);
  App& acceptor = &to == left.get() ? *left : *right;
  REQUIRE(run([&] { return acceptor.count(cci::EventType::accept) > 0; }));
  CHECK(acceptor.take(cci::EventType::accept)->status == Status::success);
  const auto request = acceptor.take(cci::EventType::connect_request);
  REQUIRE(request);
  CHECK(as_text(request->data()) == "hello");
  return event.connection;
}

Status Site::send(App& from, cci::Connection connection, std::string_view text) {
  const Status status = from.endpoint->send(connection, as_bytes(text), 9);
  if (status != Status::success) return status;
  from.wake();
  REQUIRE(run([&] { return from.count(cci::EventType::send) > 0; }));
  return from.take(cci::EventType::send)->status;
}

Status Site::rma(App& from, cci::Connection connection, cci::RmaOptions rma) {
  rma.context = 11;
  const Status status = from.endpoint->rma(connection, rma);
  if (status != Status::success) return status;
  from.wake();
  REQUIRE(run([&] { return from.count(cci::EventType::send) > 0; }));
  return from.take(cci::EventType::send)->status;
}

std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  sim::Random random(seed);
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random.next());
  return data;
}

}  // namespace ccixfer::routing::test
