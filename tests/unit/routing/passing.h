// A router between two raw peers with one open connection, and what either of them may say of fragments.
#pragma once
#include <catch2/catch.hpp>

#include "routing/router/relayed_connections.h"
#include "tests/unit/routing/kinds.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

namespace ccixfer::routing::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint32_t fragment_bytes = 64u << 10;
inline constexpr uint64_t cookie = 7;

inline std::vector<std::byte> some_bytes(size_t count) {
  sim::Random random(1);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

// left - router - right. Left is the initiator's end, or a router (`crossed` 1); right is the destination's end, or a router.
struct Passing {
  explicit Passing(bool right_is_end, uint8_t crossed = 0, uint32_t pool_fragments = 16, uint32_t one_bytes = fragment_bytes,
                   const ports::TransportOptions& below = {})
      : left(world, fabric, "left", "10.0.0.66"), right(world, fabric, "right", "10.9.0.10"), source(some_bytes(one_bytes)) {
    RouterOptions options;
    options.fragment_bytes = one_bytes;
    options.memory_bytes = uint64_t{pool_fragments} * one_bytes;
    node = std::make_unique<RouterNode>(
        world, fabric, "router", std::vector<DeviceSpec>{{"left", "10.0.0.1", {1, 1}, {}}, {"right", "10.9.0.1", {1, 9}, {}}},
        options, std::nullopt, below);
    world.run_for(milliseconds(20));
    right.accepts = true;
    if (crossed > 0) know(left, "sim://10.0.0.1:7000", 50, {1, 1}, {1, 3});
    if (!right_is_end) know(right, "sim://10.9.0.1:7000", 100, {1, 9}, {1, 2});
    open(right_is_end, crossed);
  }
  // A connection from left to right: the one that they speak on from now on.
  cci::Connection open(bool right_is_end, uint8_t crossed) {
    ConnectRequest request = RawPeer::usual_request(right_is_end ? "cci://1:9:10.9.0.10:7000" : "cci://1:2:10.2.0.77:7000");
    request.source = crossed > 0 ? SubnetId{1, 3} : SubnetId{1, 1};
    request.crossed = crossed;
    REQUIRE(left.connect("sim://10.0.0.1:7000", ports::Role::hop));
    REQUIRE(left.say(request) == Status::success);
    REQUIRE(run([&] { return right.last(MessageKind::connect_request).has_value(); }));
    ConnectReply reply{Status::success, {}, 1392, 1u << 20, {}, 0};
    if (!right_is_end) reply.hops.push_back({"sim", "beyond", 1, 2, milliseconds(1), 0});
    REQUIRE(right.say(reply) == Status::success);
    REQUIRE(run([&] { return left.last(MessageKind::connect_reply).has_value(); }));
    left.say_plain(MessageKind::connect_ack);
    REQUIRE(run([&] { return right.last(MessageKind::connect_ack).has_value(); }));
    forget();
    return left.connection;
  }
  void know(RawPeer& peer, const std::string& uri, uint64_t id, SubnetId here, SubnetId there) {
    REQUIRE(peer.greet(uri, id, here));
    RouterRecord record{id, 1, false, {}};
    record.devices.push_back({here, 1'000'000'000, 0, true, false, {}, peer.endpoint->uri(), 0});
    record.devices.push_back({there, 1'000'000'000, 0, true, false, {}, "sim://10.77.0.1:7000", 0});
    REQUIRE(peer.tell(record));
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) { return left.run(done, at_most); }
  void rest() { world.run_for(milliseconds(50)); }
  void forget() { left.received.clear(), right.received.clear(); }
  void forget_all_but_bye() {
    for (RawPeer* peer : {&left, &right})
      std::erase_if(peer->received, [](const auto& message) { return kind_of(Bytes(message)) != MessageKind::bye; });
  }
  [[nodiscard]] uint32_t held() const { return node->router->fragments_in_use(); }
  [[nodiscard]] size_t known() const { return node->router->fragments().size(); }
  [[nodiscard]] uint64_t rejected() const { return node->counters.get(Counter::routed_rejected); }
  [[nodiscard]] uint64_t pulled() const { return node->counters.get(Counter::routed_fragments); }

  // As whoever holds the data offers it.
  FragmentMessage offer(RawPeer& from, MessageKind kind = MessageKind::write_request, uint64_t number = cookie) {
    FragmentMessage message;
    message.kind = kind;
    message.cookie = number;
    message.length_bytes = static_cast<uint32_t>(source.size());
    message.exposed = from.memory->register_region(Bytes(source));
    message.remote = target;
    return message;
  }
  // One that never arrives.
  FragmentMessage endless(RawPeer& from, MessageKind kind = MessageKind::write_request, uint64_t number = cookie) {
    FragmentMessage message = offer(from, kind, number);
    arrivals.push_back(std::make_unique<ports::FillProgress>());
    message.exposed = from.memory->register_filling(Bytes(source), arrivals.back().get());
    return message;
  }
  // Where the right end wants it.
  void open_target() {
    memory.assign(source.size(), std::byte{});
    target.handle = right.memory->register_region(MutableBytes(memory), cci::access_write);
  }
  // What is at the right end to be read.
  FragmentMessage question() {
    FragmentMessage message;
    message.kind = MessageKind::read_request;
    message.cookie = cookie;
    message.length_bytes = static_cast<uint32_t>(source.size());
    message.remote.handle = right.memory->register_region(Bytes(source));
    return message;
  }
  // By `from`, of whoever is on the other side: it may answer now.
  void ask(RawPeer& from) {
    RawPeer& to = &from == &left ? right : left;
    REQUIRE(from.say(question()) == Status::success);
    REQUIRE(offered(to, MessageKind::read_request));
  }
  std::optional<FragmentMessage> offered(const RawPeer& to, MessageKind kind) {
    run([&] { return to.last(kind).has_value(); });
    const auto message = to.last(kind);
    return message ? decode_fragment(*message) : std::nullopt;
  }
  std::optional<ports::OperationResult> acked(const RawPeer& to) {
    run([&] { return to.last(MessageKind::fragment_ack).has_value(); });
    const auto message = to.last(MessageKind::fragment_ack);
    if (!message) return std::nullopt;
    const auto ack = decode_fragment_ack(*message);
    return ack && ack->cookie == cookie ? std::optional(ack->ending) : std::nullopt;
  }
  std::optional<FragmentReleased> taken(const RawPeer& by) {
    run([&] { return by.last(MessageKind::fragment_released).has_value(); });
    const auto message = by.last(MessageKind::fragment_released);
    return message ? decode_fragment_released(*message) : std::nullopt;
  }
  // The neighbour reads what was offered.
  Status read(RawPeer& peer, const FragmentMessage& message) {
    got.assign(message.length_bytes, std::byte{});
    cci::RmaOptions options;
    options.write = false;
    options.local = peer.memory->register_region(MutableBytes(got), 0);
    options.remote.handle = message.exposed;
    options.length_bytes = message.length_bytes;
    peer.ended.clear();
    REQUIRE(peer.endpoint->rma(peer.connection, options) == Status::success);
    peer.wake();
    REQUIRE(run([&] { return !peer.ended.empty(); }));
    static_cast<void>(peer.memory->deregister_region(options.local));
    return peer.ended[0];
  }
  // Both ends have moved something, so that the connection may hold more than one buffer of a direction.
  void prove(uint8_t data_class = 0) {
    FragmentMessage first = offer(left, MessageKind::write_request, 999);
    first.data_class = data_class;
    left.say(first);
    REQUIRE(offered(right, MessageKind::write_request));
    right.say(FragmentReleased{999, false});
    rest();
    REQUIRE(held() == 0);
    forget();
  }
  void still_works() {
    CHECK_FALSE(left.gone);
    CHECK_FALSE(right.gone);
    forget();
    left.say_plain(MessageKind::keepalive);
    CHECK(run([&] { return right.last(MessageKind::keepalive).has_value(); }));
  }

  sim::World world{9};
  sim::Fabric fabric{world, {}};
  RawPeer left, right;
  std::unique_ptr<RouterNode> node;
  std::vector<std::byte> source, memory, got;
  ports::RemoteRef target;
  std::vector<std::unique_ptr<ports::FillProgress>> arrivals;
};

}  // namespace ccixfer::routing::test
