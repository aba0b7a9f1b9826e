// One conversation, broken in every way at every byte: everything ends, once, and nothing is wrong that was called good.
#include <array>

#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t messages_count = 4;
constexpr uint64_t write_token = 100;
constexpr uint64_t read_token = 101;
constexpr uint64_t bad_token = 102;

// What both ends do: messages both ways (the receiver is short of buffers at first), a write with a completion message, a read, a
// write that is refused, and an orderly end.
struct Conversation {
  Conversation(const ports::TransportOptions& options, bool short_of_buffers) : rig(options) {
    if (short_of_buffers) rig.b.sink.buffers = 2;
  }

  void run() {
    ports::DialRequest dial;
    dial.uri = "mem://b";
    dial.timeout = 20s;
    const auto id = rig.a.transport->dial(dial);
    REQUIRE(id);
    const bool ended = rig.run([&] { return step(*id); }, 600s);
    CAPTURE(ended);
    // Whatever happened: the dial ended, and every operation ended once.
    REQUIRE(rig.a.sink.connected.size() == 1);
    REQUIRE(issued_a.size() == rig.a.sink.completions.size());
    REQUIRE(issued_b.size() == rig.b.sink.completions.size());
    for (const uint64_t token : issued_a) REQUIRE(rig.a.status_of(token));
    REQUIRE_FALSE(rig.a.sink.open);
    REQUIRE_FALSE(rig.b.sink.open);
    REQUIRE(rig.a.sink.disconnected.size() <= 1);
    REQUIRE(rig.b.sink.disconnected.size() <= 1);
    // Messages: whole, in order, a beginning of what was sent; and what completed was delivered.
    size_t plain = 0;
    for (const Buffer& message : rig.b.sink.messages) {
      if (message == announcement) {
        ++announcements;
        if (!payload_hit) REQUIRE((target == source));  // after the data
        continue;
      }
      REQUIRE(message == filled(20 + plain, static_cast<uint8_t>(plain)));
      ++plain;
    }
    for (size_t i = 0; i < messages_count; ++i) {
      if (rig.a.status_of(i) == Status::success) REQUIRE(plain > i);
    }
    REQUIRE(announcements <= 1);
    if (rig.a.status_of(write_token) == Status::success) REQUIRE(announcements == 1);
    if (rig.a.status_of(write_token) == Status::success && !payload_hit) REQUIRE((target == source));
    if (rig.a.status_of(read_token) == Status::success && !payload_hit) REQUIRE((landing == readable));
    if (issued_a.size() > messages_count + 2) REQUIRE(rig.a.status_of(bad_token) != Status::success);
  }

  bool step(ConnectionId id) {
    for (; decided < rig.b.sink.requests.size(); ++decided)
      static_cast<void>(rig.b.transport->accept(rig.b.sink.requests[decided]));
    if (!started_a && !rig.a.sink.connected.empty() && rig.a.sink.connected[0].status == Status::success) start_a(id);
    if (!started_b && !rig.b.sink.accepted.empty() && rig.b.sink.accepted[0].status == Status::success) start_b();
    if (rig.b.sink.buffers == 0 && rig.now > freed + 100ms) {
      rig.b.sink.buffers = 1;  // the application gives one back now and then
      freed = rig.now;
    }
    if (started_a && !left && rig.a.sink.completions.size() == issued_a.size()) {
      rig.a.transport->disconnect(id);
      left = true;
    }
    return false;  // until nothing is left to do
  }

  void start_a(ConnectionId id) {
    started_a = true;
    for (size_t i = 0; i < messages_count; ++i) {
      if (rig.send(rig.a, id, filled(20 + i, static_cast<uint8_t>(i)), i) == Status::success) issued_a.push_back(i);
    }
    ports::RmaRequest write;
    write.remote.handle = rig.b.memory.register_region(target, 2);
    write.source = source;
    write.has_completion_message = true;
    write.completion_message = announcement;
    if (rig.a.transport->rma(id, write, write_token) == Status::success) issued_a.push_back(write_token);
    ports::RmaRequest read;
    read.write = false;
    read.remote.handle = rig.b.memory.register_region(readable, 1);
    read.destination = landing;
    if (rig.a.transport->rma(id, read, read_token) == Status::success) issued_a.push_back(read_token);
    ports::RmaRequest bad = write;
    bad.remote.handle.key ^= 1;
    bad.fence = true;
    if (rig.a.transport->rma(id, bad, bad_token) == Status::success) issued_a.push_back(bad_token);
  }
  void start_b() {
    started_b = true;
    for (size_t i = 0; i < messages_count; ++i) {
      if (rig.send(rig.b, rig.b.sink.accepted[0].id, filled(30, 1), i) == Status::success) issued_b.push_back(i);
    }
  }

  Rig rig;
  Buffer source = filled(150, 1);
  Buffer target = Buffer(150);
  Buffer readable = filled(130, 3);
  Buffer landing = Buffer(130);
  Buffer announcement = bytes_of("it is done");
  std::vector<uint64_t> issued_a, issued_b;
  size_t decided = 0;
  size_t announcements = 0;
  Instant freed{};
  bool started_a = false, started_b = false, left = false;
  bool payload_hit = false;  // RMA data may be damaged: the application seals them
};

ports::TransportOptions quick() {
  ports::TransportOptions options;
  options.keepalive = 1s;
  return options;
}

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
