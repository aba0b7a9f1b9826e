#include "tests/unit/routing/routed_nodes.h"

#include "core/base/invariant.h"
#include "transports/sim/card_transport.h"

namespace ccixfer::routing::test {
namespace {

std::unique_ptr<cci::Endpoint> lower_endpoint(sim::Fabric& fabric, sim::NodeId node, const std::string& network,
                                              const std::string& address, const std::shared_ptr<cci::MemoryTable>& memory,
                                              Counters& counters, uint32_t receive_buffers = 1024,
                                              const ports::TransportOptions& below = {}) {
  sim::SimNetOptions net;
  net.networks = {{network, address}};
  net.port = 7000;
  auto transport = sim::make_transport(fabric, node, net, below, counters);
  cci::EndpointOptions options;
  options.receive_buffers = receive_buffers;
  return std::make_unique<cci::Endpoint>(options, std::move(transport), memory, counters);
}

}  // namespace

App::App(sim::World& w, sim::Fabric& fabric, const std::string& network, const std::string& address, SubnetId subnet,
         std::vector<std::string> routers, uint32_t receive_buffers, uint32_t lower_receive_buffers)
    : world(w), node(w.add_node(network + "/" + address)), entropy(w.random().next()) {
  memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  RoutedOptions options;
  options.subnet = subnet;
  options.routers = std::move(routers);
  auto transport = make_routed_transport(
      options, lower_endpoint(fabric, node, network, address, memory, counters, lower_receive_buffers), memory, entropy, counters);
  cci::EndpointOptions upper;
  upper.receive_buffers = receive_buffers;
  endpoint = std::make_unique<cci::Endpoint>(upper, std::move(transport), memory, counters);
  world.add_actor(node, this);
  wake();
}

App::~App() { world.remove_actor(node, this); }

void App::turn(Instant now) {
  endpoint->turn(now);
  while (auto event = endpoint->get_event()) {
    if (event->type == cci::EventType::connect_request && answer != Answer::none) {
      const Status status = answer == Answer::accept ? endpoint->accept(*event, 77) : endpoint->reject(*event, "not today");
      invariant(status == Status::success || status == Status::not_found, "the request is answered, or its peer has gone");
    }
    if (event->type == cci::EventType::accept && event->status == Status::success) accepted = event->connection;
    events.push_back(std::move(*event));
  }
}

std::optional<cci::Event> App::take(cci::EventType type) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].type != type) continue;
    std::optional<cci::Event> found{std::move(events[i])};
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
    return found;
  }
  return std::nullopt;
}

size_t App::count(cci::EventType type) const {
  size_t found = 0;
  for (const cci::Event& event : events) found += event.type == type ? 1 : 0;
  return found;
}

RouterNode::RouterNode(sim::World& w, sim::Fabric& fabric, const std::string& name, std::vector<DeviceSpec> specs,
                       RouterOptions options, std::optional<sim::NodeId> restarted, const ports::TransportOptions& below)
    : world(w), node(restarted ? *restarted : w.add_node(name)), entropy(w.random().next()) {
  memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::vector<RouterDevice> devices;
  for (DeviceSpec& spec : specs) {
    RouterDevice device;
    device.name = spec.network;
    device.subnet = spec.subnet;
    device.scheme = "sim";
    device.endpoint = lower_endpoint(fabric, node, spec.network, spec.address, memory, counters, 1024, below);
    static_cast<void>(device.endpoint->set_send_buffers(spec.send_operations_max));
    device.peers = std::move(spec.peers);
    device.uri = std::move(spec.uri);
    device.rate_bits_per_s = spec.rate_bits_per_s;
    device.wan = spec.wan;
    device.wan_to = std::move(spec.wan_to);
    devices.push_back(std::move(device));
  }
  options.mechanisms.poison_returned = true;
  auto made = Router::create(options, std::move(devices), memory, entropy, counters);
  invariant(made.has_value(), "a router of these options");
  router = std::move(*made);
  world.add_actor(node, this);
  world.wake(node);
}

RouterNode::~RouterNode() { world.remove_actor(node, this); }

}  // namespace ccixfer::routing::test
