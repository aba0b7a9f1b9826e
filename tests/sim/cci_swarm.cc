#include "tests/sim/cci_swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/cci/endpoint.h"
#include "tests/sim/heap.h"
#include "tests/sim/seeds.h"
#include "transports/connection/limits.h"
#include "transports/sim/card_transport.h"
#include "transports/stream/limits.h"

namespace ccixfer::testing {
namespace {

constexpr size_t guard_bytes = 256;  // around a region: nobody may touch them
constexpr std::byte guard{0xa5};
constexpr std::byte used_again{0x5e};  // what an application's memory holds once an operation gave it back
constexpr size_t slots_per_pair = 8;
constexpr size_t in_flight_max = 24;  // per connection and side
constexpr Duration virtual_time_max = std::chrono::minutes(20);
constexpr uint64_t events_max = 3'000'000;
constexpr size_t heap_bytes_max = 16u << 20;  // 2.6 MiB is the most of 30 seeds

std::byte pattern(uint64_t seed, size_t at) { return static_cast<std::byte>((seed * 0x9e3779b97f4a7c15u + at * 0x85ebca6b) >> 56); }

enum class Kind : uint8_t { message, write, read, look, bad };
struct Operation {
  Kind kind = Kind::message;
  size_t slot = 0;
  size_t offset = 0, length = 0;
  uint64_t seed = 0;
};

struct HeadOfMessage {
  uint64_t link = 0;
  uint32_t sequence = 0;
  uint32_t length = 0;
};

// What an RMA may write: `known` is what must be there; after a failed write each byte is the old or the new one, and the slot
// retires.
struct Slot {
  std::vector<std::byte> known;
  std::optional<Operation> failed;
  bool busy = false;
};

struct Machine;
struct Link;

struct Side {
  Machine* machine = nullptr;
  Link* link = nullptr;
  Side* peer = nullptr;
  cci::Connection connection;
  bool up = false, over = false;
  uint32_t next_sequence = 0;  // to send
  uint32_t next_expected = 0;  // to receive
  uint32_t acknowledged = 0;   // sends that ended well
  std::map<uint64_t, Operation> in_flight;
};

struct Pair {  // of machines
  Machine *dialler = nullptr, *acceptor = nullptr;
  unsigned left = 0;  // operations to begin
  Link* link = nullptr;
  Instant dial_at{};
  bool dialling = false;
  std::vector<std::byte> memory;  // the acceptor's region for this pair, between guards
  ports::Handle region;
  std::array<Slot, slots_per_pair> slots;
  // Memory that the acceptor exposes for a while, withdraws, uses for something else and exposes anew.
  std::vector<std::byte> window;
  ports::Handle window_handle;
  uint64_t window_seed = 0;
  Instant withdrawn_at = never;
};

struct Link {  // one life of a connection
  uint64_t number = 0;
  Pair* pair = nullptr;
  Side dialler, acceptor;
};

class CciSwarm;

struct Machine final : public sim::Actor {
  Machine(CciSwarm& owner, sim::World& world, sim::Fabric& fabric, unsigned index, const CciSwarmOptions& options);
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return stopped ? never : std::min(endpoint->next_deadline(), work_at); }

  CciSwarm& swarm;
  sim::NodeId node;
  sim::SimEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::vector<std::byte> local;  // where operations of ours begin and end, between guards: a slot for each one in flight
  ports::Handle local_region;
  std::vector<bool> local_busy;
  std::map<uint64_t, Side*> sides;  // by connection
  std::deque<cci::Event> held;      // received and not yet given back
  Instant work_at{};
  bool stopped = false;
};

class CciSwarm {
 public:
  CciSwarm(uint64_t seed, const CciSwarmOptions& options)
      : options_(options), world_(seed, world_of(seed)), fabric_(world_, options.link), random_(world_.random().next()) {
    for (unsigned i = 0; i < options.nodes; ++i) machines_.push_back(std::make_unique<Machine>(*this, world_, fabric_, i, options));
    for (unsigned i = 1; i < options.nodes; ++i) {
      for (unsigned k = 0; k < i; ++k) add_pair(*machines_[i], *machines_[k]);
    }
    for (auto& machine : machines_) world_.add_actor(machine->node, machine.get());
  }
  ~CciSwarm() {
    for (auto& machine : machines_) {
      machine->held.clear();
      machine->endpoint.reset();
      world_.remove_actor(machine->node, machine.get());
    }
  }

  CciSwarmResult run() {
    plan_faults();
    HeapWatch heap;
    const auto done = [&] {
      if (!heap.look(heap_bytes_max)) violated(fmt::format("{} bytes of memory are held", heap.most_bytes()));
      return !result_.violation.empty() || finished();
    };
    const sim::RunEnd end = world_.run_until(done, began_ + virtual_time_max, events_max);
    if (end != sim::RunEnd::reached) violated(fmt::format("no end: {} operations to begin, {} in flight", left(), in_flight()));
    static_cast<void>(world_.run_for(std::chrono::seconds(1)));  // what is under way arrives
    judge();
    result_.heap_bytes = heap.most_bytes();
    result_.trace_hash = world_.trace_hash();
    result_.events = world_.events();
    result_.connections = links_.size();
    return result_;
  }

  void work(Machine& machine, Instant now) {
    while (auto event = machine.endpoint->get_event()) take(machine, *event, now);
    while (!machine.held.empty() && random_.chance(0.5)) {  // in any order
      const auto at = static_cast<size_t>(random_.below(machine.held.size()));
      std::swap(machine.held[at], machine.held.back());
      machine.held.pop_back();
    }
    machine.work_at = after(now, random_.between(std::chrono::microseconds(20), std::chrono::milliseconds(2)));
    for (auto& pair : pairs_) {
      if (pair->dialler == &machine) dial(*pair, now);
      if (pair->acceptor == &machine && (pair->withdrawn_at != never || random_.chance(0.05))) renew_window(*pair, now);
    }
    leave_some(machine, now);
    for (const auto& [id, side] : machine.sides) {
      while (side->up && !side->over && side->link->pair->left > 0 && side->in_flight.size() < in_flight_max &&
             random_.chance(0.8)) {
        if (!begin(*side)) break;
      }
    }
    const bool waits =
        std::ranges::any_of(pairs_, [&](const auto& pair) { return pair->acceptor == &machine && pair->withdrawn_at != never; });
    if (finished() && machine.held.empty() && !waits) machine.work_at = never;
  }

 private:
  void violated(const std::string& what) {
    if (result_.violation.empty()) result_.violation = fmt::format("at {} us: {}", (world_.now() - began_).count() / 1000, what);
  }
  unsigned left() const {
    unsigned sum = 0;
    for (const auto& pair : pairs_) sum += pair->left;
    return sum;
  }
  size_t in_flight() const {
    size_t sum = 0;
    for (const auto& link : links_) sum += link->dialler.in_flight.size() + link->acceptor.in_flight.size();
    return sum;
  }
  bool finished() const { return left() == 0 && in_flight() == 0; }

  // What it held is over as soon as deregistering says so, or a little later; in bounded time.
  void renew_window(Pair& pair, Instant now) {
    cci::MemoryTable& memory = *pair.acceptor->memory;
    if (pair.withdrawn_at == never) {
      const Status status = memory.deregister_region(pair.window_handle);
      if (status != Status::success && status != Status::busy) return violated("a region was not deregistered");
      if ((status == Status::busy) != memory.in_use(pair.window_handle)) return violated("a region is in use, or not");
      pair.withdrawn_at = now;
      result_.waits += status == Status::busy ? 1 : 0;
    }
    if (!memory.in_use(pair.window_handle)) return open_window(pair);
    const Duration slack = std::chrono::seconds(1) + options_.stop_max;  // its machine may have stood still itself
    if (now - pair.withdrawn_at > stream::lent_wait_max + slack) violated("memory that was lent does not come back");
  }
  void open_window(Pair& pair) {
    pair.withdrawn_at = never;
    pair.window_seed = random_.next();
    for (size_t i = 0; i < pair.window.size(); ++i) pair.window[i] = pattern(pair.window_seed, i);
    pair.window_handle = pair.acceptor->memory->register_region(Bytes(pair.window));
  }

  void add_pair(Machine& dialler, Machine& acceptor) {
    auto pair = std::make_unique<Pair>();
    pair->dialler = &dialler;
    pair->acceptor = &acceptor;
    pair->left = options_.operations;
    pair->memory.assign(options_.slot_bytes * slots_per_pair + 2 * guard_bytes, guard);
    const MutableBytes inner = MutableBytes(pair->memory).subspan(guard_bytes, options_.slot_bytes * slots_per_pair);
    std::fill(inner.begin(), inner.end(), std::byte{0});
    pair->region = acceptor.memory->register_region(inner, cci::access_read | cci::access_write);
    for (Slot& slot : pair->slots) slot.known.assign(options_.slot_bytes, std::byte{0});
    pair->window.resize(options_.slot_bytes);
    open_window(*pair);
    pairs_.push_back(std::move(pair));
  }

  void plan_faults() {
    const auto sometime = [this] { return began_ + random_.between(Duration(0), options_.faults_within); };
    for (unsigned i = 0; i < options_.resets; ++i) {
      const sim::NodeId node = machines_[static_cast<size_t>(random_.below(machines_.size()))]->node;
      world_.at(sometime(), [this, node] { fabric_.reset_all(node); });
    }
    for (unsigned i = 0; i < options_.cuts; ++i) {
      const std::string address = fmt::format("m{}", random_.below(machines_.size()));
      const Instant begin = sometime();
      world_.at(begin, [this, address] { fabric_.cut("net", address); });
      world_.at(after(begin, random_.between(Duration(0), options_.cut_max)), [this, address] { fabric_.join("net", address); });
    }
    for (unsigned i = 0; i < options_.stops; ++i) {
      Machine* machine = machines_[static_cast<size_t>(random_.below(machines_.size()))].get();
      const Instant begin = sometime();
      world_.at(begin, [machine] { machine->stopped = true; });
      // Half of them for a little longer than a connection that was left is waited for.
      const Duration least = random_.chance(0.5) ? Duration(0) : connection::disconnect_flush_max;
      world_.at(after(begin, random_.between(least, options_.stop_max)), [this, machine] {
        machine->stopped = false;
        world_.wake(machine->node);
      });
    }
    world_.at(began_ + std::chrono::seconds(10), [this] {
      sim::LinkOptions calm = options_.link;
      calm.reset_mean = forever;
      calm.dial_failure_chance = 0;
      fabric_.set_link("net", calm);
    });
  }

  void dial(Pair& pair, Instant now) {
    if (pair.link != nullptr || pair.left == 0 || now < pair.dial_at) return;
    links_.push_back(std::make_unique<Link>());
    Link& link = *links_.back();
    link.number = links_.size();
    link.pair = &pair;
    link.dialler.machine = pair.dialler;
    link.acceptor.machine = pair.acceptor;
    link.dialler.link = link.acceptor.link = &link;
    link.dialler.peer = &link.acceptor;
    link.acceptor.peer = &link.dialler;
    cci::ConnectOptions options;
    options.data = Bytes(reinterpret_cast<const std::byte*>(&link.number), sizeof link.number);
    options.context = link.number;
    options.timeout = std::chrono::seconds(3);
    const auto connection = pair.dialler->endpoint->connect(pair.acceptor->endpoint->uri(), options);
    if (!connection) return violated("connect: " + connection.error().message);
    link.dialler.connection = *connection;
    pair.link = &link;
  }

  // The application goes, whatever is in flight.
  void leave_some(Machine& machine, Instant now) {
    for (const auto& [id, side] : machine.sides) {
      if (!side->up || side->over || left() == 0 || !random_.chance(options_.leave_chance)) continue;
      machine.endpoint->disconnect(side->connection);
      lost(*side, now);
    }
  }

  void lost(Side& side, Instant now) {
    if (side.over) return violated("a connection ended twice");
    side.over = true;
    side.up = false;
    if (&side == &side.link->dialler) {
      side.link->pair->link = nullptr;
      side.link->pair->dial_at = after(now, random_.between(Duration(0), Duration(std::chrono::milliseconds(20))));
    }
  }

  void take(Machine& machine, cci::Event& event, Instant now) {
    using cci::EventType;
    switch (event.type) {
      case EventType::connect: {
        Link& link = *links_.at(event.context - 1);
        if (event.status != Status::success) return lost(link.dialler, now);
        link.dialler.up = true;
        machine.sides[event.connection.packed()] = &link.dialler;
        return;
      }
      case EventType::connect_request: {
        uint64_t number = 0;
        if (event.data().size() != sizeof number) return violated("a connect request without its data");
        std::memcpy(&number, event.data().data(), sizeof number);
        if (number == 0 || number > links_.size()) return violated("a connect request with other data");
        if (random_.chance(0.05)) {
          static_cast<void>(machine.endpoint->reject(event, "by chance"));
        } else {
          static_cast<void>(machine.endpoint->accept(event, number));
        }
        return;
      }
      case EventType::accept: {
        if (event.status != Status::success) return;
        Side& side = links_.at(event.context - 1)->acceptor;
        if (side.up || side.over) return violated("accepted twice");
        side.connection = event.connection;
        side.up = true;
        machine.sides[event.connection.packed()] = &side;
        return;
      }
      case EventType::send:
        return ended(machine, event);
      case EventType::receive:
        received(machine, event);
        if (random_.chance(0.3)) machine.held.push_back(std::move(event));
        return;
      case EventType::disconnected: {
        const auto found = machine.sides.find(event.connection.packed());
        if (found == machine.sides.end()) return violated("a connection that nobody knows ended");
        lost(*found->second, now);
        return;
      }
      default:
        return violated("an event that nobody asked for");
    }
  }

  // One operation of a side; false: not now.
  bool begin(Side& side) {
    Machine& machine = *side.machine;
    Pair& pair = *side.link->pair;
    Operation operation;
    operation.seed = random_.next();
    const uint64_t context = ++next_context_;
    Status status = Status::success;
    if (&side == &side.link->acceptor || random_.chance(0.6)) {
      const uint32_t most = machine.endpoint->max_send_bytes(side.connection);
      const auto length = static_cast<uint32_t>(random_.between(sizeof(HeadOfMessage), random_.chance(0.8) ? 200 : most));
      std::vector<std::byte> message(length);
      const HeadOfMessage head{side.link->number, side.next_sequence, length};
      std::memcpy(message.data(), &head, sizeof head);
      for (size_t i = sizeof head; i < length; ++i) message[i] = pattern(head.link * 131 + head.sequence, i);
      operation.kind = Kind::message;
      status = machine.endpoint->send(side.connection, Bytes(message), context);
      if (status == Status::success) ++side.next_sequence;
    } else {
      const auto local =
          static_cast<size_t>(std::find(machine.local_busy.begin(), machine.local_busy.end(), false) - machine.local_busy.begin());
      if (local == machine.local_busy.size()) return false;
      operation.slot = static_cast<size_t>(random_.below(slots_per_pair));
      Slot& slot = pair.slots[operation.slot];
      operation.length = static_cast<size_t>(random_.between(1, options_.slot_bytes));
      operation.offset = static_cast<size_t>(random_.below(options_.slot_bytes - operation.length + 1));
      cci::RmaOptions rma;
      rma.local = machine.local_region;
      rma.local_offset_bytes = local * options_.slot_bytes;
      rma.length_bytes = operation.length;
      rma.remote.handle = pair.region;
      rma.remote.offset_bytes = operation.slot * options_.slot_bytes + operation.offset;
      rma.context = context;
      rma.write = random_.chance(0.5);
      if (random_.chance(0.15)) {
        operation.kind = Kind::look;
        operation.seed = pair.window_seed;
        rma.write = false;
        rma.remote.handle = pair.window_handle;
        rma.remote.offset_bytes = operation.offset;
      } else if (random_.chance(0.05)) {  // a forged handle, or beyond the region: nothing may be touched
        operation.kind = Kind::bad;
        if (random_.chance(0.5)) {
          rma.remote.handle.key ^= uint64_t{1} << random_.below(64);
        } else {
          rma.remote.offset_bytes = options_.slot_bytes * slots_per_pair - operation.length + 1;
        }
      } else {
        if (slot.busy || slot.failed) return false;
        operation.kind = rma.write ? Kind::write : Kind::read;
        slot.busy = true;
      }
      const MutableBytes bytes = local_slot(machine, local).first(operation.length);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = rma.write ? pattern(operation.seed, i) : std::byte{0x11};
      status = machine.endpoint->rma(side.connection, rma);
      if (status == Status::success) {
        machine.local_busy[local] = true;
        locals_[context] = local;
      } else if (operation.kind == Kind::write || operation.kind == Kind::read) {
        slot.busy = false;
      }
    }
    if (status != Status::success) {
      // A handle that cannot be one may be refused at once; the others: full, or the connection has just gone.
      const bool fine = status == Status::no_buffers || status == Status::not_found || status == Status::again ||
                        status == Status::disconnected || (operation.kind == Kind::bad && status == Status::rma_handle);
      if (!fine) violated(fmt::format("an operation was not taken: {}", to_string(status)));
      return false;
    }
    side.in_flight[context] = operation;
    owners_[context] = &side;
    --pair.left;
    return true;
  }

  MutableBytes local_slot(Machine& machine, size_t index) {
    return MutableBytes(machine.local).subspan(guard_bytes + index * options_.slot_bytes, options_.slot_bytes);
  }

  void ended(Machine& machine, const cci::Event& event) {
    const auto owner = owners_.find(event.context);
    if (owner == owners_.end()) return violated("an operation ended that was not begun, or twice");
    Side& side = *owner->second;
    if (side.machine != &machine) return violated("an operation ended elsewhere");
    const Operation operation = side.in_flight.at(event.context);
    side.in_flight.erase(event.context);
    owners_.erase(owner);
    Pair& pair = *side.link->pair;
    const bool well = event.status == Status::success;
    if (operation.kind == Kind::message) {
      ++(well ? result_.messages : result_.failed);
      if (well) ++side.acknowledged;
      return;
    }
    const size_t local = locals_.at(event.context);
    locals_.erase(event.context);
    machine.local_busy[local] = false;
    const MutableBytes bytes = local_slot(machine, local).first(operation.length);
    if (operation.kind == Kind::bad) {
      ++result_.refused;
      if (well) violated("an operation with a forged handle, or beyond the region, ended well");
      if (!well && event.status != Status::rma_handle && event.status != Status::disconnected)
        violated(fmt::format("a bad operation ended with {}", to_string(event.status)));
      return;
    }
    if (operation.kind == Kind::look) {
      ++(well ? result_.looks : result_.failed);
      for (size_t i = 0; well && i < bytes.size(); ++i) {
        if (bytes[i] != pattern(operation.seed, operation.offset + i)) {
          return violated("a read of memory that was withdrawn meanwhile ended well and brought other bytes");
        }
      }
      return;
    }
    Slot& slot = pair.slots[operation.slot];
    slot.busy = false;
    if (operation.kind == Kind::write) std::fill(bytes.begin(), bytes.end(), used_again);
    if (operation.kind == Kind::read) {
      ++(well ? result_.reads : result_.failed);
      if (well && !std::equal(bytes.begin(), bytes.end(), slot.known.begin() + static_cast<std::ptrdiff_t>(operation.offset))) {
        violated("a read brought other bytes than are there");
      }
      return;
    }
    ++(well ? result_.writes : result_.failed);
    if (!well) {
      slot.failed = operation;
      return;
    }
    for (size_t i = 0; i < operation.length; ++i) slot.known[operation.offset + i] = pattern(operation.seed, i);
    const Bytes there = Bytes(pair.memory).subspan(guard_bytes + operation.slot * options_.slot_bytes, options_.slot_bytes);
    if (!std::equal(there.begin(), there.end(), slot.known.begin())) violated("a write ended well and its bytes are not there");
  }

  void received(Machine& machine, const cci::Event& event) {
    const auto found = machine.sides.find(event.connection.packed());
    if (found == machine.sides.end()) return violated("a message of a connection that nobody knows");
    Side& side = *found->second;
    const Bytes data = event.data();
    HeadOfMessage head;
    if (data.size() < sizeof head) return violated("a short message");
    std::memcpy(&head, data.data(), sizeof head);
    if (head.link != side.link->number || head.length != data.size()) return violated("a message of another connection or length");
    if (head.sequence != side.next_expected) {
      return violated(
          fmt::format("message {} came when {} was due: lost, doubled or reordered", head.sequence, side.next_expected));
    }
    ++side.next_expected;
    for (size_t i = sizeof head; i < data.size(); ++i) {
      if (data[i] != pattern(head.link * 131 + head.sequence, i)) return violated("a message has other bytes");
    }
  }

  void judge() {
    for (const auto& link : links_) {
      for (const Side* side : {&link->dialler, &link->acceptor}) {
        if (side->peer->next_expected < side->acknowledged) violated("a message was acknowledged and never came");
        if (side->peer->next_expected > side->next_sequence) violated("a message came that was not sent");
      }
    }
    for (const auto& pair : pairs_) {
      const Bytes memory(pair->memory);
      check_guards(memory);
      for (size_t index = 0; index < slots_per_pair; ++index) {
        const Slot& slot = pair->slots[index];
        const Bytes there = memory.subspan(guard_bytes + index * options_.slot_bytes, options_.slot_bytes);
        for (size_t i = 0; i < there.size(); ++i) {
          const bool fresh = slot.failed && i >= slot.failed->offset && i < slot.failed->offset + slot.failed->length &&
                             there[i] == pattern(slot.failed->seed, i - slot.failed->offset);
          if (there[i] != slot.known[i] && !fresh) return violated("a byte of a region is of no operation");
        }
      }
    }
    for (const auto& machine : machines_) check_guards(machine->local);
    if (!world_.violations().empty()) violated(world_.violations().front());
  }
  void check_guards(Bytes memory) {
    const auto whole = [](Bytes part) { return std::all_of(part.begin(), part.end(), [](std::byte b) { return b == guard; }); };
    if (!whole(memory.first(guard_bytes)) || !whole(memory.last(guard_bytes))) violated("something was written outside a region");
  }

  const CciSwarmOptions options_;
  sim::World world_;
  const Instant began_ = world_.now();
  sim::Fabric fabric_;
  sim::Random random_;
  CciSwarmResult result_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<std::unique_ptr<Link>> links_;
  std::map<uint64_t, Side*> owners_;   // of operations in flight
  std::map<uint64_t, size_t> locals_;  // RMA in flight: where it begins or ends
  uint64_t next_context_ = 0;
};

Machine::Machine(CciSwarm& owner, sim::World& world, sim::Fabric& fabric, unsigned index, const CciSwarmOptions& options)
    : swarm(owner),
      node(world.add_node(fmt::format("m{}", index))),
      entropy(world.random().next()),
      memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {
  sim::SimNetOptions net;
  net.networks = {{"net", fmt::format("m{}", index)}};
  net.port = 1;
  cci::EndpointOptions endpoint_options;
  endpoint_options.receive_buffers = options.receive_buffers;
  endpoint =
      std::make_unique<cci::Endpoint>(endpoint_options, sim::make_transport(fabric, node, net, {}, counters), memory, counters);
  local_busy.assign(in_flight_max, false);
  local.assign(options.slot_bytes * local_busy.size() + 2 * guard_bytes, guard);
  local_region = memory->register_region(MutableBytes(local).subspan(guard_bytes, options.slot_bytes * local_busy.size()), 0);
}

void Machine::turn(Instant now) {
  if (stopped) return;
  endpoint->turn(now);
  swarm.work(*this, now);
}

}  // namespace

CciSwarmResult run_cci_swarm(uint64_t seed, const CciSwarmOptions& options) { return CciSwarm(seed, options).run(); }

}  // namespace ccixfer::testing
