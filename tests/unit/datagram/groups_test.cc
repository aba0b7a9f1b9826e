// Connections of groups in the simulated world: what the network does to them, and what strangers send.
#include "transports/datagram/groups.h"

#include <algorithm>
#include <set>

#include "tests/unit/datagram/rig.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::datagram::testing {
namespace {

using ports::Attribute;
constexpr const char* group_name = "sim-datagram://group.g:9";

Result<ConnectionId> dial(End& end, Attribute attribute, const std::string& uri = group_name) {
  ports::DialRequest request;
  request.uri = uri;
  request.attribute = attribute;
  auto id = end.transport->dial(request);
  end.world.wake(end.node);
  return id;
}

ConnectionId member(Rig& rig, End& end, Attribute attribute, const std::string& uri = group_name) {
  const size_t before = end.sink.connected.size();
  const auto id = dial(end, attribute, uri);
  REQUIRE(id);
  REQUIRE(rig.run([&] { return end.sink.connected.size() > before; }));
  REQUIRE(end.sink.connected.back().id == *id);
  REQUIRE(end.sink.connected.back().status == Status::success);
  return *id;
}

// Sends to the group what it likes.
struct Stranger final : DatagramEvents {
  explicit Stranger(Rig& rig) : world(rig.world), net(rig.fabric, rig.world.add_node("s"), "s", 1) {
    to = net.group(group_name)->address;
  }
  void received(std::span<const Datagram> batch) override { answers += batch.size(); }
  void received_of_group(uint32_t, std::span<const Datagram> batch) override { answers += batch.size(); }
  void resolved(uint64_t, Status, const Address&, std::string_view) override {}
  void writable() override {}
  void send(Bytes bytes) {
    const Datagram one{to, bytes};
    REQUIRE(net.send({&one, 1}).taken == 1);
    static_cast<void>(world.run_for(5ms));
    net.poll(world.now(), *this);
  }
  sim::World& world;
  sim::SimDatagramNet net;
  Address to;
  size_t answers = 0;
};

Buffer packet(const PacketHeader& header, const Buffer& body, size_t pad_to = 0) {
  Buffer bytes;
  wire::Writer out(bytes);
  begin_packet(out, header);
  out.bytes(body);
  if (bytes.size() + packet_check_bytes < pad_to) out.zeros(pad_to - packet_check_bytes - bytes.size());
  end_packet(out);
  return bytes;
}

PacketHeader of_group(uint64_t number) { return {PacketKind::group, packet_version, 0, 3, 77, number}; }

}  // namespace

// The bytes of the packet, written down by hand.
TEST_CASE("groups__a_message__is_one_packet_of_the_documented_form") {
  Rig rig;
  std::vector<Buffer> left;
  rig.fabric.stand_between([&](const std::string&, std::vector<std::byte>& bytes) {
    left.push_back(bytes);
    return true;
  });
  static_cast<void>(member(rig, rig.b, Attribute::multicast_receive));
  const ConnectionId to_group = member(rig, rig.a, Attribute::multicast_send);
  REQUIRE(left.empty());  // nobody is asked
  for (uint64_t i = 0; i < 2; ++i) REQUIRE(rig.a.send(to_group, {std::byte{0x68}, std::byte{0x69}}, i) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 2; }));
  REQUIRE(left.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(left[i].size() == 28 + 2 + 8);
    const std::vector<int> head{0x1d, 0xcc, 8, packet_version, 0, 0, 0, 0};
    for (size_t at = 0; at < head.size(); ++at) CHECK(std::to_integer<int>(left[i][at]) == head[at]);
    CHECK(std::to_integer<size_t>(left[i][20]) == i);  // the number's lowest byte
    for (size_t at = 21; at < 28; ++at) CHECK(left[i][at] == std::byte{0});
    CHECK(std::equal(left[0].begin() + 8, left[0].begin() + 20, left[i].begin() + 8));  // source and key
    CHECK(left[i][28] == std::byte{0x68});
    CHECK(left[i][29] == std::byte{0x69});
  }
  rig.pass(100s);
  CHECK(left.size() == 2);  // no keepalive, no acknowledgement
}

TEST_CASE("groups__what_strangers_send_to_a_group__counted_never_answered_and_harms_nobody") {
  Rig rig;
  static_cast<void>(member(rig, rig.b, Attribute::multicast_receive));
  Stranger stranger(rig);
  const Counters& counters = rig.b.counters;
  const uint64_t sent = rig.fabric.totals().sent;
  uint64_t bad = 0;
  const auto is_dropped = [&](const Buffer& bytes) {
    stranger.send(bytes);
    CHECK(counters.get(Counter::datagrams_rejected) == ++bad);
  };
  // Every kind of packet that the protocol knows, and those that it does not.
  for (uint8_t kind = 0; kind < 12; ++kind) {
    if (kind == static_cast<uint8_t>(PacketKind::group)) continue;
    PacketHeader header = of_group(1);
    header.kind = static_cast<PacketKind>(kind);
    is_dropped(packet(header, Buffer(40)));
  }
  Hello hello = RawPeer::usual();
  Buffer greeting;
  wire::Writer out(greeting);
  encode(out, hello);
  is_dropped(packet({PacketKind::hello, packet_version, 0, 5, 77, 0}, greeting, hello_bytes_min));
  PacketHeader other = of_group(1);
  other.version = packet_version + 1;
  is_dropped(packet(other, Buffer(10)));
  other = of_group(1);
  other.destination = 1;
  is_dropped(packet(other, Buffer(10)));
  is_dropped(packet(of_group(1), Buffer(rig.b.transport->max_send_bytes() + 1)));
  is_dropped(Buffer(100));
  const Buffer good = packet(of_group(1), filled(100, 1));
  for (size_t size = 0; size < good.size(); ++size) is_dropped({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Buffer flipped = good;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    is_dropped(flipped);
  }
  CHECK(rig.b.sink.messages.empty());
  stranger.send(good);
  CHECK(rig.b.sink.messages.size() == 1);
  stranger.send(good);
  CHECK(rig.b.sink.messages.size() == 1);
  CHECK(counters.get(Counter::datagrams_duplicate) == 1);
  CHECK(stranger.answers == 0);
  CHECK(rig.fabric.totals().sent - sent == bad + 2);  // all of it the stranger's
  CHECK(rig.b.sink.requests.empty());
  rig.connect();
}

TEST_CASE("groups__an_end_with_an_identity__refuses_both_attributes") {
  const auto trust = std::make_shared<ccixfer::testing::OwnTrust>();
  Rig rig({}, {}, 1, reliability::Congestion::new_reno, trust, trust);
  for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
    const auto id = dial(rig.a, attribute);
    REQUIRE_FALSE(id);
    CHECK(id.error().kind == ErrorKind::usage);
    CHECK(id.error().message == "multicast has no keys: run it with --insecure");
  }
}

// Loss, copies, damage and overtaking are each member's own.
TEST_CASE("groups__a_bad_network__each_message_at_most_once_and_members_miss_different_ones") {
  sim::DatagramLinkOptions link;
  link.loss_chance = 0.2;
  link.duplicate_chance = 0.2;
  link.corrupt_chance = 0.1;
  link.reorder_chance = 0.3;
  link.again_chance = 0.05;
  link.partial_chance = 0.1;
  link.fail_chance = 0.02;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Rig rig(link, {}, seed);
    End c(rig.fabric, "c", {}, seed + 100);
    static_cast<void>(member(rig, rig.b, Attribute::multicast_receive));
    static_cast<void>(member(rig, c, Attribute::multicast_receive));
    const ConnectionId to_group = member(rig, rig.a, Attribute::multicast_send);
    constexpr uint64_t count = 500;
    uint64_t next = 0;
    REQUIRE(rig.run([&] {
      while (next < count && rig.a.send(to_group, filled(100, next), next) == Status::success) ++next;
      return rig.a.sink.completions.size() == count;
    }));
    rig.pass(100ms);
    std::set<Buffer> sent;
    for (uint64_t i = 0; i < count; ++i) sent.insert(filled(100, i));
    const auto check = [&](const End& end) {
      const std::set<Buffer> had(end.sink.messages.begin(), end.sink.messages.end());
      CHECK(had.size() == end.sink.messages.size());
      CHECK(std::ranges::includes(sent, had));
      CHECK(had.size() > count / 2);
      CHECK(had.size() < count);
      CHECK(end.counters.get(Counter::datagrams_duplicate) > 0);
      CHECK(end.counters.get(Counter::datagrams_rejected) > 0);
      return had;
    };
    CHECK(check(rig.b) != check(c));
  }
}

TEST_CASE("groups__bounds__connections_messages_that_wait_and_a_turns_work") {
  ports::TransportOptions options;
  options.sends_in_flight_max = 600;
  Rig rig({}, options);
  static_cast<void>(member(rig, rig.b, Attribute::multicast_receive));
  const ConnectionId to_group = member(rig, rig.a, Attribute::multicast_send);
  const Bytes none;
  uint64_t issued = 0;
  while (rig.a.transport->send(to_group, {&none, 1}, issued) == Status::success) ++issued;
  CHECK(issued == 600);
  CHECK(rig.a.transport->send(to_group, {&none, 1}, 1000) == Status::no_buffers);
  rig.a.transport->turn(rig.world.now());
  CHECK(rig.a.sink.completions.size() == send_budget_datagrams);
  CHECK(rig.a.transport->next_deadline() <= rig.world.now());
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 600; }));
  CHECK(rig.a.transport->next_deadline() == never);
  for (uint64_t i = 0; i < 600; ++i) CHECK(rig.a.sink.completions[i].token == i);
  std::vector<ConnectionId> all{to_group};
  while (const auto id = dial(rig.a, Attribute::multicast_receive)) all.push_back(*id);
  CHECK(all.size() == groups_max);
  CHECK(dial(rig.a, Attribute::multicast_send).error().kind == ErrorKind::network);
  rig.a.transport->disconnect(all[5]);
  rig.a.transport->disconnect(all[5]);
  rig.pass(1ms);
  CHECK(dial(rig.a, Attribute::multicast_receive));
  rig.connect();  // they have no place of other connections
}

// Of a name that was used again nothing is delivered that came under the old one.
TEST_CASE("groups__a_connection_that_ended__its_name_finds_nothing") {
  const bool aborts = GENERATE(false, true);  // the same here: there is no goodbye
  Rig rig;
  const ConnectionId first = member(rig, rig.b, Attribute::multicast_receive);
  const ConnectionId to_group = member(rig, rig.a, Attribute::multicast_send);
  REQUIRE(rig.a.send(to_group, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 1; }));  // on its way
  REQUIRE(rig.b.sink.messages.empty());
  aborts ? rig.b.transport->abort(first) : rig.b.transport->disconnect(first);
  rig.b.transport->turn(rig.world.now());
  const ConnectionId second = member(rig, rig.b, Attribute::multicast_receive, "sim-datagram://group.h:9");
  CHECK(second.index == first.index);
  CHECK(second.generation != first.generation);
  rig.pass(10ms);
  CHECK(rig.b.sink.messages.empty());
  CHECK(rig.b.send(first, Buffer(1), 2) == Status::not_found);
  CHECK(rig.b.send(second, Buffer(1), 2) == Status::invalid);
  CHECK(rig.b.rma(first, {}, 2) == Status::not_found);
  CHECK(rig.b.rma(second, {}, 2) == Status::invalid);
  CHECK(rig.b.transport->hops(first).empty());
  CHECK(rig.b.transport->peer(second).address == "group.h");
  CHECK(rig.b.transport->accept(second) == Status::not_found);
  CHECK(rig.b.transport->reject(second, "") == Status::not_found);
  rig.b.transport->set_keepalive(second, 1s);
  rig.b.transport->set_send_timeout(second, 1s);
  rig.b.transport->hint(second, 1, 1);
  rig.b.sink.buffers = 0;
  const ConnectionId to_other = member(rig, rig.a, Attribute::multicast_send, "sim-datagram://group.h:9");
  REQUIRE(rig.a.send(to_other, filled(10, 2), 2) == Status::success);
  rig.pass(10ms);
  rig.b.sink.buffers = SIZE_MAX;
  CHECK(rig.b.sink.messages.empty());  // lost without a buffer
  REQUIRE(rig.a.send(to_other, filled(10, 3), 3) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 1; }));
  CHECK(rig.b.sink.messages[0] == filled(10, 3));
}

}  // namespace ccixfer::datagram::testing
