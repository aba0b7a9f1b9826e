// What the target tells the initiator of a put besides the status, over every transport and route: the epoch that it went to, the
// length of the buffer that it was too long for.
#include "tests/contract/rvma_scene.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t long_put = 900'000;  // several fragments on a routed connection

TEST_CASE("contract__rvma_ack__tells_the_epoch_and_not_that_it_is_complete") {
  EVERY_LAB(lab);
  Scene scene(lab, {.threshold = 2});
  std::vector<std::vector<std::byte>> buffers(3, std::vector<std::byte>(long_put));
  for (auto& buffer : buffers) REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  for (uint64_t put = 0; put < 6; ++put) {
    const ports::OperationResult ending = scene.put_ending(0, put % 3 == 0 ? long_put : 10);
    REQUIRE(ending.status == Status::success);
    REQUIRE(ending.epoch() == put / 2);
    REQUIRE_FALSE(ending.buffer_bytes());
    REQUIRE(scene.mailboxes().next_completion().has_value() == (put % 2 == 1));
  }
}

TEST_CASE("contract__rvma_ack_of_a_put_with_a_completion_message__tells_the_epoch") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> first(10), second(long_put);
  REQUIRE(scene.mailboxes().post(number, first, 1) == Status::success);
  REQUIRE(scene.mailboxes().post(number, second, 1) == Status::success);
  REQUIRE(scene.put(0, 0, 10) == Status::success);
  const auto note = pattern(40, 3);
  cci::RmaOptions put;
  put.local = scene.local;
  put.remote.handle = scene.remote;
  put.completion_message = Bytes(note);
  put.length_bytes = long_put;
  put.context = 100;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  const ports::OperationResult ending = wait_ending(lab, scene.from, 100);
  REQUIRE(ending.status == Status::success);
  REQUIRE(ending.epoch() == 1u);
  REQUIRE(scene.to.has(EventType::receive));
}

// Sent again under the same name, after its epoch is over: acknowledged again, with the epoch that it went to.
TEST_CASE("contract__rvma_ack_of_a_duplicate__tells_the_epoch_of_the_first") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::vector<std::byte>> buffers(3, std::vector<std::byte>(long_put));
  for (auto& buffer : buffers) REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.put(0, 0, 10) == Status::success);
  cci::RmaOptions put;
  put.local = scene.local;
  put.remote.handle = scene.remote;
  put.remote.put.source = 4711;
  put.remote.put.operation = 9;
  put.length_bytes = long_put;
  for (put.context = 100; put.context < 102; ++put.context) {
    REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
    const ports::OperationResult ending = wait_ending(lab, scene.from, put.context);
    REQUIRE(ending.status == Status::success);
    REQUIRE(ending.epoch() == 1u);
  }
  REQUIRE(scene.mailboxes().epoch(number) == 2u);
}

TEST_CASE("contract__rvma_ack_of_a_held_put__tells_the_epoch_only_if_the_put_did") {
  EVERY_LAB(lab);
  Scene scene(lab, {.threshold = 2, .when_empty = rvma::WhenEmpty::hold, .held_bytes_max = 1u << 20});
  const ports::OperationResult untold = scene.put_ending(0, 1000);
  REQUIRE(untold.status == Status::success);
  REQUIRE_FALSE(untold.epoch());
  const ports::OperationResult told = scene.put_ending(0, 1000, 3);
  REQUIRE(told.status == Status::success);
  REQUIRE(told.epoch() == 3u);
}

TEST_CASE("contract__rvma_too_long__the_refusal_tells_the_length") {
  EVERY_LAB(lab);
  Scene scene(lab, {.retired_max = 1});
  std::vector<std::byte> buffer(300'000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  using Extent = std::pair<uint64_t, uint64_t>;
  for (const auto& [offset, length] : {Extent{0, 300'001}, Extent{300'000, 1}, Extent{1, long_put}}) {
    const ports::OperationResult ending = scene.put_ending(offset, length);
    REQUIRE(ending.status == Status::mailbox_too_long);
    REQUIRE(ending.buffer_bytes() == 300'000u);
    REQUIRE_FALSE(ending.epoch());
  }
  // What is known now fits; of a get, what is there to get.
  const ports::OperationResult fits = scene.put_ending(0, 250'000);
  REQUIRE(fits.status == Status::success);
  REQUIRE_FALSE(fits.buffer_bytes());
  const ports::OperationResult beyond = wait_ending(lab, scene.from, scene.start(false, 0, 249'999, 2));
  REQUIRE(beyond.status == Status::mailbox_too_long);
  REQUIRE(beyond.buffer_bytes() == 250'000u);
  const ports::OperationResult got = wait_ending(lab, scene.from, scene.start(false, 0, 0, 250'000));
  REQUIRE(got.status == Status::success);
  REQUIRE_FALSE(got.epoch());
}

TEST_CASE("contract__rvma_too_long__a_held_put_and_a_managed_mailbox_alike") {
  EVERY_LAB(lab);
  Scene scene(lab, {.placement = rvma::Placement::managed, .when_empty = rvma::WhenEmpty::hold, .held_bytes_max = 1u << 20});
  std::vector<std::byte> buffer(1000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  const ports::OperationResult ending = scene.put_ending(77, 1001);
  REQUIRE(ending.status == Status::mailbox_too_long);
  REQUIRE(ending.buffer_bytes() == 1000u);
}

TEST_CASE("contract__endings_of_other_operations__tell_nothing_besides_the_status") {
  EVERY_LAB(lab);
  Scene scene(lab, {.negative_acks = false});
  std::vector<std::byte> buffer(100), region(100);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  const auto nothing = [](const ports::OperationResult& ending) { return !ending.epoch() && !ending.buffer_bytes(); };
  // A refusal that is withheld tells no length either.
  scene.from.endpoint->set_send_timeout(scene.connection, 300ms);
  const ports::OperationResult withheld = scene.put_ending(0, 101);
  REQUIRE(withheld.status == Status::timed_out);
  REQUIRE(nothing(withheld));
  scene.remote = scene.to.memory->register_region(MutableBytes(region), cci::access_read | cci::access_write);
  REQUIRE(nothing(scene.put_ending(0, 100)));
  REQUIRE(nothing(scene.put_ending(0, 101)));
  REQUIRE(nothing(wait_ending(lab, scene.from, scene.start(false, 0, 0, 100))));
  REQUIRE(scene.from.endpoint->send(scene.connection, Bytes(region), 100) == Status::success);
  const ports::OperationResult sent = wait_ending(lab, scene.from, 100);
  REQUIRE(sent.status == Status::success);
  REQUIRE(nothing(sent));
}

}  // namespace
}  // namespace ccixfer::contract
