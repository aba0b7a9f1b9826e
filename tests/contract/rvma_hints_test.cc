// Empty buckets: the refusal, then a hint when a buffer is posted, over every transport and route.
#include "tests/contract/rvma_scene.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

TEST_CASE("contract__rvma_hint__comes_once_when_a_buffer_is_posted_and_the_put_then_fits") {
  EVERY_LAB(lab);
  Scene scene(lab, {.hints = true});
  std::vector<std::byte> buffer(300'000);
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    REQUIRE(scene.put(0, 0, 300'000) == Status::mailbox_empty);
    REQUIRE(scene.put(0, 0, 10) == Status::mailbox_empty);
    lab.pass(100ms);
    REQUIRE_FALSE(scene.from.has(EventType::mailbox_ready));
    REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
    const auto hint = wait_event(lab, scene.from, EventType::mailbox_ready);
    REQUIRE(hint);
    REQUIRE(hint->connection == scene.connection);
    REQUIRE(hint->mailbox == number);
    REQUIRE(hint->ending().epoch() == epoch);
    const ports::OperationResult ending = scene.put_ending(0, 300'000);
    REQUIRE(ending.status == Status::success);
    REQUIRE(ending.epoch() == epoch);
    REQUIRE(scene.mailboxes().next_completion());
  }
  lab.pass(100ms);
  REQUIRE_FALSE(scene.from.has(EventType::mailbox_ready));
  REQUIRE_FALSE(scene.to.has(EventType::mailbox_ready));
}

TEST_CASE("contract__rvma_hint__to_everybody_who_was_refused_and_to_nobody_else") {
  EVERY_LAB(lab);
  Scene scene(lab, {.hints = true});
  Node* initiator = &lab.add();
  if (lab.routed()) static_cast<void>(lab.add());
  const Connection connection = connect(lab, *initiator, scene.to).at_dialler;
  const Connection other = connect(lab, scene.from, scene.to).at_dialler;
  cci::RmaOptions put;
  put.local = initiator->memory->register_region(Bytes(scene.source));
  put.remote.handle = scene.remote;
  put.length_bytes = 10;
  put.context = 100;
  REQUIRE(initiator->endpoint->rma(connection, put) == Status::success);
  REQUIRE(wait_send(lab, *initiator, 100) == Status::mailbox_empty);
  put.local = scene.local;
  REQUIRE(scene.from.endpoint->rma(other, put) == Status::success);
  REQUIRE(wait_send(lab, scene.from, 100) == Status::mailbox_empty);
  std::vector<std::byte> buffer(10);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  const auto first = wait_event(lab, *initiator, EventType::mailbox_ready);
  REQUIRE(first);
  REQUIRE(first->connection == connection);
  const auto second = wait_event(lab, scene.from, EventType::mailbox_ready);
  REQUIRE(second);
  REQUIRE(second->connection == other);
  lab.pass(100ms);
  REQUIRE_FALSE(initiator->has(EventType::mailbox_ready));
  REQUIRE_FALSE(scene.from.has(EventType::mailbox_ready));
}

TEST_CASE("contract__rvma_hint__none_where_the_owner_gives_none_or_says_nothing_at_all") {
  EVERY_LAB(lab);
  Scene scene(lab, {.negative_acks = false, .hints = true});
  std::vector<std::byte> buffer(10);
  scene.from.endpoint->set_send_timeout(scene.connection, 100ms);
  REQUIRE(scene.put(0, 0, 10) == Status::timed_out);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.mailboxes().open(number + 1, {}) == Status::success);
  scene.remote = scene.mailboxes().handle(number + 1);
  REQUIRE(scene.put(0, 0, 10) == Status::mailbox_empty);
  REQUIRE(scene.mailboxes().post(number + 1, buffer, 1) == Status::success);
  lab.pass(200ms);
  REQUIRE_FALSE(scene.from.has(EventType::mailbox_ready));
}

}  // namespace
}  // namespace ccixfer::contract
