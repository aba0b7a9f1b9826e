// CCI over datagrams that are lost, doubled, damaged, overtaken and cut off, between machines whose address changes, from a seed:
// messages of each attribute and RMA both ways between endpoints with few receive buffers. Checked throughout: nothing lost,
// doubled, or out of order where order was promised; nothing damaged; no byte outside what an operation names; a completion message
// only after its data; memory within bounds; every operation ends in time, well unless its connection was lost.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/cci/endpoint.h"
#include "tests/sim/heap.h"
#include "tests/sim/seeds.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/datagram/limits.h"
#include "transports/sim/sim_datagram.h"

using namespace ccixfer;
using namespace std::chrono_literals;

namespace {

constexpr size_t area_bytes = 200'000;  // of one RMA operation at most, in either memory
constexpr size_t guard_bytes = 64;
constexpr uint32_t messages_per_side = 120;
constexpr uint32_t rmas_per_side = 6;
constexpr size_t heap_bytes_max = 16u << 20;  // 1.4 MiB is the most of 30 seeds

std::byte pattern(uint64_t seed, size_t i) {
  return static_cast<std::byte>((seed * 0x9e3779b97f4a7c15 + i * 0x2545f4914f6cdd1d) >> 56);
}

enum class Direction : uint8_t { write, read };

struct Rma {
  Direction direction = Direction::write;
  size_t length = 0;
  size_t remote_at = 0;  // in its slot of the peer's region
  bool announces = false;
  bool ended = false;
};

// One end of a connection: sends numbered messages and RMA, checks what comes.
struct Side {
  cci::Connection connection;
  bool open = false;
  bool lost = false;
  uint64_t stream = 0;  // names what this side sends
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  Side* peer = nullptr;
  uint32_t sent = 0, ended = 0, succeeded = 0;
  std::set<uint32_t> delivered;  // of what the peer sent
  std::set<uint32_t> ended_well;
  uint32_t next = 0;
  std::vector<std::byte> source, landing, region;
  ports::Handle local, landed, exposed;
  std::vector<Rma> rmas;
  std::set<uint32_t> announced;  // of the peer's
};

struct Machine final : sim::Actor {
  sim::NodeId node = 0;
  std::string name;
  std::unique_ptr<Counters> counters = std::make_unique<Counters>();
  std::unique_ptr<sim::SimEntropy> entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  datagram::DatagramTransport* transport = nullptr;
  sim::SimDatagramNet* net = nullptr;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::function<void()> application;
  void turn(Instant now) override {
    endpoint->turn(now);
    application();
  }
  [[nodiscard]] Instant next_deadline() const override { return endpoint->next_deadline(); }
};

class LossySwarm {
 public:
  explicit LossySwarm(uint64_t seed)
      : world_(seed, testing::world_of(seed)),
        random_(seed * 0x9e37 + 17),
        moves_random_(seed * 0x85eb + 5),
        fabric_(world_, draw_link(random_)) {}
  ~LossySwarm() {
    for (auto& machine : machines_) world_.remove_actor(machine->node, machine.get());
    for (auto& machine : machines_) machine->endpoint.reset();
  }

  void run() {
    const size_t machines = 2 + random_.below(3);
    for (size_t i = 0; i < machines; ++i) add_machine();
    const size_t connections = 1 + random_.below(4);
    for (size_t i = 0; i < connections; ++i) add_connection();
    schedule_cuts();
    schedule_moves();
    testing::HeapWatch heap;
    const auto ended = [&] {
      if (!heap.look(heap_bytes_max)) fail(fmt::format("{} bytes of memory are held", heap.most_bytes()));
      return all_ended();
    };
    const auto end = world_.run_until(ended, after(world_.now(), 300s), 5'000'000);
    heap_bytes = heap.most_bytes();
    if (end != sim::RunEnd::reached) fail(fmt::format("not ended in time ({})", static_cast<int>(end)));
    check_end();
  }
  std::string violation;
  uint64_t losses = 0, delivered = 0, bytes = 0, events = 0, refused = 0, moved = 0;
  size_t heap_bytes = 0;  // the most at one time

 private:
  static sim::DatagramLinkOptions draw_link(sim::Random& random) {
    sim::DatagramLinkOptions link;
    const auto up_to = [&](double most) { return most * static_cast<double>(random.below(1001)) / 1000; };
    link.loss_chance = random.chance(0.2) ? 0 : up_to(0.1);
    link.duplicate_chance = up_to(0.05);
    link.corrupt_chance = up_to(0.03);
    link.reorder_chance = random.chance(0.3) ? 0 : up_to(0.3);
    link.delay_min = random.between(10us, 5ms);
    link.delay_max = link.delay_min + random.between(1us, 2ms);
    link.reorder_delay_max = random.between(10us, 20ms);
    link.rate_bytes_per_s = random.chance(0.3) ? 5'000'000 : 1'000'000'000;
    link.queue_bytes = random.chance(0.3) ? 50'000 : 1'000'000;
    link.again_chance = random.chance(0.5) ? 0 : up_to(0.05);
    link.again_max = random.between(1us, 20ms);
    link.partial_chance = random.chance(0.3) ? 0 : up_to(0.5);
    link.fail_chance = random.chance(0.5) ? 0 : up_to(0.02);
    link.datagram_bytes = static_cast<uint32_t>(random.between(datagram::datagram_bytes_min, datagram::datagram_bytes_max));
    return link;
  }
  void fail(const std::string& what) {
    if (violation.empty()) violation = what;
  }

  void add_machine() {
    auto& machine = *machines_.emplace_back(std::make_unique<Machine>());
    machine.name = fmt::format("m{}", machines_.size());
    machine.node = world_.add_node(machine.name);
    machine.entropy = std::make_unique<sim::SimEntropy>(random_.next());
    machine.memory = std::make_shared<cci::MemoryTable>(*machine.entropy, *machine.counters);
    datagram::DatagramOptions options;
    if (random_.chance(0.5)) options.congestion = reliability::Congestion::bbr;
    options.transport.sends_in_flight_max = static_cast<uint32_t>(random_.between(4, 64));
    auto net = std::make_unique<sim::SimDatagramNet>(fabric_, machine.node, machine.name, uint16_t{1});
    machine.net = net.get();
    auto transport = std::make_unique<datagram::DatagramTransport>(options, std::move(net), *machine.entropy, *machine.counters);
    machine.transport = transport.get();
    cci::EndpointOptions endpoint;
    endpoint.receive_buffers = static_cast<uint32_t>(random_.between(4, 64));
    machine.endpoint = std::make_unique<cci::Endpoint>(endpoint, std::move(transport), machine.memory, *machine.counters);
    machine.application = [this, &machine] { act(machine); };
    world_.add_actor(machine.node, &machine);
  }

  void add_connection() {
    const size_t from = random_.below(machines_.size());
    const size_t to = (from + 1 + random_.below(machines_.size() - 1)) % machines_.size();
    const auto attribute = static_cast<ports::Attribute>(random_.below(3));
    for (int end = 0; end < 2; ++end) {
      Side& side = *sides_.emplace_back(std::make_unique<Side>());
      side.stream = sides_.size();
      side.attribute = attribute;
    }
    Side& dialler = *sides_[sides_.size() - 2];
    Side& acceptor = *sides_.back();
    dialler.peer = &acceptor;
    acceptor.peer = &dialler;
    prepare(dialler, *machines_[from]);
    prepare(acceptor, *machines_[to]);
    const uint64_t name = dialler.stream;
    cci::ConnectOptions options;
    options.attribute = attribute;
    options.context = name;
    options.data = {reinterpret_cast<const std::byte*>(&name), sizeof name};
    if (!machines_[from]->endpoint->connect(machines_[to]->endpoint->uri(), options)) fail("connect");
    world_.wake(machines_[from]->node);
  }

  void prepare(Side& side, Machine& machine) {
    // The region: one slot for each of the peer's operations, guards between them.
    side.region.assign(rmas_per_side * (area_bytes + guard_bytes) + guard_bytes, std::byte{0xee});
    side.source.resize(area_bytes);
    for (size_t i = 0; i < side.source.size(); ++i) side.source[i] = pattern(side.stream, i);
    side.landing.assign(rmas_per_side * area_bytes, std::byte{0});
    side.local = machine.memory->register_region(Bytes(side.source));
    side.landed = machine.memory->register_region(MutableBytes(side.landing), cci::access_write);
    side.exposed = machine.memory->register_region(MutableBytes(side.region), cci::access_read | cci::access_write);
  }

  void schedule_cuts() {
    for (uint64_t cuts = random_.below(3); cuts > 0; --cuts) {
      const std::string a = machines_[random_.below(machines_.size())]->name;
      const std::string b = machines_[random_.below(machines_.size())]->name;
      const bool whole = random_.chance(0.5);
      const Instant from = after(world_.now(), random_.between(1ms, 2s));
      const Instant until = after(from, random_.chance(0.3) ? random_.between(20s, 60s) : random_.between(1ms, 5s));
      world_.at(from, [this, a, b, whole] { whole ? fabric_.cut(a) : fabric_.cut_way(a, b); });
      world_.at(until, [this, a, b, whole] { whole ? fabric_.join(a) : fabric_.join_way(a, b); });
    }
  }

  // A machine is at another address, another port for one, from some moment on. Whoever moves while it dials says hello from there
  // too, and the application there may be asked twice.
  void schedule_moves() {
    for (uint64_t moves = moves_random_.below(4); moves > 0; --moves) {
      Machine& machine = *machines_[moves_random_.below(machines_.size())];
      const auto port = static_cast<uint16_t>(1 + moves);
      const std::string address = moves_random_.chance(0.5) ? machine.name : machine.name + "x";
      world_.at(after(world_.now(), moves_random_.between(1ms, 2s)), [this, &machine, address, port] {
        if (nobody_dials()) machine.net->appear_as(address, port);
      });
    }
  }
  [[nodiscard]] bool nobody_dials() const {
    return std::all_of(sides_.begin(), sides_.end(), [](const auto& side) { return side->open || side->lost || side->peer->lost; });
  }

  Side* side_at(const Machine&, uint64_t context) {
    return context == 0 || context > sides_.size() ? nullptr : sides_[context - 1].get();
  }

  void act(Machine& machine) {
    while (auto event = machine.endpoint->get_event()) on_event(machine, *event);
    for (auto& side : sides_) {
      if (side->open && !side->lost && owner(*side) == &machine) produce(machine, *side);
    }
    if (machine.transport->held_bytes() > datagram::held_bytes_max) fail("more held than the bound");
  }
  [[nodiscard]] Machine* owner(const Side& side) const { return side.connection ? owners_.at(side.stream) : nullptr; }

  void on_event(Machine& machine, cci::Event& event) {
    using cci::EventType;
    switch (event.type) {
      case EventType::connect_request: {
        uint64_t name = 0;
        std::memcpy(&name, event.data().data(), sizeof name);
        if (!requested_.insert(name).second) fail("one dial, two requests");
        static_cast<void>(machine.endpoint->accept(event, name + 1));
        return;
      }
      case EventType::connect:
      case EventType::accept: {
        Side& side = *side_at(machine, event.context);
        if (event.status != Status::success) {
          side.lost = true;
          return;
        }
        side.open = true;
        side.connection = event.connection;
        owners_[side.stream] = &machine;
        return;
      }
      case EventType::disconnected:
        side_at(machine, event.context)->lost = true;
        return;
      case EventType::receive:
        return on_message(*side_at(machine, event.context), event.data());
      case EventType::send:
        return on_ended(machine, event);
      default:
        return;
    }
  }

  // Messages: the sender's stream u64, kind and number u32 each, then the pattern.
  void on_message(Side& side, Bytes data) {
    uint64_t stream = 0;
    uint32_t kind = 0, number = 0;
    if (data.size() < 16) return fail("a short message");
    std::memcpy(&stream, data.data(), 8);
    std::memcpy(&kind, data.data() + 8, 4);
    std::memcpy(&number, data.data() + 12, 4);
    if (stream != side.peer->stream) return fail("a message of another connection");
    for (size_t i = 16; i < data.size(); ++i) {
      if (data[i] != pattern(stream + number, i)) return fail("a damaged message");
    }
    if (kind == 1) {
      if (!side.announced.insert(number).second) return fail("a completion message twice");
      const Rma& rma = side.peer->rmas[number];
      if (rma.direction == Direction::write && !slot_holds(side, number, rma, side.peer->stream))
        fail("a completion message before its data");
      return;
    }
    ++delivered;
    const bool fresh = side.delivered.insert(number).second;
    if (!fresh && side.attribute != ports::Attribute::unreliable) fail("a message twice");
    if (side.attribute == ports::Attribute::reliable_ordered && number != side.next++) fail("a message out of order");
  }

  [[nodiscard]] static size_t slot_at(uint32_t number) { return guard_bytes + number * (area_bytes + guard_bytes); }
  [[nodiscard]] static bool slot_holds(const Side& target, uint32_t number, const Rma& rma, uint64_t stream) {
    for (size_t i = 0; i < rma.length; ++i) {
      if (target.region[slot_at(number) + rma.remote_at + i] != pattern(stream, i)) return false;
    }
    return true;
  }

  void on_ended(Machine&, const cci::Event& event) {
    Side& side = *sides_[(event.context >> 32) - 1];
    const auto number = static_cast<uint32_t>(event.context & 0x7fffffff);
    const bool well = event.status == Status::success;
    const bool gone = event.status == Status::disconnected || event.status == Status::timed_out;
    if (!well && !gone && event.status != Status::receiver_not_ready)
      fail(fmt::format("an operation ended as {}", to_string(event.status)));
    if ((event.context & 0x80000000) == 0) {
      ++side.ended;
      if (side.attribute == ports::Attribute::reliable_ordered && number + 1 != side.ended) fail("completions out of order");
      if (well) side.ended_well.insert(number);
      if (well && side.attribute != ports::Attribute::unreliable && !known_delivered(side, number))
        fail("completed and not delivered");
      return;
    }
    Rma& rma = side.rmas[number];
    if (rma.ended) fail("an operation ended twice");
    rma.ended = true;
    if (!well) return;
    bytes += rma.length;
    if (rma.direction == Direction::write) {
      if (!slot_holds(*side.peer, number, rma, side.stream)) fail("a write that succeeded without its bytes");
      return;
    }
    const std::byte* got = side.landing.data() + number * area_bytes;
    for (size_t i = 0; i < rma.length; ++i) {
      if (got[i] != std::byte{0xee}) return fail("a read with other bytes");
    }
  }
  // Delivered to the peer's endpoint: its event may not have been taken yet, so this is looked at again at the end.
  bool known_delivered(Side& side, uint32_t number) {
    expected_.emplace_back(side.peer, number);
    return true;
  }

  void produce(Machine& machine, Side& side) {
    if (side.attribute != ports::Attribute::unreliable && side.rmas.size() < rmas_per_side && side.sent >= side.rmas.size() * 10)
      issue_rma(machine, side);
    while (side.sent < messages_per_side) {
      const uint32_t most = machine.endpoint->max_send_bytes(side.connection);
      const size_t size = random_.chance(0.1) ? most : 16 + random_.below(200);
      if (send(machine, side, 0, side.sent, size) != Status::success) break;
      ++side.sent;
    }
  }
  static std::vector<std::byte> message(const Side& side, uint32_t kind, uint32_t number, size_t size) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &side.stream, 8);
    std::memcpy(bytes.data() + 8, &kind, 4);
    std::memcpy(bytes.data() + 12, &number, 4);
    for (size_t i = 16; i < size; ++i) bytes[i] = pattern(side.stream + number, i);
    return bytes;
  }
  Status send(Machine& machine, Side& side, uint32_t kind, uint32_t number, size_t size) {
    return machine.endpoint->send(side.connection, message(side, kind, number, size), side.stream << 32 | number);
  }
  void issue_rma(Machine& machine, Side& side) {
    const auto number = static_cast<uint32_t>(side.rmas.size());
    Rma rma;
    rma.direction = random_.chance(0.6) ? Direction::write : Direction::read;
    rma.length = 1 + random_.below(random_.chance(0.3) ? area_bytes : 5000);
    rma.remote_at = random_.below(area_bytes - rma.length + 1);
    rma.announces = random_.chance(0.5);
    const auto note = message(side, 1, number, 40);
    cci::RmaOptions options;
    options.write = rma.direction == Direction::write;
    options.local = options.write ? side.local : side.landed;
    options.local_offset_bytes = options.write ? 0 : number * area_bytes;
    options.remote.handle = side.peer->exposed;
    options.remote.offset_bytes = slot_at(number) + rma.remote_at;
    options.length_bytes = rma.length;
    options.fence = random_.chance(0.3);
    options.context = side.stream << 32 | 0x80000000 | number;
    if (rma.announces) options.completion_message = Bytes(note);
    side.rmas.push_back(rma);
    if (machine.endpoint->rma(side.connection, options) != Status::success) side.rmas.pop_back();
  }

  [[nodiscard]] bool all_ended() const {
    for (const auto& side : sides_) {
      const bool never = !side->open && side->peer->lost;  // its dialler gave up
      const bool over = (side->lost || never) && side->ended == side->sent;
      const bool done = side->open && side->ended == messages_per_side;
      if (!over && !done) return false;
      for (const Rma& rma : side->rmas) {
        if (!rma.ended) return false;
      }
      if (done && !side->lost && side->attribute != ports::Attribute::unreliable && side->rmas.size() < rmas_per_side) return false;
    }
    return true;
  }

  void check_end() {
    for (const auto& [peer, number] : expected_) {
      if (!peer->delivered.contains(number)) fail("completed and never delivered");
    }
    for (const auto& side : sides_) {
      // Every byte of the region is 0xee, or of the one write that names it.
      for (size_t i = 0; i < side->region.size(); ++i) {
        if (side->region[i] == std::byte{0xee}) continue;
        const size_t slot = (i < guard_bytes ? 0 : i - guard_bytes) / (area_bytes + guard_bytes);
        if (i < guard_bytes || slot >= side->peer->rmas.size()) return fail("a byte outside every operation");
        const Rma& rma = side->peer->rmas[slot];
        const size_t at = i - slot_at(static_cast<uint32_t>(slot));
        const bool inside = rma.direction == Direction::write && at >= rma.remote_at && at < rma.remote_at + rma.length;
        if (!inside || side->region[i] != pattern(side->peer->stream, at - rma.remote_at))
          return fail("a byte outside its operation");
      }
    }
    for (const auto& machine : machines_) moved += machine->counters->get(Counter::addresses_changed);
    for (const auto& machine : machines_) refused += machine->counters->get(Counter::messages_not_ready);
    for (const auto& machine : machines_) {
      if (machine->counters->get(Counter::frames_rejected) + machine->counters->get(Counter::acks_rejected) > 0)
        fail("a violation among our own");
    }
    losses = fabric_.totals().lost + fabric_.totals().dropped + fabric_.totals().corrupted + fabric_.totals().cut;
    events = world_.events();
  }

  sim::World world_;
  sim::Random random_;
  sim::Random moves_random_;  // its own: a seed draws all else as it did before there were moves
  sim::DatagramFabric fabric_;
  std::deque<std::unique_ptr<Side>> sides_;
  std::deque<std::unique_ptr<Machine>> machines_;
  std::map<uint64_t, Machine*> owners_;
  std::set<uint64_t> requested_;
  std::vector<std::pair<Side*, uint32_t>> expected_;
};

}  // namespace

TEST_CASE("lossy_swarm__messages_and_rma_over_bad_datagrams__every_promise_kept") {
  uint64_t runs = 0, losses = 0, delivered = 0, bytes = 0, events = 0, refused = 0, moved = 0;
  size_t heap_bytes = 0;
  const uint64_t count = testing::seed_count(200);
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + count; ++seed) {
    LossySwarm swarm(seed);
    swarm.run();
    ++runs;
    losses += swarm.losses;
    delivered += swarm.delivered;
    bytes += swarm.bytes;
    events += swarm.events;
    refused += swarm.refused;
    moved += swarm.moved;
    heap_bytes = std::max(heap_bytes, swarm.heap_bytes);
    INFO("seed " << seed);
    if (!swarm.violation.empty()) std::fprintf(stderr, "failed: lossy seed %llu\n", static_cast<unsigned long long>(seed));
    CHECK_THAT(swarm.violation, Catch::Equals(""));
  }
  std::printf(
      "lossy: %llu runs, %llu events, %llu datagrams lost or damaged, %llu messages, %llu refused, %llu bytes by RMA, %llu peers "
      "moved, %zu bytes of memory\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(events), static_cast<unsigned long long>(losses),
      static_cast<unsigned long long>(delivered), static_cast<unsigned long long>(refused), static_cast<unsigned long long>(bytes),
      static_cast<unsigned long long>(moved), heap_bytes);
}
