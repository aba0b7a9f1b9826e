// Local completion: of a write that asks for it the memory may be used again before the target has answered.
#include "tests/contract/rvma_scene.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

cci::RmaOptions write_of(const Scene& scene, uint64_t length, uint64_t context) {
  cci::RmaOptions write;
  write.local = scene.local;
  write.remote.handle = scene.remote;
  write.length_bytes = length;
  write.local_completion = true;
  write.context = context;
  return write;
}

// Written over as soon as it may be; what was put arrives all the same.
TEST_CASE("contract__local_completion__the_memory_may_be_written_over_at_once") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  const std::vector<std::byte> original = scene.source;
  std::vector<std::byte> buffer(original.size()), region(original.size());
  uint64_t context = 100;
  for (const bool to_mailbox : {true, false}) {
    for (const uint64_t length : {uint64_t{1000}, uint64_t{original.size()}}) {
      scene.source = original;
      if (to_mailbox) REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
      if (!to_mailbox) scene.remote = scene.to.memory->register_region(MutableBytes(region), cci::access_write);
      REQUIRE(scene.from.endpoint->rma(scene.connection, write_of(scene, length, ++context)) == Status::success);
      size_t told = 0;
      bool in_order = true;
      REQUIRE(lab.run([&] {
        while (auto event = scene.from.take(EventType::local_completion)) {
          ++told;
          in_order = in_order && event->context == context && event->connection == scene.connection;
          std::fill(scene.source.begin(), scene.source.end(), std::byte{0xdd});
        }
        in_order = in_order && (told == 1 || !scene.from.has(EventType::send));
        return scene.from.has(EventType::send);
      }));
      REQUIRE(in_order);
      REQUIRE(told == 1);
      REQUIRE(wait_send(lab, scene.from, context) == Status::success);
      const auto& landed = to_mailbox ? buffer : region;
      REQUIRE(std::equal(original.begin(), original.begin() + static_cast<long>(length), landed.begin()));
    }
  }
  REQUIRE_FALSE(scene.from.has(EventType::local_completion));
}

// A stream, or the next router, takes the bytes whether or not the target answers. Datagrams may have to go out again.
TEST_CASE("contract__local_completion__does_not_wait_for_the_target") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> buffer(1000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  scene.to.frozen = true;
  REQUIRE(scene.from.endpoint->rma(scene.connection, write_of(scene, 1000, 100)) == Status::success);
  lab.pass(1s);
  const bool straight_datagrams = lab.lossy() && lab.hops() == 1;
  REQUIRE(scene.from.count(EventType::local_completion) == (straight_datagrams ? 0u : 1u));
  REQUIRE_FALSE(scene.from.has(EventType::send));
  scene.to.frozen = false;
  const ports::OperationResult ending = wait_ending(lab, scene.from, 100);
  REQUIRE(ending.status == Status::success);
  REQUIRE(ending.epoch() == 0u);
  REQUIRE(scene.from.count(EventType::local_completion) == 1);
  REQUIRE(scene.same(buffer.data(), 0, 1000));
}

TEST_CASE("contract__silent_local_completion__one_event_of_success_and_failures_are_told") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> buffer(400'000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  cci::RmaOptions write = write_of(scene, 400'001, 100);
  write.silent = true;
  REQUIRE(scene.from.endpoint->rma(scene.connection, write) == Status::success);
  const ports::OperationResult refused = wait_ending(lab, scene.from, 100);
  REQUIRE(refused.status == Status::mailbox_too_long);
  REQUIRE(refused.buffer_bytes() == 400'000u);
  REQUIRE(scene.from.count(EventType::local_completion) <= 1);
  scene.from.events.clear();
  write.length_bytes = 400'000;
  write.context = 101;
  REQUIRE(scene.from.endpoint->rma(scene.connection, write) == Status::success);
  REQUIRE(lab.run([&] { return scene.from.has(EventType::local_completion) && scene.mailboxes().epoch(number) == 1u; }));
  lab.pass(100ms);
  REQUIRE(scene.from.count(EventType::local_completion) == 1);
  REQUIRE_FALSE(scene.from.has(EventType::send));
}

TEST_CASE("contract__local_completion__of_a_read_is_invalid") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  cci::RmaOptions read = write_of(scene, 10, 100);
  read.write = false;
  read.local = scene.landing_local;
  REQUIRE(scene.from.endpoint->rma(scene.connection, read) == Status::invalid);
}

}  // namespace
}  // namespace ccixfer::contract
