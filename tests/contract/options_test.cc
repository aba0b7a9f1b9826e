// Points 3, 6 to 9, 11, 13, 15, 16: flags, options, what get_event and the OS handle say.

#include <type_traits>

#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

// An errno that a system call returned cannot become a status unseen.
static_assert(!std::is_convertible_v<int, Status> && !std::is_convertible_v<Status, int>);

TEST_CASE("contract__decision_on_another_ones_request__is_invalid_and_harms_nothing") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  Node& c = lab.add();
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  auto message = wait_event(lab, b, EventType::receive);
  REQUIRE(message);
  REQUIRE(b.endpoint->accept(*message, 0) == Status::invalid);
  REQUIRE(b.endpoint->reject(*message) == Status::invalid);
  REQUIRE(number_of(*message) == 1);
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(c.endpoint->accept(*request, 0) == Status::invalid);
  REQUIRE(c.endpoint->reject(*request) == Status::invalid);
  REQUIRE(b.endpoint->accept(*request, 0) == Status::success);
  const auto connected = wait_event(lab, a, EventType::connect);
  REQUIRE(connected);
  REQUIRE(connected->status == Status::success);
}

TEST_CASE("contract__no_copy__arrives_whole_and_completes") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const auto data = pattern(1000, 3);
  const Bytes part(data);
  cci::SendOptions options;
  options.context = 5;
  options.no_copy = true;
  REQUIRE(a.endpoint->send(pair.at_dialler, {&part, 1}, options) == Status::success);
  REQUIRE(wait_send(lab, a, 5) == Status::success);
  const auto received = b.take(EventType::receive);
  REQUIRE(received);
  REQUIRE(std::equal(data.begin(), data.end(), received->data().begin(), received->data().end()));
}

// Without NO_COPY the memory is the application's again when send returns, however long the message waits: for a fence, or for a
// receive buffer of the peer's.
TEST_CASE("contract__sent_memory_written_over_at_once__what_was_sent_arrives") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 2;
  Node& a = lab.add();
  Node& b = lab.add(few);
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(1u << 20);
  const auto source = pattern(target.size(), 1);
  cci::RmaOptions write;
  write.local = a.memory->register_region(Bytes(source));
  write.remote.handle = b.memory->register_region(target, cci::access_write);
  write.length_bytes = target.size();
  write.context = 100;
  std::vector<std::byte> message(600);
  constexpr uint32_t count = 20;
  for (uint32_t i = 0; i < count; ++i) {
    if (i == count / 2) {
      write.fence = true;
      REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
    }
    message = pattern(message.size(), 50 + i);
    REQUIRE(a.endpoint->send(pair.at_dialler, Bytes(message), i) == Status::success);
    std::fill(message.begin(), message.end(), std::byte{0xdd});
  }
  uint32_t next = 0;
  bool same = true;
  REQUIRE(lab.run([&] {
    while (const auto event = b.take(EventType::receive)) {
      const auto expected = pattern(message.size(), 50 + next++);
      same = same && std::equal(expected.begin(), expected.end(), event->data().begin(), event->data().end());
    }
    return next == count;
  }));
  REQUIRE(same);
  for (uint32_t i = 0; i < count; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
  REQUIRE(wait_send(lab, a, 100) == Status::success);
}

// Completion means the peer's endpoint has it: with every buffer of that endpoint held, it does not come.
TEST_CASE("contract__completion__not_before_the_peers_endpoint_has_the_message") {
  EVERY_LAB(lab);
  NodeOptions one;
  one.endpoint.receive_buffers = 1;
  Node& a = lab.add();
  Node& b = lab.add(one);
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(0), 0) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(wait_send(lab, a, 0) == Status::success);
  lab.pass(2s);
  REQUIRE_FALSE(a.has(EventType::send));
  REQUIRE(b.count(EventType::receive) == 1);
  b.events.clear();
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  REQUIRE(b.count(EventType::receive) == 1);
}

TEST_CASE("contract__silent_operations_that_fail__are_told") {
  EVERY_LAB(lab);
  NodeOptions one;
  one.endpoint.receive_buffers = 1;
  Node& a = lab.add();
  Node& b = lab.add(one);
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(100);
  auto source = pattern(100, 1);
  cci::RmaOptions write;
  write.local = a.memory->register_region(source, cci::access_read);
  write.remote.handle = b.memory->register_region(target, cci::access_read);  // not to be written
  write.length_bytes = 100;
  write.silent = true;
  write.context = 70;
  REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
  REQUIRE(wait_send(lab, a, 70) == Status::rma_op);
  write.remote.handle = b.memory->register_region(target, cci::access_write);
  write.context = 71;
  REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
  REQUIRE(lab.run([&] { return target == source; }));

  REQUIRE(a.endpoint->set_send_timeout(pair.at_dialler, 1s) == Status::success);
  for (uint32_t i = 0; i < 4; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i, true) == Status::success);
  REQUIRE(lab.run([&] { return a.count(EventType::send) == 3; }));
  for (uint32_t i = 1; i < 4; ++i) {
    const auto event = a.take(EventType::send);
    REQUIRE(event->context == i);
    REQUIRE(event->status == Status::receiver_not_ready);
  }
  lab.pass(100ms);
  REQUIRE_FALSE(a.has(EventType::send));
}

TEST_CASE("contract__reliable_unordered__each_exactly_once") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 5;
  Node& a = lab.add();
  Node& b = lab.add(few);
  cci::ConnectOptions options;
  options.attribute = Attribute::reliable_unordered;
  const Pair pair = connect(lab, a, b, options);
  constexpr uint32_t count = 200;
  std::vector<int> received(count), completed(count);
  uint32_t sent = 0;
  REQUIRE(lab.run([&] {
    while (sent < count && a.endpoint->send(pair.at_dialler, bytes_of(sent), sent) == Status::success) ++sent;
    while (const auto event = a.take(EventType::send)) {
      REQUIRE(event->status == Status::success);
      ++completed[event->context];
    }
    while (const auto event = b.take(EventType::receive)) ++received[number_of(*event)];
    return std::count(completed.begin(), completed.end(), 1) == count;
  }));
  while (const auto event = b.take(EventType::receive)) ++received[number_of(*event)];
  REQUIRE(std::count(received.begin(), received.end(), 1) == count);
}

// A message behind a fence says that all before it is done.
TEST_CASE("contract__message_behind_a_fenced_write__not_before_the_earlier_data") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(4u << 20);
  auto source = pattern(target.size(), 1);
  cci::RmaOptions write;
  write.local = a.memory->register_region(source, cci::access_read);
  write.remote.handle = b.memory->register_region(target, cci::access_write);
  write.length_bytes = target.size();
  write.context = 100;
  REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);  // before the fence: need not wait
  write.length_bytes = 8;
  write.fence = true;
  write.context = 101;
  REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
  for (uint32_t i = 2; i < 6; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  bool early = false;
  REQUIRE(lab.run([&] {
    if (b.count(EventType::receive) > 1) early = early || !(target == source);
    return b.count(EventType::receive) == 5;
  }));
  REQUIRE_FALSE(early);
  for (uint32_t i = 1; i < 6; ++i) REQUIRE(number_of(*b.take(EventType::receive)) == i);
  REQUIRE(wait_send(lab, a, 5) == Status::success);
  REQUIRE(wait_send(lab, a, 101) == Status::success);
}

TEST_CASE("contract__get_event_status__again_and_no_buffers_when_all_are_held") {
  EVERY_LAB(lab);
  NodeOptions two;
  two.endpoint.receive_buffers = 2;
  Node& a = lab.add();
  Node& b = lab.add(two);
  const Pair pair = connect(lab, a, b);
  Event event;
  REQUIRE(b.endpoint->get_event(event) == Status::again);
  for (uint32_t i = 0; i < 3; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(i), i) == Status::success);
  REQUIRE(lab.run([&] { return b.count(EventType::receive) == 2; }));
  REQUIRE(b.endpoint->get_event(event) == Status::no_buffers);
  b.events.pop_front();
  REQUIRE(b.endpoint->get_event(event) == Status::again);
  REQUIRE(wait_event(lab, b, EventType::receive));
}

TEST_CASE("contract__options__what_was_set_is_got_and_nonsense_is_invalid") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  Endpoint& endpoint = *a.endpoint;
  REQUIRE(endpoint.set_send_timeout(0s) == Status::invalid);
  REQUIRE(endpoint.set_send_timeout(3s) == Status::success);
  REQUIRE(endpoint.set_keepalive(-1s) == Status::invalid);
  REQUIRE(endpoint.set_keepalive(9s) == Status::success);
  REQUIRE(endpoint.set_receive_buffers(0) == Status::invalid);
  REQUIRE(endpoint.set_receive_buffers(3) == Status::success);
  REQUIRE(endpoint.set_send_buffers(0) == Status::invalid);
  REQUIRE(endpoint.set_send_buffers(5) == Status::success);
  REQUIRE(endpoint.send_timeout() == 3s);
  REQUIRE(endpoint.keepalive() == 9s);
  REQUIRE(endpoint.receive_buffers() == 3);
  REQUIRE(endpoint.send_buffers() == 5);
  REQUIRE(Endpoint::rma_alignment().length_bytes >= 1);
  REQUIRE_FALSE(endpoint.uri().empty());

  const Pair pair = connect(lab, a, b);
  REQUIRE(endpoint.send_timeout(pair.at_dialler) == Duration(3s));
  REQUIRE(endpoint.keepalive(pair.at_dialler) == Duration(9s));
  REQUIRE(b.endpoint->send_timeout(pair.at_acceptor) == forever);
  REQUIRE(b.endpoint->keepalive(pair.at_acceptor) == Duration(0s));
  REQUIRE(endpoint.set_send_timeout(pair.at_dialler, 0s) == Status::invalid);
  REQUIRE(endpoint.set_keepalive(pair.at_dialler, -1s) == Status::invalid);
  REQUIRE(endpoint.set_send_timeout({7, 7}, 1s) == Status::not_found);
  REQUIRE(endpoint.set_keepalive({7, 7}, 1s) == Status::not_found);
  REQUIRE_FALSE(endpoint.send_timeout({7, 7}));
  REQUIRE_FALSE(endpoint.keepalive({7, 7}));
  REQUIRE(endpoint.set_send_timeout(pair.at_dialler, 5s) == Status::success);
  REQUIRE(endpoint.send_timeout(pair.at_dialler) == Duration(5s));

  // They bound what they say they bound.
  uint32_t accepted = 0;
  while (endpoint.send(pair.at_dialler, bytes_of(accepted), accepted) == Status::success) ++accepted;
  REQUIRE(accepted == 5);
  for (uint32_t i = 0; i < 5; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
  for (uint32_t i = 0; i < 6; ++i) REQUIRE(b.endpoint->send(pair.at_acceptor, bytes_of(i), i) == Status::success);
  lab.pass(200ms);
  REQUIRE(a.count(EventType::receive) == 3);
  REQUIRE(endpoint.set_receive_buffers(6) == Status::success);
  REQUIRE(lab.run([&] { return a.count(EventType::receive) == 6; }));
}

TEST_CASE("contract__endpoint_send_timeout__holds_for_new_connections") {
  EVERY_LAB(lab);
  NodeOptions patient, one;
  patient.endpoint.send_timeout = 1s;
  one.endpoint.receive_buffers = 1;
  Node& a = lab.add(patient);
  Node& b = lab.add(one);
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(0), 0) == Status::success);
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);
  REQUIRE(wait_send(lab, a, 0) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::receiver_not_ready);
}

TEST_CASE("contract__keepalive_event__the_option_is_zero_and_the_thawed_peer_is_served") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  REQUIRE(a.endpoint->set_keepalive(pair.at_dialler, 1s) == Status::success);
  REQUIRE(a.endpoint->keepalive(pair.at_dialler) == Duration(1s));
  b.frozen = true;
  lab.pass(10s);
  REQUIRE(a.count(EventType::keepalive_timed_out) == 1);
  REQUIRE(a.endpoint->keepalive(pair.at_dialler) == Duration(0s));
  b.frozen = false;
  REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(5), 5) == Status::success);
  REQUIRE(wait_send(lab, a, 5) == Status::success);
  REQUIRE(b.count(EventType::receive) == 1);
}

// A process that did other things for a while, or had nothing to do, and then calls: what the call begins counts from now on.
TEST_CASE("contract__after_long_idleness__accepting_and_watching_have_their_whole_time") {
  EVERY_LAB(lab);
  NodeOptions options;
  options.transport.keepalive = 0s;
  options.transport.handshake_timeout = 1000s;
  Node& a = lab.add(options);
  Node& b = lab.add(options);
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  std::optional<Event> request = wait_event(lab, b, EventType::connect_request);
  REQUIRE(request);
  const Duration idle = lab.routed() ? 15s : 60s;  // a router gives up who is silent for longer
  b.frozen = true;
  lab.pass(idle);
  REQUIRE(b.endpoint->accept(*request, 7) == Status::success);
  request.reset();
  b.frozen = false;
  const std::optional<Event> accepted = wait_event(lab, b, EventType::accept);
  REQUIRE(accepted);
  REQUIRE(accepted->status == Status::success);
  REQUIRE(wait_event(lab, a, EventType::connect));
  lab.pass(1s);
  b.frozen = true;
  lab.pass(idle);
  REQUIRE(b.endpoint->set_keepalive(accepted->connection, 10s) == Status::success);
  b.frozen = false;
  lab.pass(30s);
  REQUIRE_FALSE(b.has(EventType::keepalive_timed_out));
  REQUIRE_FALSE(b.has(EventType::disconnected));
}

// Nothing that happens between the last event taken and arming is lost: the handle is readable for it.
TEST_CASE("contract__armed_os_handle__readable_for_what_came_before_and_after") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  if (a.endpoint->os_handle() < 0) return;  // the simulated world turns whom it concerns
  const Pair pair = connect(lab, a, b);
  lab.pass(1ms);
  REQUIRE(a.endpoint->arm_os_handle() == Status::success);
  REQUIRE_FALSE(readable(a, 0));
  for (int i = 0; i < 2; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, bytes_of(1), 1) == Status::success);  // since the last turn
  REQUIRE(a.endpoint->arm_os_handle() == Status::success);
  REQUIRE(readable(a, 1000));
  // The network: the message comes to b before it arms, and while it waits.
  b.frozen = true;
  lab.pass(1ms);
  REQUIRE(b.endpoint->arm_os_handle() == Status::success);
  REQUIRE(readable(b, 10000));
  b.frozen = false;
  b.collects = false;
  lab.pass(1ms);
  REQUIRE(b.endpoint->arm_os_handle() == Status::again);  // an event waits
  b.collect();
  REQUIRE(b.count(EventType::receive) == 2);
  REQUIRE(b.endpoint->arm_os_handle() == Status::success);
}

}  // namespace
}  // namespace ccixfer::contract
