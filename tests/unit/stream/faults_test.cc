// One conversation, broken in every way at every byte: everything ends, once, and nothing is wrong that was called good.
#include <array>

#include "tests/unit/stream/conversation.h"

namespace ccixfer::stream::testing {
namespace {

// Bytes that each end writes in an unbroken conversation.
std::array<uint64_t, 2> lengths(bool short_of_buffers) {
  Conversation c(quick(), short_of_buffers);
  c.run();
  REQUIRE(c.issued_a.size() == messages_count + 3);
  REQUIRE(c.rig.a.status_of(write_token) == Status::success);
  REQUIRE(c.rig.a.status_of(read_token) == Status::success);
  REQUIRE(c.rig.a.status_of(bad_token) == Status::rma_handle);
  REQUIRE(c.rig.b.sink.messages.size() == messages_count + 1);
  REQUIRE(c.rig.a.sink.messages.size() == messages_count);
  REQUIRE(c.rig.b.sink.disconnected.size() == 1);
  REQUIRE(c.rig.a.sink.disconnected.empty());
  REQUIRE(c.rig.hub.links.size() == 1);
  for (const auto* end : c.rig.hub.links[0].ends) REQUIRE(end == nullptr);
  return {c.rig.hub.links[0].pipes[0].passed, c.rig.hub.links[0].pipes[1].passed};
}

void break_everywhere(Fault fault, uint8_t mask) {
  const bool short_of_buffers = fault != Fault::flip;  // what is thrown away unread may be damaged unseen
  const auto length = lengths(short_of_buffers);
  uint64_t noticed = 0;
  uint64_t cases = 0;
  for (int from = 0; from < 2; ++from) {
    for (uint64_t at = 0; at < length[static_cast<size_t>(from)]; ++at) {
      CAPTURE(from, at, int{mask});
      Conversation c(quick(), short_of_buffers);
      c.rig.hub.fault = fault;
      c.rig.hub.from = from;
      c.rig.hub.at = at;
      c.rig.hub.mask = mask;
      c.payload_hit = fault == Fault::flip;
      c.run();
      if (!c.rig.hub.happened) continue;
      ++cases;
      const auto count = [&](Counter counter) { return c.rig.a.counters.get(counter) + c.rig.b.counters.get(counter); };
      const bool no_goodbye = !c.rig.b.sink.disconnected.empty() && c.rig.b.sink.disconnected[0].reason != "the peer disconnected";
      const bool lost = no_goodbye || !c.rig.a.sink.disconnected.empty() || c.rig.a.sink.connected.at(0).status != Status::success;
      if (fault == Fault::flip && (count(Counter::frames_rejected) + count(Counter::hello_rejected) > 0 || lost)) ++noticed;
    }
  }
  REQUIRE(cases > 1000);
  // All but those in RMA data: written, refused, read.
  if (fault == Fault::flip) REQUIRE(cases - noticed == 150 + 150 + 130);
}

TEST_CASE("faults__unbroken__all_as_it_should_be") { static_cast<void>(lengths(GENERATE(true, false))); }

TEST_CASE("faults__one_bit_flipped_at_every_byte__noticed_and_everything_ends") {
  break_everywhere(Fault::flip, GENERATE(as<uint8_t>{}, 0x01, 0x80));
}
TEST_CASE("faults__stream_ends_at_every_byte__everything_ends") { break_everywhere(Fault::close, 0); }
TEST_CASE("faults__stream_reset_at_every_byte__everything_ends") { break_everywhere(Fault::reset, 0); }

TEST_CASE("faults__streams_cut_anywhere__the_same_conversation") {
  Conversation c(quick(), true);
  c.rig.hub.recv_max = GENERATE(as<size_t>{}, 1, 2, 3, 7, 64);
  c.rig.hub.send_max = GENERATE(as<size_t>{}, 1, 5, 1000);
  c.rig.hub.capacity = GENERATE(as<size_t>{}, 1, 50, 100000);
  c.run();
  REQUIRE(c.rig.a.status_of(write_token) == Status::success);
  REQUIRE(c.rig.a.status_of(read_token) == Status::success);
  REQUIRE(c.rig.b.sink.messages.size() == messages_count + 1);
}

TEST_CASE("faults__large_operations_over_narrow_pipes__right_bytes") {
  Rig rig;
  rig.hub.capacity = GENERATE(as<size_t>{}, 1000, 70000, 1000000);
  rig.connect();
  Buffer source = filled(900'000, 1);
  Buffer target(source.size());
  Buffer back(source.size());
  const ports::Handle handle = rig.b.memory.register_region(target, 3);
  ports::RmaRequest write;
  write.remote.handle = handle;
  write.source = source;
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 1) == Status::success);
  ports::RmaRequest read;
  read.write = false;
  read.fence = true;
  read.remote.handle = handle;
  read.destination = back;
  REQUIRE(rig.a.transport->rma(rig.at_a, read, 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1) && rig.a.status_of(2); }));
  REQUIRE(rig.a.status_of(1) == Status::success);
  REQUIRE(rig.a.status_of(2) == Status::success);
  REQUIRE((target == source));
  REQUIRE((back == source));
}

}  // namespace
}  // namespace ccixfer::stream::testing
