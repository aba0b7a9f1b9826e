// The simulated card: what it moves, what it refuses as a real one would, and that the world hears of it.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/cci/memory_table.h"
#include "transports/sim/card_transport.h"
#include "transports/sim/sim_card.h"

using namespace ccixfer;
using namespace ccixfer::sim;
using ports::MemoryKey;

namespace {

using std::chrono::seconds;

struct Desk {
  World world{1};
  std::vector<std::byte> memory = std::vector<std::byte>(1000);
  Card card{world, "n", {.regions_max = 2, .bytes_max = 1500}};
  MemoryKey add(size_t bytes, ports::MemoryAccess access = {}) {
    MemoryKey key;
    CHECK(card.add(MutableBytes(memory).first(bytes), access, key) == Status::success);
    return key;
  }
  Bytes part(size_t at, size_t size) { return Bytes(memory).subspan(at, size); }
};

}  // namespace

TEST_CASE("sim_card__registered_memory__is_moved_within_its_bounds") {
  Desk at;
  const MemoryKey key = at.add(500, {.we_write = true});
  CHECK(at.card.begin(key, at.part(0, 500), true));
  CHECK(at.card.begin(key, at.part(499, 1), false));
  at.card.end(key);
  at.card.end(key);
  CHECK(at.world.violations().empty());
  CHECK_FALSE(at.card.begin(key, at.part(1, 500), false));
  CHECK_FALSE(at.card.begin({}, at.part(0, 1), false));
  CHECK_FALSE(at.card.begin({key.value + 1}, at.part(0, 1), false));
  const MemoryKey constant = at.add(500);
  CHECK(at.card.begin(constant, at.part(0, 1), false));
  CHECK_FALSE(at.card.begin(constant, at.part(0, 1), true));
  CHECK(at.world.violations().size() == 4);
}

TEST_CASE("sim_card__beyond_its_limits__takes_no_more_memory") {
  Desk at;
  const MemoryKey key = at.add(1000);
  MemoryKey none;
  CHECK(at.card.add(MutableBytes(at.memory).first(501), {}, none) == Status::no_memory);
  static_cast<void>(at.add(500));
  CHECK(at.card.add(MutableBytes(at.memory).first(1), {}, none) == Status::no_memory);
  at.card.remove(key);
  CHECK(at.add(1).value > key.value);
  CHECK(at.world.violations().empty());
}

TEST_CASE("sim_card__peers__reach_what_is_registered_for_that") {
  Desk at;
  const MemoryKey key = at.add(500, {.peers_read = true});
  CHECK(at.card.lets_peer(at.part(100, 400), false));
  CHECK_FALSE(at.card.lets_peer(at.part(100, 401), false));
  CHECK_FALSE(at.card.lets_peer(at.part(100, 1), true));
  static_cast<void>(at.add(10, {.peers_write = true}));
  CHECK(at.card.lets_peer(at.part(0, 10), true));
  at.card.remove(key);
  CHECK_FALSE(at.card.lets_peer(at.part(100, 1), false));
  CHECK(at.world.violations().size() == 3);
}

TEST_CASE("sim_card__deregistered_while_named_or_twice__is_a_violation") {
  Desk at;
  const MemoryKey key = at.add(500);
  REQUIRE(at.card.begin(key, at.part(0, 10), false));
  at.card.remove(key);
  CHECK(at.world.violations().size() == 1);
  at.card.remove(key);
  CHECK(at.world.violations().size() == 2);
  at.card.end(key);
}

namespace {

// One process at each end, without the core that would keep them from mistakes.
struct Process final : ports::TransportSink, Actor {
  Process(World& a_world, Fabric& fabric, const std::string& name, uint64_t seed)
      : world(a_world), node(world.add_node(name)), entropy(seed), memory(entropy, counters) {
    SimNetOptions net;
    net.networks = {{"net", name}};
    net.port = 1;
    transport = make_transport(fabric, node, net, {}, counters);
    target = &memory.target_of_another_transport();
    transport->bind(*this, *target);
    world.add_actor(node, this);
  }
  ~Process() override { world.remove_actor(node, this); }
  void turn(Instant now) override { transport->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return transport->next_deadline(); }

  void on_connect_request(ports::ConnectionId request, ports::Role, ports::Attribute, Bytes) override {
    CHECK(transport->accept(request) == Status::success);
  }
  void on_connected(ports::ConnectionId id, Status status, ports::ConnectionLimits, std::string_view) override {
    CHECK(status == Status::success);
    connection = id;
  }
  void on_accepted(ports::ConnectionId id, Status, ports::ConnectionLimits) override { connection = id; }
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t) override { return {}; }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t token, ports::OperationResult ending) override {
    ended.emplace_back(token, ending.status);
    CHECK(lost == 0);
  }
  void on_disconnected(ports::ConnectionId, Status, std::string_view) override { ++lost; }
  void on_keepalive_timeout(ports::ConnectionId) override {}

  World& world;
  NodeId node;
  Counters counters;
  SimEntropy entropy;
  cci::MemoryTable memory;
  ports::RmaTarget* target = nullptr;
  std::unique_ptr<ports::Transport> transport;
  ports::ConnectionId connection;
  std::vector<std::pair<uint64_t, Status>> ended;
  int lost = 0;
};

struct Wire {
  Wire() {
    const std::string uri = b.transport->uri();
    ports::DialRequest request;
    request.uri = uri;
    REQUIRE(a.transport->dial(request));
    world.wake(a.node);
    run([&] { return a.connection && b.connection; });
  }
  static LinkOptions cards() {
    LinkOptions link;
    link.card.emplace();
    return link;
  }
  void run(const std::function<bool()>& done) {
    REQUIRE(world.run_until(done, after(world.now(), seconds(30))) == RunEnd::reached);
  }
  // Registers with the card of `at` what its table has not told it, since no endpoint is there.
  static MemoryKey key_of(Process& at, MutableBytes memory, ports::MemoryAccess access) {
    MemoryKey key;
    REQUIRE(at.transport->register_memory(memory, access, key) == Status::success);
    return key;
  }
  void write(MemoryKey key, uint64_t token) {
    ports::RmaRequest request;
    request.source = source;
    request.local.key = key;
    request.remote.handle = remote;
    REQUIRE(a.transport->rma(a.connection, request, token) == Status::success);
    world.wake(a.node);
  }

  World world{3};
  Fabric fabric{world, cards()};
  Process a{world, fabric, "a", 1}, b{world, fabric, "b", 2};
  std::vector<std::byte> source = std::vector<std::byte>(100'000, std::byte{7}), sink = std::vector<std::byte>(100'000);
  ports::Handle remote = b.memory.register_region(sink, cci::access_write);
};

}  // namespace

TEST_CASE("sim_card_transport__a_write_with_live_keys__arrives") {
  Wire wire;
  const MemoryKey key = Wire::key_of(wire.a, wire.source, {});
  const MemoryKey theirs = Wire::key_of(wire.b, wire.sink, {.peers_write = true});
  wire.write(key, 1);
  wire.run([&] { return !wire.a.ended.empty(); });
  CHECK(wire.a.ended.front() == std::pair(uint64_t{1}, Status::success));
  CHECK(wire.sink == wire.source);
  wire.a.transport->deregister_memory(key);
  wire.b.transport->deregister_memory(theirs);
  CHECK(wire.world.violations().empty());
}

TEST_CASE("sim_card_transport__a_key_that_there_is_not__fails_and_breaks_the_connection") {
  Wire wire;
  const MemoryKey key = Wire::key_of(wire.a, wire.source, {});
  static_cast<void>(Wire::key_of(wire.b, wire.sink, {.peers_write = true}));
  wire.write(key, 1);
  wire.write({key.value + 1}, 2);
  wire.run([&] { return wire.a.lost > 0 && wire.b.lost > 0; });
  CHECK(wire.a.lost == 1);
  REQUIRE(wire.a.ended.size() == 2);
  CHECK(wire.a.ended[0] == std::pair(uint64_t{2}, Status::error));
  CHECK(wire.a.ended[1] == std::pair(uint64_t{1}, Status::disconnected));
  REQUIRE(wire.world.violations().size() == 1);
  CHECK(wire.world.violations().front().find("card of a") == 0);
  wire.a.transport->deregister_memory(key);  // nothing in flight names it any more
  CHECK(wire.world.violations().size() == 1);
}

TEST_CASE("sim_card_transport__memory_without_a_key_at_the_target__breaks_the_connection") {
  Wire wire;
  wire.write(Wire::key_of(wire.a, wire.source, {}), 1);
  wire.run([&] { return wire.a.lost > 0 && wire.b.lost > 0; });
  CHECK(wire.b.lost == 1);
  REQUIRE(wire.a.ended.size() == 1);
  CHECK(wire.a.ended[0].second != Status::success);
  CHECK(wire.sink == std::vector<std::byte>(wire.sink.size()));
  REQUIRE_FALSE(wire.world.violations().empty());
  CHECK(wire.world.violations().front().find("card of b") == 0);
}

TEST_CASE("sim_card_transport__left_while_it_breaks__is_told_no_more") {
  Wire wire;
  wire.write({99}, 1);
  const bool abort = GENERATE(false, true);
  abort ? wire.a.transport->abort(wire.a.connection) : wire.a.transport->disconnect(wire.a.connection);
  wire.world.wake(wire.a.node);
  wire.run([&] { return wire.b.lost > 0; });
  CHECK(wire.a.lost == 0);
  CHECK(wire.a.ended.size() == 1);
}
