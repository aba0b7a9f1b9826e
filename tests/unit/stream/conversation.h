// One conversation between the ends of a rig, for tests that break it: whatever happens, everything ends, once, and nothing is
// wrong that was called good.
#pragma once
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {

using namespace std::chrono_literals;

inline constexpr size_t messages_count = 4;
inline constexpr uint64_t write_token = 100;
inline constexpr uint64_t read_token = 101;
inline constexpr uint64_t bad_token = 102;

// What both ends do: messages both ways (the receiver is short of buffers at first), a write with a completion message, a read, a
// write that is refused, and an orderly end.
struct Conversation {
  Conversation(const ports::TransportOptions& options, bool short_of_buffers, Rig::Trust of_a = nullptr, Rig::Trust of_b = nullptr)
      : rig(options, std::move(of_a), std::move(of_b)) {
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

inline ports::TransportOptions quick() {
  ports::TransportOptions options;
  options.keepalive = 1s;
  return options;
}

}  // namespace ccixfer::stream::testing
