// Points 12 to 16: ends, events, keepalive.

#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

TEST_CASE("contract__disconnect__what_was_sent_before_arrives_then_the_peer_learns") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(3u << 20);
  auto source = pattern(target.size(), 1);
  const Handle local = a.memory->register_region(source, cci::access_read);
  const Handle remote = b.memory->register_region(target, cci::access_write);
  for (uint32_t i = 0; i < 50; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  cci::RmaOptions write;
  write.local = local;
  write.remote.handle = remote;
  write.length_bytes = target.size();
  write.context = 500;
  REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
  a.endpoint->disconnect(pair.at_dialler);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(0), 1) == Status::not_found);
  const auto gone = wait_event(lab, b, EventType::disconnected);
  REQUIRE(gone);
  REQUIRE(gone->status == Status::disconnected);
  REQUIRE(gone->connection == pair.at_acceptor);
  REQUIRE(gone->context == 7);
  REQUIRE(b.count(EventType::receive) == 50);
  REQUIRE((target == source));
  for (uint32_t i = 0; i < 50; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
  REQUIRE(wait_send(lab, a, 500) == Status::success);
  REQUIRE_FALSE(a.has(EventType::disconnected));
  REQUIRE(b.endpoint->send(pair.at_acceptor, bytes_of(0), 1) != Status::success);
}

TEST_CASE("contract__peer_disconnects__operations_in_flight_fail_with_disconnected") {
  EVERY_LAB(lab);
  NodeOptions none;
  none.endpoint.receive_buffers = 1;
  Node& a = lab.add();
  Node& b = lab.add(none);
  const Pair pair = connect(lab, a, b);
  for (uint32_t i = 0; i < 5; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  REQUIRE(wait_send(lab, a, 0) == Status::success);  // the others find no buffer
  b.endpoint->disconnect(pair.at_acceptor);
  for (uint32_t i = 1; i < 5; ++i) REQUIRE(wait_send(lab, a, i) == Status::disconnected);
  const auto gone = wait_event(lab, a, EventType::disconnected);
  REQUIRE(gone);
  REQUIRE_FALSE(b.has(EventType::disconnected));
}

TEST_CASE("contract__both_disconnect_at_once_with_traffic__everything_ends") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  for (uint32_t i = 0; i < 50; ++i) {
    REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
    REQUIRE(b.endpoint->send(pair.at_acceptor, bytes_of(i), i) == Status::success);
  }
  a.endpoint->disconnect(pair.at_dialler);
  b.endpoint->disconnect(pair.at_acceptor);
  REQUIRE(lab.run([&] { return a.count(EventType::send) == 50 && b.count(EventType::send) == 50; }, 5s));
}

TEST_CASE("contract__endpoint_destroyed_with_everything_in_flight__the_peer_learns") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(8u << 20);
  auto source = pattern(target.size(), 1);
  const Handle local = b.memory->register_region(source, cci::access_read);
  const Handle remote = a.memory->register_region(target, cci::access_write);
  cci::RmaOptions write;
  write.local = local;
  write.remote.handle = remote;
  write.length_bytes = target.size();
  REQUIRE(b.endpoint->rma(pair.at_acceptor, write) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(lab.run([&] { return a.counters->get(Counter::bytes_in) > (1u << 20); }));
  b.events.clear();
  b.endpoint.reset();
  const auto gone = wait_event(lab, a, EventType::disconnected);
  REQUIRE(gone);
  REQUIRE(gone->status == Status::disconnected);
  REQUIRE(a.count(EventType::send) == 1);  // one way or the other
}

TEST_CASE("contract__events_returned_in_any_order_also_after_the_endpoint") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 4;
  Node& a = lab.add();
  Node& b = lab.add(few);
  const Pair pair = connect(lab, a, b);
  for (uint32_t i = 0; i < 4; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  REQUIRE(lab.run([&] { return b.count(EventType::receive) == 4; }));
  std::vector<Event> held;
  while (auto event = b.take(EventType::receive)) held.push_back(std::move(*event));
  held.erase(held.begin() + 2);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(4), 4) == Status::success);
  const auto fifth = wait_event(lab, b, EventType::receive);
  REQUIRE(fifth);
  b.endpoint.reset();
  uint32_t value = 0;
  std::memcpy(&value, fifth->data().data(), sizeof value);
  REQUIRE(value == 4);
  held.clear();
}

TEST_CASE("contract__dead_peer__the_connection_is_lost_with_timed_out") {
  EVERY_LAB(lab);
  NodeOptions options;
  options.transport.keepalive = 2s;
  Node& a = lab.add(options);
  Node& b = lab.add(options);
  const Pair pair = connect(lab, a, b);
  lab.pass(60s);  // idle is not dead
  REQUIRE_FALSE(a.has(EventType::disconnected));
  b.frozen = true;
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  lab.pass(4s);
  REQUIRE_FALSE(a.has(EventType::disconnected));
  lab.pass(10s);
  const auto gone = wait_event(lab, a, EventType::disconnected);
  REQUIRE(gone);
  REQUIRE(gone->status == Status::timed_out);
  REQUIRE(a.count(EventType::send) == 1);
  REQUIRE(a.take(EventType::send)->status != Status::success);
}

TEST_CASE("contract__keepalive_asked_for__one_event_and_the_connection_stays") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  a.endpoint->set_keepalive(pair.at_dialler, 1s);
  lab.pass(30s);
  REQUIRE_FALSE(a.has(EventType::keepalive_timed_out));
  b.frozen = true;
  lab.pass(60s);
  REQUIRE(a.count(EventType::keepalive_timed_out) == 1);
  REQUIRE_FALSE(a.has(EventType::disconnected));
  const auto event = a.take(EventType::keepalive_timed_out);
  REQUIRE(event->connection == pair.at_dialler);
}

TEST_CASE("contract__get_event_without_any__answers_at_once") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  REQUIRE_FALSE(a.endpoint->get_event());
}

TEST_CASE("contract__os_handle__readable_when_there_is_something_to_do") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  if (a.endpoint->os_handle() < 0) return;  // the simulated world turns whom it concerns
  const Pair pair = connect(lab, a, b);
  lab.pass(1ms);
  REQUIRE_FALSE(readable(a, 0));
  REQUIRE_FALSE(readable(b, 0));
  for (int i = 0; i < 2; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(a.endpoint->arm_os_handle() == Status::success);
  REQUIRE(readable(a, 1000));  // a call from above is work for the next turn, at least behind another
  b.frozen = true;
  lab.pass(1ms);
  REQUIRE(readable(b, 10000));  // a message has come
  REQUIRE_FALSE(readable(a, 0));
}

// A loop of somebody else arms once, sends from elsewhere, and sleeps until the answer comes.
TEST_CASE("contract__armed_os_handle__tells_of_the_answer_to_what_was_sent_since") {
  EVERY_LAB(lab);
  NodeOptions options;
  options.transport.keepalive = Duration{0};  // nothing else wakes it
  Node& a = lab.add(options);
  Node& b = lab.add(options);
  if (a.endpoint->os_handle() < 0) return;  // the simulated world turns whom it concerns
  if (lab.routed()) return;                 // a message goes out in a turn only
  const Pair pair = connect(lab, a, b);
  lab.pass(1ms);
  REQUIRE(a.endpoint->arm_os_handle() == Status::success);
  REQUIRE_FALSE(readable(a, 0));
  a.frozen = true;
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  if (readable(a, 0)) return;  // nor does it over this transport, whose handle asks for one
  REQUIRE(lab.run([&] { return b.has(EventType::receive); }));
  REQUIRE(b.endpoint->send(pair.at_acceptor, bytes_of(2), 2) == Status::success);
  lab.pass(1ms);
  REQUIRE(readable(a, 10000));
}

TEST_CASE("contract__bad_arguments__answered_never_a_crash") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->send({}, bytes_of(1), 1) == Status::not_found);
  REQUIRE(a.endpoint->send({7, 7}, bytes_of(1), 1) == Status::not_found);
  REQUIRE(a.endpoint->send({0xffffffff, 0xffffffff}, bytes_of(1), 1) == Status::not_found);
  REQUIRE(a.endpoint->send(pair.at_dialler, Bytes{static_cast<const std::byte*>(nullptr), 5}, 1) == Status::invalid);
  a.endpoint->disconnect({7, 7});
  a.endpoint->set_send_timeout({7, 7}, 1s);
  a.endpoint->set_keepalive({7, 7}, 1s);
  REQUIRE(a.endpoint->hops({7, 7}).empty());
  REQUIRE(a.endpoint->max_send_bytes({7, 7}) == 0);
  Event nothing;
  REQUIRE(a.endpoint->accept(nothing, 1) == Status::invalid);
  REQUIRE(a.endpoint->reject(nothing) == Status::invalid);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::success);
}

TEST_CASE("contract__a_connection_after_another_in_the_same_place__stale_ids_find_nothing") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair first = connect(lab, a, b);
  a.endpoint->disconnect(first.at_dialler);
  REQUIRE(wait_event(lab, b, EventType::disconnected));
  lab.pass(10ms);
  const Pair second = connect(lab, a, b);
  REQUIRE_FALSE(second.at_dialler == first.at_dialler);
  REQUIRE(a.endpoint->send(first.at_dialler, bytes_of(1), 1) == Status::not_found);
  REQUIRE(b.endpoint->send(first.at_acceptor, bytes_of(1), 1) == Status::not_found);
  REQUIRE(a.endpoint->send(second.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::success);
}

}  // namespace
}  // namespace ccixfer::contract
