#include "tests/sim/deadlock/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace ccixfer::routing::test {
namespace {

constexpr uint64_t flow_context = 1000;  // of flow 0; Site's own operations use small numbers

std::string network(uint32_t subnet) { return fmt::format("n{}", subnet); }
std::string address(uint32_t subnet, size_t host) { return fmt::format("10.{}.0.{}", subnet, host); }
std::string native(uint32_t subnet, size_t router) { return fmt::format("sim://{}:7000", address(subnet, router + 1)); }

}  // namespace

std::vector<std::string> Net::routers_on(uint32_t subnet, size_t below) const {
  std::vector<std::string> all;
  for (size_t r = 0; r < below; ++r) {
    const auto& theirs = subnets_of[r];
    if (std::find(theirs.begin(), theirs.end(), subnet) != theirs.end()) all.push_back(native(subnet, r));
  }
  return all;
}

size_t Net::router(const std::vector<uint32_t>& subnets) {
  const size_t index = routers.size();
  std::vector<DeviceSpec> devices;
  for (const uint32_t subnet : subnets) {
    devices.push_back({network(subnet), address(subnet, index + 1), {1, subnet}, routers_on(subnet, index)});
    devices.back().rate_bits_per_s = rate_bits(subnet);
  }
  subnets_of.push_back(subnets);
  add_router(fmt::format("r{}", index), std::move(devices));
  return index;
}

App& Net::app(uint32_t subnet) {
  apps.push_back(std::make_unique<App>(world, fabric, network(subnet), address(subnet, 101 + apps.size()), SubnetId{1, subnet},
                                       routers_on(subnet, subnets_of.size())));
  return *apps.back();
}

std::vector<RouterDevice> Net::settings(size_t router) const {
  std::vector<RouterDevice> all;
  for (const uint32_t subnet : subnets_of[router]) {
    RouterDevice device;
    device.name = network(subnet);
    device.subnet = {1, subnet};
    device.scheme = "sim";
    device.rate_bits_per_s = rate_bits(subnet);
    device.peers = routers_on(subnet, router);
    all.push_back(std::move(device));
  }
  return all;
}

RouterOptions Net::options_of(RouterMechanisms mechanisms, uint32_t buffers) {
  RouterOptions options;
  options.fragment_bytes = 1u << 20;
  options.memory_bytes = uint64_t{buffers} << 20;
  options.mechanisms = mechanisms;
  return options;
}

RouterMechanisms Net::without(bool RouterMechanisms::*one) {
  RouterMechanisms mechanisms;
  mechanisms.*one = false;
  return mechanisms;
}

void Net::set_rate(uint32_t subnet, uint64_t bytes_per_s) {
  sim::LinkOptions link;
  link.delay_min = link.delay_max = std::chrono::microseconds(50);
  link.rate_bytes_per_s = bytes_per_s;
  link.split_chance = link.again_chance = 0;
  fabric.set_link(network(subnet), link);
  rates[subnet] = bytes_per_s;
}

uint64_t Net::rate_bits(uint32_t subnet) const {
  const auto found = rates.find(subnet);
  return found == rates.end() ? 10'000'000'000 : found->second * 8;
}

void Net::pool_of_one(uint8_t classes) {
  options.mechanisms.classes = classes;
  options.memory_bytes = uint64_t{classes} * options.fragment_bytes;
}

std::vector<StaticRoute> Net::ring_routes(bool clockwise) const {
  std::vector<StaticRoute> all;
  const auto lan = [](uint32_t i) { return SubnetId{1, 1 + i % ring_size}; };
  const auto arc = [](uint32_t i) { return SubnetId{1, 11 + i % ring_size}; };  // between router i and router i + 1
  for (uint32_t i = 0; i < ring_size; ++i) {
    const SubnetId first = clockwise ? arc(i) : arc(i + ring_size - 1);
    const SubnetId second = clockwise ? arc(i + 1) : arc(i + ring_size - 2);
    all.push_back({lan(i), lan(i + 2), {lan(i), first, second}});
  }
  return all;
}

void Net::ring(bool clockwise) {
  options.static_routes = ring_routes(clockwise);
  for (uint32_t i = 0; i < ring_size; ++i) router({1 + i, 11 + i, 11 + (i + ring_size - 1) % ring_size});
  settle();
  world.run_for(std::chrono::seconds(1));  // every record everywhere
  for (uint32_t i = 0; i < ring_size; ++i) static_cast<void>(app(1 + i));
}

int Net::router_at(const std::string& uri) const {
  for (size_t r = 0; r < subnets_of.size(); ++r) {
    for (const uint32_t subnet : subnets_of[r]) {
      if (native(subnet, r) == uri) return static_cast<int>(r);
    }
  }
  return -1;
}

std::string Net::cycle() const {
  using Place = std::pair<int, int>;  // router, class
  std::map<Place, std::set<Place>> waits_for;
  for (size_t r = 0; r < routers.size(); ++r) {
    if (routers[r] == nullptr) continue;
    for (const FragmentView& held : routers[r]->router->fragments()) {
      const int next = held.holds_buffer && !held.next.empty() ? router_at(held.next) : -1;
      if (next < 0 || routers[static_cast<size_t>(next)] == nullptr) continue;
      for (const FragmentView& waiting : routers[static_cast<size_t>(next)]->router->fragments()) {
        if (!waiting.holds_buffer && waiting.crossed == held.crossed + 1)
          waits_for[{static_cast<int>(r), held.buffer_class}].insert({next, waiting.buffer_class});
      }
    }
  }
  std::vector<Place> path;
  std::set<Place> done;
  std::string found;
  const std::function<bool(const Place&)> search = [&](const Place& place) {
    const auto before = std::find(path.begin(), path.end(), place);
    if (before != path.end()) {
      for (auto at = before; at != path.end(); ++at) found += fmt::format("r{}/{} -> ", at->first, at->second);
      found += fmt::format("r{}/{}", place.first, place.second);
      return true;
    }
    if (!done.insert(place).second) return false;
    path.push_back(place);
    for (const Place& next : waits_for[place]) {
      if (search(next)) return true;
    }
    path.pop_back();
    return false;
  };
  for (const auto& [place, next] : std::map<Place, std::set<Place>>(waits_for)) {
    if (search(place)) return found;
  }
  return "";
}

uint32_t Net::buffers_used() const {
  uint32_t used = 0;
  for (const auto& router : routers) used += router == nullptr ? 0 : router->router->fragments_in_use();
  return used;
}

uint64_t Net::fragments_moved() const {
  uint64_t moved = 0;
  for (const auto& router : routers) moved += router == nullptr ? 0 : router->counters.get(Counter::routed_fragments);
  return moved;
}

size_t Flows::add(App& from, App& to, size_t bytes, bool write) {
  const cci::Event event = net_.connect_event(from, to.uri());
  INFO(event.reason);
  REQUIRE(event.status == Status::success);
  return add(from, to, event.connection, bytes, write);
}

size_t Flows::add(App& from, App& to, cci::Connection over, size_t bytes, bool write) {
  auto flow = std::make_unique<Flow>();
  flow->from = &from;
  flow->to = &to;
  flow->connection = over;
  flow->write = write;
  flow->source = flow->expected = pattern(bytes, flows_.size() + 1);
  flow->target.resize(bytes);
  if (write) {
    flow->local = from.memory->register_region(Bytes(flow->source));
    flow->remote = to.memory->register_region(MutableBytes(flow->target), cci::access_write);
  } else {
    flow->local = from.memory->register_region(MutableBytes(flow->target), 0);
    flow->remote = to.memory->register_region(Bytes(flow->source));
  }
  flows_.push_back(std::move(flow));
  return flows_.size() - 1;
}

void Flows::start(size_t number) {
  Flow& flow = *flows_[number];
  cci::RmaOptions rma;
  rma.write = flow.write;
  rma.local = flow.local;
  rma.remote.handle = flow.remote;
  rma.length_bytes = flow.source.size();
  rma.context = flow_context + number;
  REQUIRE(flow.from->endpoint->rma(flow.connection, rma) == Status::success);
  flow.started = true;
  flow.began = net_.world.now();
  flow.from->wake();
}

void Flows::start_all() {
  for (size_t i = 0; i < flows_.size(); ++i) {
    if (!flows_[i]->started) start(i);
  }
}

void Flows::look() {
  std::set<App*> senders;
  for (const auto& flow : flows_) senders.insert(flow->from);
  for (App* app : senders) {
    std::erase_if(app->events, [&](const cci::Event& event) {
      if (event.type != cci::EventType::send || event.context < flow_context) return false;
      Flow& flow = *flows_[event.context - flow_context];
      flow.ended = true;
      flow.status = event.status;
      // Its initiator uses the memory for something else at once.
      if (flow.write) std::fill(flow.source.begin(), flow.source.end(), std::byte{0x5e});
      flow.took_until = net_.world.now();
      return true;
    });
  }
}

size_t Flows::ended() const {
  return static_cast<size_t>(std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) { return flow->ended; }));
}

bool Flows::run(Duration quiet) {
  constexpr Duration step = std::chrono::milliseconds(10);
  const auto started =
      static_cast<size_t>(std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) { return flow->started; }));
  uint64_t moved = 0;
  size_t count = 0;
  for (Instant last = net_.world.now(); net_.world.now() - last < quiet;) {
    net_.world.run_for(step);
    look();
    if (watch) watch();
    if (ended() == started) return true;
    if (net_.fragments_moved() == moved && ended() == count) continue;
    moved = net_.fragments_moved();
    count = ended();
    last = net_.world.now();
  }
  return false;
}

bool Flows::run_until_ended(size_t flow, Duration at_most) {
  const Instant until = after(net_.world.now(), at_most);
  while (!flows_[flow]->ended && net_.world.now() < until) {
    net_.world.run_for(std::chrono::milliseconds(1));
    look();
  }
  return flows_[flow]->ended;
}

bool Flow::clean() const {
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != expected[i] && target[i] != std::byte{}) return false;
  }
  return true;
}

bool Flows::all_delivered() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const auto& flow) { return flow->delivered(); });
}

}  // namespace ccixfer::routing::test
