// Points 4, 6, 8 and 16 for groups: CCI's UU_MC_TX and UU_MC_RX, where the transport has them, and one clear line where not.
#include <set>

#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

// A connection of a group, once its event has come.
Connection member(Lab& lab, Node& node, const std::string& group, Attribute attribute, uint64_t context = 0) {
  cci::ConnectOptions options;
  options.attribute = attribute;
  options.context = context;
  const auto dialled = node.endpoint->connect(group, options);
  if (!dialled) FAIL(dialled.error().message);
  const auto connected = wait_event(lab, node, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::success);
  REQUIRE(connected->connection == *dialled);
  REQUIRE(connected->context == context);
  return *dialled;
}

// Sends a number again and again, another one each time, until all of `nodes` have had one of them.
void send_until_all_have_one(Lab& lab, Node& from, Connection connection, const std::vector<Node*>& nodes, uint32_t first) {
  std::set<Node*> have;
  for (uint32_t tries = 0; have.size() < nodes.size(); ++tries) {
    REQUIRE(tries < 50);
    REQUIRE(from.endpoint->send(connection, bytes_of(first + tries), first + tries) == Status::success);
    REQUIRE(wait_send(lab, from, first + tries) == Status::success);
    const auto all_have = [&] {
      for (Node* node : nodes) {
        while (const auto event = node->take(EventType::receive)) {
          const uint32_t number = number_of(*event);
          REQUIRE((number >= first && number <= first + tries));
          have.insert(node);
        }
      }
      return have.size() == nodes.size();
    };
    REQUIRE((lab.run(all_have, 1s) || lab.lossy()));
  }
}

TEST_CASE("contract__multicast__where_there_are_no_groups__one_clear_line") {
  EVERY_LAB(lab);
  if (!lab.group(0).empty()) return;
  Node& a = lab.add();
  Node& b = lab.add();
  const bool has_keys = lab_name.starts_with("udp-secured") || lab_name.starts_with("datagram-secured");
  for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
    cci::ConnectOptions options;
    options.attribute = attribute;
    const auto dialled = a.endpoint->connect(b.endpoint->uri(), options);
    REQUIRE_FALSE(dialled);
    REQUIRE(dialled.error().kind == ErrorKind::usage);
    REQUIRE(dialled.error().message ==
            (has_keys ? "multicast has no keys: run it with --insecure" : "multicast is not implemented on this transport"));
  }
  lab.pass(10ms);
  REQUIRE_FALSE(b.has(EventType::connect_request));
}

TEST_CASE("contract__multicast__a_message_reaches_every_member_and_nobody_else") {
  EVERY_LAB(lab);
  if (lab.group(0).empty()) return;
  Node& sender = lab.add();
  Node& b = lab.add();
  Node& c = lab.add();
  Node& d = lab.add();
  // Up with nobody there: there is no peer.
  const Connection to_group = member(lab, sender, lab.group(0), Attribute::multicast_send, 11);
  const Connection at_b = member(lab, b, lab.group(0), Attribute::multicast_receive, 12);
  static_cast<void>(member(lab, c, lab.group(0), Attribute::multicast_receive));
  static_cast<void>(member(lab, d, lab.group(1), Attribute::multicast_receive));
  send_until_all_have_one(lab, sender, to_group, {&b, &c}, 100);
  REQUIRE(sender.endpoint->hops(to_group).size() == 1);
  REQUIRE(sender.endpoint->hops(to_group)[0].node == lab.group(0));
  REQUIRE(sender.endpoint->peer(to_group).proved.empty());
  // Whoever receives may send as well, and gets its own.
  const Connection from_b = member(lab, b, lab.group(0), Attribute::multicast_send);
  send_until_all_have_one(lab, b, from_b, {&b, &c}, 200);
  REQUIRE(b.endpoint->send(at_b, bytes_of(1), 1) == Status::invalid);
  for (Node* node : {&sender, &b, &c, &d}) {
    REQUIRE_FALSE(node->has(EventType::connect_request));
    REQUIRE_FALSE(node->has(EventType::disconnected));
  }
  REQUIRE_FALSE(d.has(EventType::receive));
  REQUIRE_FALSE(sender.has(EventType::receive));
}

// CCI's unreliable attributes: each message at most once, in any order; what finds no buffer is lost.
TEST_CASE("contract__multicast__many_messages__each_at_most_once_and_whole") {
  EVERY_LAB(lab);
  if (lab.group(0).empty()) return;
  NodeOptions few;
  few.endpoint.receive_buffers = 4;
  Node& a = lab.add();
  Node& b = lab.add();
  Node& c = lab.add(few);
  const Connection to_group = member(lab, a, lab.group(0), Attribute::multicast_send);
  static_cast<void>(member(lab, b, lab.group(0), Attribute::multicast_receive));
  static_cast<void>(member(lab, c, lab.group(0), Attribute::multicast_receive));
  constexpr uint32_t count = 400;
  const size_t size = a.endpoint->max_send_bytes(to_group);
  std::vector<int> received(count);
  uint32_t sent = 0, ended = 0;
  REQUIRE(lab.run([&] {
    while (sent < count) {
      auto message = pattern(size, sent);
      std::memcpy(message.data(), &sent, sizeof sent);
      if (a.endpoint->send(to_group, Bytes(message), sent) != Status::success) break;
      ++sent;
    }
    while (const auto event = a.take(EventType::send)) {
      REQUIRE(event->status == Status::success);
      ++ended;
    }
    return ended == count;
  }));
  lab.pass(100ms);
  while (const auto event = b.take(EventType::receive)) {
    uint32_t number = 0;
    REQUIRE(event->data().size() == size);
    std::memcpy(&number, event->data().data(), sizeof number);
    REQUIRE(number < count);
    auto expected = pattern(size, number);
    std::memcpy(expected.data(), &number, sizeof number);
    REQUIRE(std::equal(expected.begin(), expected.end(), event->data().begin(), event->data().end()));
    ++received[number];
  }
  REQUIRE(std::ranges::max(received) == 1);
  REQUIRE(c.count(EventType::receive) <= 4);
  c.events.clear();
  send_until_all_have_one(lab, a, to_group, {&b, &c}, 10'000);
}

TEST_CASE("contract__multicast__what_does_not_fit_or_has_no_meaning__refused") {
  EVERY_LAB(lab);
  if (lab.group(0).empty()) return;
  Node& a = lab.add();
  Node& b = lab.add();
  const Connection to_group = member(lab, a, lab.group(0), Attribute::multicast_send);
  const Connection from_group = member(lab, b, lab.group(0), Attribute::multicast_receive);
  const uint32_t most = a.endpoint->max_send_bytes(to_group);
  REQUIRE(most >= ports::max_send_bytes_floor);
  REQUIRE(most <= b.endpoint->max_send_bytes());
  const std::vector<std::byte> message(most + 1);
  REQUIRE(a.endpoint->send(to_group, Bytes(message), 1) == Status::message_size);
  REQUIRE(a.endpoint->send(to_group, Bytes(message).first(most), 2) == Status::success);
  REQUIRE(wait_send(lab, a, 2) == Status::success);
  REQUIRE(b.endpoint->send(from_group, bytes_of(1), 3) == Status::invalid);
  std::vector<std::byte> memory(100);
  for (auto& [node, connection] : {std::pair<Node&, Connection>{a, to_group}, {b, from_group}}) {
    cci::RmaOptions write;
    write.local = node.memory->register_region(memory, cci::access_read);
    write.remote.handle = b.memory->register_region(memory, cci::access_write);
    write.length_bytes = memory.size();
    REQUIRE(node.endpoint->rma(connection, write) == Status::invalid);
  }
  // A name that is none of a group, and data that nobody takes.
  cci::ConnectOptions options;
  options.attribute = Attribute::multicast_receive;
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), options).error().kind == ErrorKind::usage);
  REQUIRE(a.endpoint->connect("nonsense", options).error().kind == ErrorKind::usage);
  options.data = bytes_of(most);
  REQUIRE(a.endpoint->connect(lab.group(0), options).error().kind == ErrorKind::usage);
  // There is no peer whose silence could be noticed.
  REQUIRE(a.endpoint->set_keepalive(to_group, 1s) == Status::success);
  REQUIRE(b.endpoint->set_keepalive(from_group, 1s) == Status::success);
  lab.pass(60s);
  REQUIRE_FALSE(a.has(EventType::keepalive_timed_out));
  REQUIRE_FALSE(b.has(EventType::keepalive_timed_out));
  REQUIRE_FALSE(b.has(EventType::disconnected));
}

TEST_CASE("contract__multicast__disconnect__what_was_sent_arrives_and_the_member_gets_no_more") {
  EVERY_LAB(lab);
  if (lab.group(0).empty()) return;
  Node& a = lab.add();
  Node& b = lab.add();
  Node& c = lab.add();
  static_cast<void>(member(lab, c, lab.group(0), Attribute::multicast_receive));
  for (uint32_t round = 0; round < 3; ++round) {
    const Connection to_group = member(lab, a, lab.group(0), Attribute::multicast_send);
    const Connection at_b = member(lab, b, lab.group(0), Attribute::multicast_receive);
    send_until_all_have_one(lab, a, to_group, {&b, &c}, round * 1000);
    b.endpoint->disconnect(at_b);
    lab.pass(10ms);
    b.events.clear();
    send_until_all_have_one(lab, a, to_group, {&c}, round * 1000 + 500);
    REQUIRE(a.endpoint->send(to_group, bytes_of(7), 7) == Status::success);
    a.endpoint->disconnect(to_group);
    REQUIRE(a.endpoint->send(to_group, bytes_of(7), 8) == Status::not_found);
    REQUIRE(wait_send(lab, a, 7) == Status::success);
    lab.pass(10ms);
    c.events.clear();
    REQUIRE_FALSE(b.has(EventType::receive));
    REQUIRE_FALSE(a.has(EventType::disconnected));
    REQUIRE_FALSE(b.has(EventType::disconnected));
  }
}

// An ordinary connection of the same endpoints goes on beside it.
TEST_CASE("contract__multicast__beside_other_connections__harms_none_of_them") {
  EVERY_LAB(lab);
  if (lab.group(0).empty()) return;
  Node& a = lab.add();
  Node& b = lab.add();
  const Connection to_group = member(lab, a, lab.group(0), Attribute::multicast_send);
  static_cast<void>(member(lab, b, lab.group(0), Attribute::multicast_receive));
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  REQUIRE(number_of(*wait_event(lab, b, EventType::receive)) == 1);
  send_until_all_have_one(lab, a, to_group, {&b}, 100);
  // Both ends go with everything in flight.
  REQUIRE(a.endpoint->send(to_group, bytes_of(2), 2) == Status::success);
  a.endpoint.reset();
  lab.pass(10ms);
  b.events.clear();
  b.endpoint.reset();
}

}  // namespace
}  // namespace ccixfer::contract
