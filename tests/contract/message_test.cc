// Points 5 to 9: messages.
#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

TEST_CASE("contract__messages_of_every_size__arrive_whole_and_aligned") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const uint32_t most = a.endpoint->max_send_bytes(pair.at_dialler);
  uint64_t context = 100;
  for (const uint32_t size : {0u, 1u, 7u, 8u, 127u, 128u, 129u, 1407u, 1408u, most - 1, most}) {
    CAPTURE(size);
    auto data = pattern(size, size);
    const std::vector<std::byte> original = data;
    REQUIRE(a.endpoint->send(pair.at_dialler, data, ++context) == Status::success);
    std::fill(data.begin(), data.end(), std::byte{0});  // the buffer is ours again
    const auto received = wait_event(lab, b, EventType::receive);
    REQUIRE(received);
    REQUIRE(same(received->data(), original));
    REQUIRE(received->connection == pair.at_acceptor);
    REQUIRE(received->context == 7);
    REQUIRE(reinterpret_cast<uintptr_t>(received->data().data()) % 8 == 0);
    REQUIRE(wait_send(lab, a, context) == Status::success);
  }
  REQUIRE(a.endpoint->send(pair.at_dialler, pattern(most + 1, 1), 1) == Status::message_size);
}

TEST_CASE("contract__many_messages_both_ways__in_order_once_each_completed_in_order") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  constexpr uint32_t count = 3000;
  struct Side {
    Node& node;
    Connection connection;
    uint32_t sent = 0;
    uint32_t completed = 0;
    uint32_t received = 0;
  };
  Side sides[2] = {{a, pair.at_dialler}, {b, pair.at_acceptor}};
  REQUIRE(lab.run([&] {
    bool all = true;
    for (Side& side : sides) {
      while (side.sent < count) {
        const Status status = side.node.endpoint->send(side.connection, bytes_of(side.sent), side.sent);
        if (status == Status::no_buffers) break;
        REQUIRE(status == Status::success);
        ++side.sent;
      }
      while (const auto event = side.node.take(EventType::send)) {
        REQUIRE(event->status == Status::success);
        REQUIRE(event->context == side.completed++);
      }
      while (const auto event = side.node.take(EventType::receive)) REQUIRE(number_of(*event) == side.received++);
      all = all && side.completed == count && side.received == count;
    }
    return all;
  }));
}

TEST_CASE("contract__silent_sends__no_completion_but_a_later_one_implies_them") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  for (uint32_t i = 0; i < 10; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i, true) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(10), 10) == Status::success);
  REQUIRE(wait_send(lab, a, 10) == Status::success);
  REQUIRE_FALSE(a.has(EventType::send));
  lab.pass(1ms);
  REQUIRE(b.count(EventType::receive) == 11);
}

TEST_CASE("contract__parts__arrive_as_one_message") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const auto first = pattern(5, 1);
  for (const uint32_t more : {100u, 200u}) {  // held in place, and elsewhere
    const auto second = pattern(more, 2);
    const Bytes parts[3] = {first, {}, second};
    REQUIRE(a.endpoint->send(pair.at_dialler, parts, 1) == Status::success);
    const auto received = wait_event(lab, b, EventType::receive);
    REQUIRE(received);
    REQUIRE(received->data().size() == 5 + more);
    REQUIRE(same(received->data().first(5), first));
    REQUIRE(same(received->data().subspan(5), second));
  }
}

TEST_CASE("contract__no_receive_buffer__retried_until_there_is_one_in_order") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 3;
  Node& a = lab.add();
  Node& b = lab.add(few);
  const Pair pair = connect(lab, a, b);
  for (uint32_t i = 0; i < 20; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  lab.pass(500ms);
  REQUIRE(b.count(EventType::receive) == 3);
  uint32_t next = 0;
  REQUIRE(lab.run([&] {
    while (const auto event = b.take(EventType::receive)) REQUIRE(number_of(*event) == next++);
    return next == 20;
  }));
  for (uint32_t i = 0; i < 20; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
}

TEST_CASE("contract__no_receive_buffer_until_the_timeout__all_that_follow_fail_in_order") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 2;
  Node& a = lab.add();
  Node& b = lab.add(few);
  const Pair pair = connect(lab, a, b);
  a.endpoint->set_send_timeout(pair.at_dialler, 2s);
  for (uint32_t i = 0; i < 6; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  lab.pass(1s);
  REQUIRE(a.count(EventType::send) == 2);
  lab.pass(2s);
  uint64_t next = 0;
  REQUIRE(lab.run([&] { return a.count(EventType::send) == 6; }));
  while (const auto event = a.take(EventType::send)) {
    REQUIRE(event->context == next);
    REQUIRE(event->status == (next < 2 ? Status::success : Status::receiver_not_ready));
    ++next;
  }
  // The connection goes on, and what comes now is what is sent now.
  b.events.clear();
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(77), 77) == Status::success);
  const auto received = wait_event(lab, b, EventType::receive);
  REQUIRE(received);
  REQUIRE(number_of(*received) == 77);
  REQUIRE(wait_send(lab, a, 77) == Status::success);
}

TEST_CASE("contract__ordered_and_a_shorter_timeout_behind_a_longer__ends_in_order_of_issue") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  b.frozen = true;
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);  // for as long as it takes
  a.endpoint->set_send_timeout(pair.at_dialler, 500ms);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(2), 2) == Status::success);
  lab.pass(2s);
  REQUIRE(a.count(EventType::send) == 0);
  b.frozen = false;
  REQUIRE(lab.run([&] { return a.count(EventType::send) == 2; }));
  const auto first = a.take(EventType::send);
  REQUIRE((first->context == 1 && first->status == Status::success));
}

TEST_CASE("contract__unreliable__local_completion_and_no_timeout") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 2;
  Node& a = lab.add();
  Node& b = lab.add(few);
  cci::ConnectOptions options;
  options.attribute = Attribute::unreliable;
  const Pair pair = connect(lab, a, b, options);
  a.endpoint->set_send_timeout(pair.at_dialler, 1ms);
  for (uint32_t i = 0; i < 10; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  for (uint32_t i = 0; i < 10; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
  lab.pass(100ms);
  // The others found no buffer, and may be gone.
  REQUIRE((lab.lossy() ? b.count(EventType::receive) <= 2 : b.count(EventType::receive) == 2));
  b.events.clear();
  bool arrived = false;
  for (int tries = 0; !arrived && tries < (lab.lossy() ? 10 : 1); ++tries) {
    REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(99), 99) == Status::success);
    arrived = lab.run([&] {
      const auto received = b.take(EventType::receive);
      return received && number_of(*received) == 99;
    });
  }
  REQUIRE(arrived);
  REQUIRE(a.endpoint->rma(pair.at_dialler, {}) == Status::invalid);
}

TEST_CASE("contract__more_sends_than_may_be_in_flight__no_buffers_then_goes_on") {
  EVERY_NATIVE_LAB(lab);  // the bound of a routed connection is its own
  NodeOptions small;
  small.transport.sends_in_flight_max = 8;
  Node& a = lab.add();
  Node& b = lab.add(small);  // the smaller of both ends counts
  const Pair pair = connect(lab, a, b);
  uint32_t accepted = 0;
  while (a.endpoint->send(pair.at_dialler, bytes_of(accepted), accepted) == Status::success) ++accepted;
  REQUIRE(accepted == 8);
  for (uint32_t i = 0; i < accepted; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(8), 8) == Status::success);
  REQUIRE(wait_send(lab, a, 8) == Status::success);
}

}  // namespace
}  // namespace ccixfer::contract
