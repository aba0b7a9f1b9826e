#include "transports/sim/sim_net_impl.h"

#include <fmt/format.h>

#include <algorithm>

namespace ccixfer::sim {
namespace {

using stream::StreamEventType;
constexpr Duration unreachable_min = std::chrono::milliseconds(200);
constexpr Duration unreachable_max = std::chrono::seconds(3);
constexpr Duration cut_retry = std::chrono::milliseconds(20);

}  // namespace

const LinkOptions& Fabric::Impl::link(const std::string& network) const {
  const auto found = links.find(network);
  return found == links.end() ? defaults : found->second;
}

Duration Fabric::Impl::delay(const std::string& network) {
  const LinkOptions& options = link(network);
  return world.random().between(options.delay_min, options.delay_max);
}

bool Fabric::Impl::is_cut(const Stream& stream) const {
  return !cuts.empty() &&
         (cuts.contains({stream.network, stream.ends[0].address}) || cuts.contains({stream.network, stream.ends[1].address}));
}

void Fabric::Impl::fail_dial(const StreamPtr& stream, Duration in, Status status, const char* reason) {
  world.at(after(world.now(), in), [stream, status, reason] {
    End& end = stream->ends[0];
    if (end.owner == nullptr) return;
    end.broken = true;
    end.owner->push({StreamEventType::failed, end.id, status, reason});
  });
}

void Fabric::Impl::connect(const StreamPtr& stream, uint16_t port) {
  Random& random = world.random();
  End& dialler = stream->ends[0];
  End& acceptor = stream->ends[1];
  const auto address = addresses.find({stream->network, acceptor.address});
  if (address == addresses.end()) return fail_dial(stream, delay(stream->network), Status::not_found, "no such name");
  acceptor.node = address->second;
  if (!world.alive(acceptor.node) || is_cut(*stream)) {
    return fail_dial(stream, random.between(unreachable_min, unreachable_max), Status::unreachable, "no answer");
  }
  const auto listener = listeners.find({stream->network, fmt::format("{}:{}", acceptor.address, port)});
  if (listener == listeners.end()) return fail_dial(stream, delay(stream->network), Status::refused, "nobody listens");
  if (random.chance(link(stream->network).dial_failure_chance)) {
    if (random.chance(0.5)) return fail_dial(stream, delay(stream->network), Status::refused, "refused by chance");
    return fail_dial(stream, random.between(unreachable_min, unreachable_max), Status::timed_out, "timed out by chance");
  }
  SimNet::Impl& net = *listener->second;
  if (net.backlog.size() >= sim_backlog_max) {
    return fail_dial(stream, random.between(unreachable_min, unreachable_max), Status::timed_out, "backlog full");
  }
  if (dialler.owner == nullptr) return;  // given up before it arrived
  acceptor.owner = &net;
  acceptor.id = next_id++;
  acceptor.incarnation = net.incarnation;
  acceptor.identity = net.options.identity;
  acceptor.connected = true;
  net.streams[acceptor.id] = {stream, 1};
  net.backlog.push_back({StreamEventType::accepted, acceptor.id, Status::success, fmt::format("sim://{}:0", dialler.address)});
  world.wake(net.node);
  const Instant back = after(world.now(), delay(stream->network));
  stream->directions[1].last_arrival = back;  // nothing of the acceptor overtakes its acceptance
  world.at(back, [this, stream] {
    End& end = stream->ends[0];
    if (end.owner == nullptr) return send_reset(stream, 1, "the dialler is gone");
    if (end.broken) return;
    end.connected = true;
    end.owner->push({StreamEventType::connected, end.id, Status::success, {}});
  });
  live_and_die(stream);
}

void Fabric::Impl::live_and_die(const StreamPtr& stream) {
  const Duration mean = link(stream->network).reset_mean;
  if (mean == forever) return;
  const std::weak_ptr<Stream> weak = stream;
  world.at(after(world.now(), world.random().exponential(mean)), [this, weak] {
    const StreamPtr alive = weak.lock();
    if (alive != nullptr && link(alive->network).reset_mean != forever) reset_both(alive, "reset by chance");
  });
}

void Fabric::Impl::transmit(const StreamPtr& stream, unsigned from, Packet packet, Instant leaves) {
  Direction& direction = stream->directions[from];
  direction.on_the_way_bytes += packet.bytes.size();
  direction.on_the_way.push_back(std::move(packet));
  direction.last_arrival = std::max(direction.last_arrival, after(leaves, delay(stream->network)));
  world.at(direction.last_arrival, [this, stream, from] { arrive(stream, from); });
}

void Fabric::Impl::arrive(const StreamPtr& stream, unsigned from) {
  Direction& direction = stream->directions[from];
  if (direction.on_the_way.empty()) return;  // dropped by a reset
  if (is_cut(*stream)) {
    world.at(after(world.now(), cut_retry), [this, stream, from] { arrive(stream, from); });
    return;
  }
  // The peer's kernel takes no more: the bytes stay in the sender's.
  if (!stream->ends[1 - from].broken && direction.arrived_bytes > link(stream->network).window_bytes / 2) {
    ++direction.held_up;
    return;
  }
  Packet packet = std::move(direction.on_the_way.front());
  direction.on_the_way.pop_front();
  direction.on_the_way_bytes -= packet.bytes.size();
  End& end = stream->ends[1 - from];
  if (end.broken) return;
  if (end.owner == nullptr && !end.loose) {
    const bool restarted = world.alive(end.node) && world.incarnation(end.node) != end.incarnation;
    if (end.silent && !restarted) return;
    if (!packet.fin) send_reset(stream, from, "the peer has closed");
    return;
  }
  world.trace(packet.fin ? "fin" : "packet", end.id, packet.bytes.size());
  if (packet.fin) {
    direction.fin_arrived = true;
  } else {
    packet.depart();
    bytes_delivered += packet.bytes.size();
    direction.arrived_bytes += packet.bytes.size();
    direction.arrived.push_back(std::move(packet.bytes));
  }
  if (end.loose) return;  // whoever adopts it is told
  end.owner->push({StreamEventType::readable, end.id, Status::success, {}});
}

void Fabric::Impl::go_on(const StreamPtr& stream, unsigned from) {
  Direction& direction = stream->directions[from];
  if (direction.held_up == 0 || direction.arrived_bytes > link(stream->network).window_bytes / 2) return;
  const uint32_t waiting = std::exchange(direction.held_up, 0);
  world.at(after(world.now(), delay(stream->network)), [this, stream, from, waiting] {
    for (uint32_t i = 0; i < waiting; ++i) arrive(stream, from);
  });
}

void Fabric::Impl::send_reset(const StreamPtr& stream, unsigned to, const char* reason) {
  world.at(after(world.now(), delay(stream->network)), [this, stream, to, reason] {
    End& end = stream->ends[to];
    if (end.broken) return;
    end.broken = true;
    Direction& inbound = stream->directions[1 - to];
    inbound.drop_on_the_way();
    stream->directions[to].drop_on_the_way();
    if (world.random().chance(0.5)) {  // what was not read is lost with the stream, or not
      inbound.arrived.clear();
      inbound.arrived_at = inbound.arrived_bytes = 0;
    }
    if (end.owner == nullptr) return;
    ++resets;
    world.trace("reset", end.id);
    end.owner->push({StreamEventType::failed, end.id, Status::disconnected, reason});
  });
}

void Fabric::Impl::reset_both(const StreamPtr& stream, const char* reason) {
  for (const unsigned to : {0u, 1u}) {
    if (!stream->ends[to].broken) send_reset(stream, to, reason);
  }
}

Fabric::Fabric(World& world, const LinkOptions& defaults) : impl_(std::make_unique<Impl>(world, defaults)) {}
Fabric::~Fabric() = default;

World& Fabric::world() { return impl_->world; }
const LinkOptions& Fabric::link(const std::string& network) const { return impl_->link(network); }
void Fabric::set_link(const std::string& network, const LinkOptions& options) { impl_->links[network] = options; }
void Fabric::cut(const std::string& network, const std::string& address) { impl_->cuts.insert({network, address}); }
void Fabric::join(const std::string& network, const std::string& address) { impl_->cuts.erase({network, address}); }
void Fabric::set_card(const std::string& card, uint64_t rate_bytes_per_s) { impl_->cards[card] = {rate_bytes_per_s, {}}; }
uint64_t Fabric::bytes_delivered() const { return impl_->bytes_delivered; }
uint64_t Fabric::resets() const { return impl_->resets; }
uint64_t Fabric::corruptions() const { return impl_->corruptions; }

void Fabric::reset_all(NodeId node) {
  for (SimNet::Impl* net : impl_->nets) {
    if (net->node != node) continue;
    for (const auto& [id, entry] : net->streams) impl_->reset_both(entry.first, "reset by the test");
  }
}

void Fabric::reset_network(const std::string& network) {
  for (SimNet::Impl* net : impl_->nets) {
    for (const auto& [id, entry] : net->streams) {  // each stream once: at its dialler's end
      if (entry.second == 0 && entry.first->network == network) impl_->reset_both(entry.first, "reset by the test");
    }
  }
}

}  // namespace ccixfer::sim
