// What cards do to memory, and when they let go of it.
#include "tests/unit/rdma/rig.h"

namespace ccixfer::rdma::testing {
namespace {

constexpr uint8_t both = cci::access_read | cci::access_write;

ports::Handle mailbox_of(End& end, Buffer& buffer, size_t registered) {
  rvma::MailboxOptions options;
  options.key = 9;
  REQUIRE(end.memory.mailboxes().open(5, options) == Status::success);
  REQUIRE(end.memory.mailboxes().post(5, buffer, 0) == Status::success);
  if (registered > 0) static_cast<void>(end.memory.register_region(MutableBytes(buffer).first(registered), 0));
  ports::Handle handle;
  handle.kind = ports::HandleKind::mailbox;
  handle.number = 5;
  handle.key = 9;
  return handle;
}

TEST_CASE("rdma__a_put_into_a_mailbox__with_or_without_memory_that_the_card_knows") {
  const size_t size = GENERATE(100u, inline_bytes_max, inline_bytes_max + 1, piece_bytes_max, (9u << 20) + 7);
  const bool registered = GENERATE(true, false);
  CAPTURE(size, registered);
  Rig rig;
  rig.connect();
  Buffer source = filled(size, 1);
  Buffer buffer(size);
  const ports::Handle handle = mailbox_of(rig.b, buffer, registered ? size : 0);
  const ports::Handle local = rig.a.memory.register_region(Bytes(source));
  REQUIRE(rig.a.rma(true, rig.at_a, local, source, handle, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE(rig.a.status_of(1) == Status::success);
  REQUIRE((buffer == source));
  REQUIRE(rig.fabric.totals().read_bytes == (size > inline_bytes_max ? size : 0));
  REQUIRE(rig.fabric.totals().written_bytes == 0);
}

TEST_CASE("rdma__more_puts_than_staging_has_slots__all_arrive") {
  Rig rig;
  rig.connect();
  constexpr size_t size = (2u << 20) + 3;
  constexpr uint64_t count = 20;
  Buffer source = filled(size, 1);
  std::deque<Buffer> buffers(count, Buffer(size));
  rvma::MailboxOptions options;
  options.key = 9;
  const ports::Handle local = rig.a.memory.register_region(Bytes(source));
  for (uint64_t i = 0; i < count; ++i) {
    REQUIRE(rig.b.memory.mailboxes().open(i, options) == Status::success);
    REQUIRE(rig.b.memory.mailboxes().post(i, buffers[i], 0) == Status::success);
    ports::Handle handle;
    handle.kind = ports::HandleKind::mailbox;
    handle.number = i;
    handle.key = 9;
    REQUIRE(rig.a.rma(true, rig.at_a, local, source, handle, i) == Status::success);
  }
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == count; }));
  for (uint64_t i = 0; i < count; ++i) {
    REQUIRE(rig.a.status_of(i) == Status::success);
    REQUIRE((buffers[i] == source));
  }
}

// Whether the card lets go in time is chance: then the writer is told, else its connection ends. The memory is free either way.
TEST_CASE("rdma__a_region_taken_back_in_the_middle_of_a_write__is_not_touched_after") {
  const bool lets_go = GENERATE(true, false);
  const auto seed = static_cast<uint64_t>(GENERATE(1, 2, 3));
  sim::RdmaLinkOptions link;
  link.await_fails_chance = lets_go ? 0 : 1;
  Rig rig(link, {}, seed);
  rig.connect();
  Buffer source = filled(8u << 20, 1);
  auto region = std::make_unique<Buffer>(source.size());
  const ports::Handle handle = rig.b.memory.register_region(*region, both);
  const ports::Handle local = rig.a.memory.register_region(Bytes(source));
  REQUIRE(rig.a.rma(true, rig.at_a, local, source, handle, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.fabric.totals().read_bytes > (1u << 20); }));
  REQUIRE(rig.b.memory.deregister_region(handle) == Status::success);
  region.reset();  // touching it now is an error that the sanitizer sees
  rig.world.wake(rig.b.node);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE(rig.a.status_of(1) == (lets_go ? Status::rma_handle : Status::disconnected));
  REQUIRE(rig.a.sink.disconnected.size() == (lets_go ? 0u : 1u));
  REQUIRE(rig.b.sink.disconnected.size() == (lets_go ? 0u : 1u));
  REQUIRE(rig.fabric.totals().refused == 0);
}

TEST_CASE("rdma__a_region_taken_back_in_the_middle_of_a_read__is_lent_until_the_card_is_done") {
  Rig rig;
  rig.connect();
  Buffer landing(8u << 20);
  auto region = std::make_unique<Buffer>(filled(landing.size(), 1));
  const ports::Handle handle = rig.b.memory.register_region(Bytes(*region));
  const ports::Handle local = rig.a.memory.register_region(MutableBytes(landing), 0);
  REQUIRE(rig.a.rma(false, rig.at_a, local, landing, handle, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.fabric.totals().written_bytes > (1u << 20); }));
  REQUIRE(rig.b.memory.deregister_region(handle) == Status::busy);
  REQUIRE(rig.run([&] { return !rig.b.memory.in_use(handle); }, 1s));
  region.reset();
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE(rig.a.status_of(1) == Status::rma_handle);
  REQUIRE(rig.a.sink.disconnected.empty());
}

// Of our own operations the memory is ours again with the end, though the peer knows its keys.
TEST_CASE("rdma__aborted_with_operations_under_way__each_ends_once_and_no_card_touches_the_memory_after") {
  const bool write = GENERATE(true, false);
  const auto seed = static_cast<uint64_t>(GENERATE(1, 2, 3, 4));
  Rig rig({}, {}, seed);
  rig.connect();
  Buffer region = filled(4u << 20, 1);
  const ports::Handle handle = rig.b.memory.register_region(region, both);
  auto mine = std::make_unique<Buffer>(filled(region.size(), 2));
  const ports::Handle local = rig.a.memory.register_region(*mine, 0);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE(rig.a.rma(write, rig.at_a, local, *mine, handle, i) == Status::success);
  REQUIRE(rig.a.send(rig.at_a, Buffer(10), 99) == Status::success);
  REQUIRE(rig.run([&] { return rig.fabric.totals().read_bytes + rig.fabric.totals().written_bytes > (1u << 20); }));
  rig.a.transport->abort(rig.at_a);
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 6; }));
  REQUIRE(rig.a.memory.deregister_region(local) == Status::success);
  mine.reset();
  rig.pass(100ms);
  REQUIRE(rig.a.sink.completions.size() == 6);
  REQUIRE(rig.a.sink.disconnected.empty());  // it was our own call
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  REQUIRE(rig.b.memory.deregister_region(handle) == Status::success);  // no ticket of it is held
}

TEST_CASE("rdma__the_device_is_lost__everything_ends_and_the_owner_is_told") {
  Rig rig;
  rig.connect();
  Buffer region(8u << 20);
  const ports::Handle handle = rig.b.memory.register_region(region, both);
  Buffer source = filled(region.size(), 2);
  const ports::Handle local = rig.a.memory.register_region(Bytes(source));
  REQUIRE(rig.a.rma(true, rig.at_a, local, source, handle, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.fabric.totals().read_bytes > (1u << 20); }));
  const bool ours = GENERATE(true, false);
  rig.fabric.fail_device(ours ? "a" : "b");
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value() && !rig.b.sink.disconnected.empty(); }));
  rig.pass(10ms);
  // The other end is told nothing: its card waits for the one that is gone.
  REQUIRE(rig.a.status_of(1) == (ours ? Status::disconnected : Status::timed_out));
  REQUIRE(rig.b.sink.disconnected.back().status == (ours ? Status::timed_out : Status::disconnected));
  REQUIRE(rig.a.sink.disconnected.size() == 1);
  REQUIRE(rig.a.sink.devices_failed + rig.b.sink.devices_failed == 1);
  REQUIRE(rig.b.memory.deregister_region(handle) == Status::success);
}

TEST_CASE("rdma__the_peers_host_crashes__its_card_answers_no_more_and_the_operation_ends") {
  Rig rig;
  rig.connect();
  Buffer region(8u << 20);
  const ports::Handle handle = rig.b.memory.register_region(region, both);
  Buffer source = filled(region.size(), 2);
  const ports::Handle local = rig.a.memory.register_region(Bytes(source));
  REQUIRE(rig.a.rma(true, rig.at_a, local, source, handle, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.fabric.totals().read_bytes > (1u << 20); }));
  rig.world.crash(rig.b.node);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }, 60s));
  REQUIRE(rig.a.status_of(1) == Status::timed_out);
}

TEST_CASE("rdma__a_short_receive_queue__senders_wait_and_nothing_is_lost") {
  sim::RdmaLinkOptions link;
  link.receives = 4;
  Rig rig(link);
  rig.connect();
  std::vector<std::unique_ptr<RawPeer>> idle;  // others have a part of it too
  for (uint64_t i = 0; i < 200; ++i) REQUIRE(rig.a.send(rig.at_a, filled(8000, i), i) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 200; }));
  for (uint64_t i = 0; i < 200; ++i) REQUIRE((rig.b.sink.messages[i] == filled(8000, i)));
}

TEST_CASE("rdma__a_message_without_a_receive_buffer__is_tried_again_in_order") {
  Rig rig;
  rig.connect();
  rig.b.sink.buffers = 2;
  for (uint64_t i = 0; i < 10; ++i) REQUIRE(rig.a.send(rig.at_a, filled(100, i), i) == Status::success);
  rig.pass(20ms);
  REQUIRE(rig.a.sink.completions.size() == 2);
  rig.b.sink.buffers = SIZE_MAX;
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 10; }));
  for (uint64_t i = 0; i < 10; ++i) REQUIRE((rig.b.sink.messages[i] == filled(100, i)));
}

TEST_CASE("rdma__a_transport_is_destroyed__its_peers_hear_the_goodbye") {
  Rig rig;
  rig.connect();
  rig.a.stop();
  REQUIRE(rig.run([&] { return !rig.b.sink.disconnected.empty(); }, 1s));
  REQUIRE(rig.b.sink.disconnected.back().status == Status::disconnected);
  REQUIRE(rig.b.sink.disconnected.back().reason != "the peer has closed the connection");
}

TEST_CASE("rdma__local_memory_that_is_not_registered__is_refused_before_anything_goes_out") {
  Rig rig;
  rig.connect();
  Buffer source(inline_bytes_max + 1);
  ports::RmaRequest request;
  request.source = source;
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 1) == Status::invalid);
}

TEST_CASE("rdma__an_end_that_nobody_can_reach__is_told") {
  Rig rig;
  const auto dial = [&](std::string_view uri) {
    ports::DialRequest request;
    request.uri = uri;
    REQUIRE(rig.a.transport->dial(request));
    rig.world.wake(rig.a.node);
    const size_t before = rig.a.sink.connected.size();
    REQUIRE(rig.run([&] { return rig.a.sink.connected.size() > before; }));
    return rig.a.sink.connected.back().status;
  };
  REQUIRE(dial("sim-rdma://b:2") == Status::refused);
  REQUIRE(dial("sim-rdma://nowhere:1") == Status::not_found);
  rig.fabric.cut("b");
  REQUIRE(dial("sim-rdma://b:1") == Status::unreachable);
  ports::DialRequest malformed;
  malformed.uri = "sim://b:1";
  REQUIRE_FALSE(rig.a.transport->dial(malformed));
}

}  // namespace
}  // namespace ccixfer::rdma::testing
