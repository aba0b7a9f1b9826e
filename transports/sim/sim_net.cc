#include "transports/sim/sim_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/base/check.h"
#include "transports/sim/sim_net_impl.h"
#include "transports/stream/buffer_splice_pipe.h"

namespace ccixfer::sim {
namespace {

using stream::ConstIoSpan;
using stream::IoSpan;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

constexpr uint16_t first_free_port = 40000;
constexpr Duration again_pause_max = std::chrono::microseconds(200);

struct Target {
  std::string address;
  uint16_t port = 0;
};

std::optional<Target> parse(std::string_view uri) {
  constexpr std::string_view scheme = "sim://";
  if (!uri.starts_with(scheme)) return std::nullopt;
  uri.remove_prefix(scheme.size());
  const size_t colon = uri.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = uri.substr(colon + 1);
  Target target{std::string(uri.substr(0, colon)), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), target.port);
  if (error != std::errc{} || end != digits.data() + digits.size() || target.port == 0) return std::nullopt;
  return target;
}

// How much of `available` one call takes: all, or now and then a random part, small ones more often than not.
size_t part_of(Random& random, size_t available, double split_chance) {
  if (available <= 1 || !random.chance(split_chance)) return available;
  return static_cast<size_t>(random.between(1, random.chance(0.5) ? std::min<size_t>(available, 64) : available));
}

// One takes at most 50 ms: a slow network delivers bit by bit, not 64 KiB a second.
size_t packet_bytes_max(const LinkOptions& link) {
  return static_cast<size_t>(std::clamp<uint64_t>(link.rate_bytes_per_s / 20, 1500, sim_packet_bytes));
}

}  // namespace

SimNet::Impl::Impl(Fabric::Impl& owner, NodeId node_id, const SimNetOptions& net_options)
    : fabric(owner), world(owner.world), node(node_id), incarnation(world.incarnation(node_id)), options(net_options) {
  CHECK(!options.networks.empty());
  for (const Attachment& at : options.networks) {
    const auto [entry, inserted] = fabric.addresses.try_emplace({at.network, at.address}, node);
    CHECK(inserted || entry->second == node);  // one address, one node
  }
  if (options.listen) {
    const auto taken = [&](uint16_t port) {
      return std::any_of(options.networks.begin(), options.networks.end(), [&](const Attachment& at) {
        return fabric.listeners.contains({at.network, fmt::format("{}:{}", at.address, port)});
      });
    };
    if (options.port == 0) {
      options.port = first_free_port;
      while (taken(options.port)) ++options.port;
    }
    CHECK(!taken(options.port));
    for (const Attachment& at : options.networks) {
      fabric.listeners[{at.network, fmt::format("{}:{}", at.address, options.port)}] = this;
    }
  }
  fabric.nets.push_back(this);
  world.add_part(node, this);
  world.add_actor(node, this);
}

SimNet::Impl::~Impl() {
  if (!dead) {
    while (!streams.empty()) close(streams.begin()->first);
    world.remove_actor(node, this);
    on_crash();
  }
  world.remove_part(node, this);
}

void SimNet::Impl::on_crash() {
  dead = true;
  std::erase(fabric.nets, this);
  std::erase_if(fabric.listeners, [this](const auto& entry) { return entry.second == this; });
  for (const auto& [id, entry] : streams) {
    const auto& [stream, index] = entry;
    End& end = stream->ends[index];
    end.owner = nullptr;
    stream->directions[index].depart();  // the memory goes with the node
    end.silent = world.random().chance(fabric.link(stream->network).half_open_chance);
    if (!end.silent) fabric.send_reset(stream, 1 - index, "the peer's node crashed");
  }
  streams.clear();
  events.clear();
  backlog.clear();
}

void SimNet::Impl::turn(Instant now) {
  if (deadline <= now) deadline = never;
}

void SimNet::Impl::push(StreamEvent event) {
  const auto found = streams.find(event.id);
  if (found == streams.end()) return;
  const auto& [stream, index] = found->second;
  if (!stream->ends[index].announced) return;
  events.push_back(std::move(event));
  world.wake(node);
}

void SimNet::Impl::push_later(StreamId id, StreamEventType type) {
  const Instant when = after(world.now(), world.random().between(Duration(1), again_pause_max));
  world.at_node(node, when, [weak = std::weak_ptr<Impl*>(self), id, type] {
    if (const auto net = weak.lock()) (*net)->push({type, id, Status::success, {}});
  });
}

// It leaves the processor first, and then the way out.
Instant SimNet::Impl::leaves(size_t bytes, const LinkOptions& link) {
  const auto card = fabric.cards.find(options.card);
  const bool is_shared = !options.card.empty() && card != fabric.cards.end();
  const uint64_t rate = std::max<uint64_t>(is_shared ? card->second.rate_bytes_per_s : link.rate_bytes_per_s, 1);
  Instant& free_at = is_shared ? card->second.free_at : way_out_free_at;
  free_at = std::max(free_at, world.free_at(node)) + Duration(static_cast<int64_t>(bytes * 1'000'000'000 / rate));
  return free_at;
}

void SimNet::Impl::forget(StreamId id) {
  streams.erase(id);
  std::erase_if(events, [id](const StreamEvent& event) { return event.id == id; });
  std::erase_if(backlog, [id](const StreamEvent& event) { return event.id == id; });
}

void SimNet::Impl::close(StreamId id) {
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  const auto [stream, index] = found->second;
  forget(id);
  End& end = stream->ends[index];
  end.owner = nullptr;
  Direction& outbound = stream->directions[index];
  const bool refers = outbound.has_lent && outbound.on_the_way_bytes > 0;
  outbound.drop_lent();  // the memory is its owner's again, who may have freed it
  if (end.broken || !end.connected) return;
  if (stream->directions[1 - index].arrived_bytes > 0) {
    fabric.send_reset(stream, 1 - index, "closed with unread bytes");
  } else if (refers) {
    fabric.send_reset(stream, 1 - index, "closed with lent memory unsent");
  } else {
    fabric.transmit(stream, index, Packet{{}, true}, world.now());
  }
}

SimNet::SimNet(Fabric& fabric, NodeId node, const SimNetOptions& options)
    : impl_(std::make_unique<Impl>(*fabric.impl_, node, options)) {}
SimNet::~SimNet() = default;

std::string SimNet::uri() const {
  const SimNetOptions& options = impl_->options;
  return options.listen ? fmt::format("sim://{}:{}", options.networks.front().address, options.port) : std::string();
}

Result<StreamId> SimNet::dial(std::string_view uri) {
  const std::optional<Target> target = parse(uri);
  if (!target) return fail(ErrorKind::usage, fmt::format("not a sim://NODE:PORT address: {}", uri));
  Impl& net = *impl_;
  const auto stream = std::make_shared<Stream>();
  stream->ends[0].announced = true;
  const Attachment* via = &net.options.networks.front();
  for (const Attachment& at : net.options.networks) {
    if (net.fabric.addresses.contains({at.network, target->address})) {
      via = &at;
      break;
    }
  }
  stream->network = via->network;
  stream->ends[0].owner = &net;
  stream->ends[0].id = net.fabric.next_id++;
  stream->ends[0].node = net.node;
  stream->ends[0].incarnation = net.incarnation;
  stream->ends[0].address = via->address;
  stream->ends[0].identity = net.options.identity;
  stream->ends[1].address = target->address;
  if (net.dead) return stream->ends[0].id;  // nobody will turn us again
  net.streams[stream->ends[0].id] = {stream, 0};
  net.world.at(after(net.world.now(), net.fabric.delay(stream->network)),
               [fabric = &net.fabric, stream, port = target->port] { fabric->connect(stream, port); });
  return stream->ends[0].id;
}

void SimNet::close(StreamId id) { impl_->close(id); }

void SimNet::pause_accept(bool paused) {
  if (impl_->dead) return;
  impl_->paused = paused;
  if (!paused && !impl_->backlog.empty()) impl_->world.wake(impl_->node);
}

int64_t SimNet::recv(StreamId id, std::span<const IoSpan> into) {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return stream::io_error;
  const auto& [stream, index] = found->second;
  const End& end = stream->ends[index];
  Direction& inbound = stream->directions[1 - index];
  if (inbound.arrived_bytes == 0) {
    if (end.broken) return stream::io_error;
    return inbound.fin_arrived ? stream::io_closed : stream::io_again;
  }
  Random& random = impl_->world.random();
  const LinkOptions& link = impl_->fabric.link(stream->network);
  if (!end.broken && random.chance(link.again_chance)) {
    impl_->push_later(id, StreamEventType::readable);
    return stream::io_again;
  }
  size_t room = 0;
  for (const IoSpan& span : into) room += span.size;
  const size_t total = part_of(random, std::min(room, inbound.arrived_bytes), link.split_chance);
  size_t done = 0;
  for (const IoSpan& span : into) {
    for (size_t filled = 0; filled < span.size && done < total;) {
      const std::vector<std::byte>& front = inbound.arrived.front();
      const size_t count = std::min({span.size - filled, front.size() - inbound.arrived_at, total - done});
      std::memcpy(span.data + filled, front.data() + inbound.arrived_at, count);
      filled += count;
      done += count;
      inbound.arrived_at += count;
      if (inbound.arrived_at == front.size()) {
        inbound.arrived.pop_front();
        inbound.arrived_at = 0;
      }
    }
  }
  impl_->world.call(impl_->node, done);
  inbound.arrived_bytes -= done;
  inbound.window_used -= done;
  impl_->fabric.go_on(stream, 1 - index);
  if (inbound.sender_waits) {
    inbound.sender_waits = false;
    const unsigned sender = 1 - index;
    impl_->world.at(after(impl_->world.now(), impl_->fabric.delay(stream->network)), [stream = stream, sender] {
      const End& other = stream->ends[sender];
      if (other.owner != nullptr) other.owner->push({StreamEventType::writable, other.id, Status::success, {}});
    });
  }
  return static_cast<int64_t>(done);
}

int64_t SimNet::recv_to(StreamId id, ports::SplicePipe& splice_pipe, size_t size) {
  return stream::receive_to(*this, id, static_cast<stream::BufferSplicePipe&>(splice_pipe), size);
}

std::string SimNet::proved_peer(StreamId id) const {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return {};
  const auto& [stream, index] = found->second;
  return stream->ends[1 - index].identity;
}

uint64_t SimNet::waiting_bytes(StreamId id) const {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return 0;
  return found->second.first->directions[found->second.second].window_used;
}

std::unique_ptr<ports::SplicePipe> SimNet::make_splice_pipe() {
  const uint32_t room = impl_->fabric.link(impl_->options.networks.front().network).splice_pipe_bytes;
  return room == 0 ? nullptr : std::make_unique<stream::BufferSplicePipe>(room);
}

bool SimNet::takes(const ports::SplicePipe& splice_pipe) const {
  return dynamic_cast<const stream::BufferSplicePipe*>(&splice_pipe) != nullptr;
}

int64_t SimNet::send(StreamId id, std::span<const ConstIoSpan> from) {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return stream::io_error;
  const auto& [stream, index] = found->second;
  const End& end = stream->ends[index];
  if (end.broken) return stream::io_closed;
  if (!end.connected) return stream::io_again;  // `connected` follows
  Direction& outbound = stream->directions[index];
  Random& random = impl_->world.random();
  const LinkOptions& link = impl_->fabric.link(stream->network);
  size_t wanted = 0;
  for (const ConstIoSpan& span : from) wanted += span.size;
  if (wanted == 0) return 0;
  const size_t room = link.window_bytes > outbound.window_used ? link.window_bytes - outbound.window_used : 0;
  if (room == 0) {
    outbound.sender_waits = true;
    return stream::io_again;
  }
  if (random.chance(link.again_chance)) {
    impl_->push_later(id, StreamEventType::writable);
    return stream::io_again;
  }
  const size_t total = part_of(random, std::min({wanted, room, packet_bytes_max(link)}), link.split_chance);
  Packet packet;
  packet.bytes.reserve(total);
  for (const ConstIoSpan& span : from) {
    const size_t count = std::min(span.size, total - packet.bytes.size());
    auto* splice_pipe = static_cast<stream::BufferSplicePipe*>(span.splice_pipe);
    const std::byte* data = splice_pipe == nullptr ? span.data : splice_pipe->front();
    if (end.lends && span.lent && splice_pipe == nullptr && count > 0) {
      packet.lent.push_back({packet.bytes.size(), {data, count}});
      packet.bytes.resize(packet.bytes.size() + count);
      outbound.has_lent = true;
    } else {
      packet.bytes.insert(packet.bytes.end(), data, data + count);
    }
    if (splice_pipe != nullptr) splice_pipe->take(count);
    if (link.corrupt_chance > 0 && count > 0 && span.size >= bulk_bytes_min && random.chance(link.corrupt_chance)) {
      const auto at = static_cast<size_t>(random.below(count));
      packet.flips.push_back({packet.bytes.size() - count + at, static_cast<std::byte>(1u << random.below(8))});
      ++impl_->fabric.corruptions;
      impl_->world.trace("corrupt", id, at);
    }
  }
  outbound.window_used += total;
  impl_->world.call(impl_->node, total);
  impl_->fabric.transmit(stream, index, std::move(packet), impl_->leaves(total, link));
  return static_cast<int64_t>(total);
}

// One machine a node; booted an hour apart.
wire::HostIdentity SimNet::machine() const {
  const uint64_t number = uint64_t{impl_->node} + 1;
  return {number, number * 3'600'000};
}

void SimNet::peer_is_elsewhere(StreamId id) {
  const auto found = impl_->streams.find(id);
  if (found != impl_->streams.end()) found->second.first->ends[found->second.second].lends = true;
}

bool SimNet::lends(StreamId id) const {
  const auto found = impl_->streams.find(id);
  return found != impl_->streams.end() && found->second.first->ends[found->second.second].lends;
}

namespace {

class LooseSimStream final : public stream::LooseStream {
 public:
  LooseSimStream(StreamPtr stream, unsigned index, Fabric::Impl& fabric)
      : stream_(std::move(stream)), index_(index), fabric_(fabric) {}
  ~LooseSimStream() override {
    if (stream_ == nullptr) return;
    stream_->ends[index_].loose = false;
    fabric_.send_reset(stream_, 1 - index_, "nobody adopted it");
  }
  LooseSimStream(const LooseSimStream&) = delete;
  LooseSimStream& operator=(const LooseSimStream&) = delete;
  [[nodiscard]] std::pair<StreamPtr, unsigned> take() { return {std::exchange(stream_, nullptr), index_}; }

 private:
  StreamPtr stream_;
  const unsigned index_;
  Fabric::Impl& fabric_;
};

}  // namespace

std::unique_ptr<stream::LooseStream> SimNet::release(StreamId id) {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return nullptr;
  const auto [stream, index] = found->second;
  impl_->forget(id);
  End& end = stream->ends[index];
  end.owner = nullptr;
  end.loose = true;
  return std::make_unique<LooseSimStream>(stream, index, impl_->fabric);
}

StreamId SimNet::adopt(std::unique_ptr<stream::LooseStream> stream) {
  auto* loose = dynamic_cast<LooseSimStream*>(stream.get());
  if (loose == nullptr || impl_->dead) return 0;
  const auto [taken, index] = loose->take();
  End& end = taken->ends[index];
  end.owner = impl_.get();
  end.loose = false;
  end.id = impl_->fabric.next_id++;
  end.node = impl_->node;
  end.incarnation = impl_->incarnation;
  impl_->streams[end.id] = {taken, index};
  const Direction& inbound = taken->directions[1 - index];
  if (inbound.arrived_bytes > 0 || inbound.fin_arrived) impl_->push({StreamEventType::readable, end.id, Status::success, {}});
  if (end.broken) impl_->push({StreamEventType::failed, end.id, Status::disconnected, "reset on its way to another thread"});
  return end.id;
}

uint64_t SimNet::unacknowledged_bytes(StreamId id) const {
  const auto found = impl_->streams.find(id);
  if (found == impl_->streams.end()) return 0;
  const Direction& outbound = found->second.first->directions[found->second.second];
  return outbound.has_lent ? outbound.on_the_way_bytes : 0;
}

void SimNet::poll(Instant /*now*/, const std::function<void(const StreamEvent&)>& event) {
  while (!impl_->paused && !impl_->backlog.empty()) {
    const StreamEvent accepted = std::move(impl_->backlog.front());
    impl_->backlog.pop_front();
    const auto& [stream, index] = impl_->streams.at(accepted.id);
    stream->ends[index].announced = true;
    const Direction& inbound = stream->directions[1 - index];
    // What came before the acceptance is told after it.
    if (inbound.arrived_bytes > 0 || inbound.fin_arrived)
      impl_->push({StreamEventType::readable, accepted.id, Status::success, {}});
    if (stream->ends[index].broken)
      impl_->push({StreamEventType::failed, accepted.id, Status::disconnected, "reset before it was accepted"});
    event(accepted);
  }
  while (!impl_->events.empty()) {
    const StreamEvent next = std::move(impl_->events.front());
    impl_->events.pop_front();
    event(next);
  }
}

void SimNet::set_deadline(Instant at) { impl_->deadline = at; }

}  // namespace ccixfer::sim
