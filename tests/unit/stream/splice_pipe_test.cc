// Arrivals with a splice pipe: what comes leaves again without having been in the memory, in every mix of what arrives, what leaves
// and how much the splice pipe holds.
#include <random>

#include "tests/unit/stream/rig.h"
#include "transports/stream/buffer_splice_pipe.h"

using namespace ccixfer;
using namespace ccixfer::stream;
using namespace ccixfer::stream::testing;

namespace {

constexpr size_t chunk_bytes = chunk_bytes_min;

// b reads from a into `between`, and passes on to a what comes: by a write of its own, or read by a from a region of b's.
struct Passing {
  Rig rig;
  Buffer source;
  Buffer between, target;
  BufferSplicePipe splice_pipe;
  ports::FillProgress fill;
  ports::Handle read_from;

  explicit Passing(size_t size, size_t room) : source(filled(size, 3)), between(size), target(size), splice_pipe(room) {
    rig.connect();
    fill.splice_pipe = &splice_pipe;
    fill.once = true;
  }
  void read() {
    ports::RmaRequest request;
    request.write = false;
    request.remote.handle = read_from = rig.a.memory.register_region(Bytes(source));
    request.destination = between;
    request.fill = &fill;
    REQUIRE(rig.b.transport->rma(rig.at_b, request, 1) == Status::success);
  }
  void write_on() {
    ports::RmaRequest request;
    request.remote.handle = rig.a.memory.register_region(MutableBytes(target), cci::access_write);
    request.source = between;
    request.fill = &fill;
    REQUIRE(rig.b.transport->rma(rig.at_b, request, 2) == Status::success);
  }
  void let_read() {
    ports::RmaRequest request;
    request.write = false;
    request.remote.handle = rig.b.memory.register_filling(Bytes(between), &fill);
    request.destination = target;
    REQUIRE(rig.a.transport->rma(rig.at_a, request, 3) == Status::success);
  }
  // Turns both until what leaves has ended; who passes it on looks at the arrival after each.
  bool run(End& end, uint64_t token) {
    return rig.run([&] {
      fill.complete = rig.b.status_of(1) == Status::success;
      rig.b.transport->resume(rig.at_b);
      return end.status_of(token).has_value();
    });
  }
};

}  // namespace

TEST_CASE("splice_pipe__a_read_passed_on_by_a_write__does_not_touch_the_memory") {
  Passing p(4 * chunk_bytes, 8 * chunk_bytes);
  p.read();
  p.write_on();
  REQUIRE(p.run(p.rig.b, 2));
  REQUIRE(p.rig.b.status_of(2) == Status::success);
  REQUIRE((p.target == p.source));
  REQUIRE(p.fill.passed_bytes >= p.source.size() - staging_bytes);  // all but what came with the first header
  const Buffer nothing(p.between.size() - staging_bytes);
  REQUIRE(std::equal(nothing.begin(), nothing.end(), p.between.begin() + staging_bytes));
}

TEST_CASE("splice_pipe__a_read_passed_on_to_a_reader__does_not_touch_the_memory") {
  Passing p(4 * chunk_bytes, 8 * chunk_bytes);
  p.read();
  p.let_read();
  REQUIRE(p.run(p.rig.a, 3));
  REQUIRE(p.rig.a.status_of(3) == Status::success);
  REQUIRE((p.target == p.source));
  REQUIRE(p.fill.passed_bytes >= p.source.size() - staging_bytes);
}

TEST_CASE("splice_pipe__without_room_for_more__the_memory_has_all_that_has_not_left") {
  const size_t room = GENERATE(size_t{1000}, chunk_bytes / 2, 2 * chunk_bytes);
  Passing p(4 * chunk_bytes, room);
  p.read();
  REQUIRE(p.rig.run([&] { return p.rig.b.status_of(1).has_value(); }));  // nothing leaves meanwhile
  REQUIRE(p.fill.splice_pipe == nullptr);
  REQUIRE(p.fill.passed_bytes == 0);
  REQUIRE((p.between == p.source));
  p.write_on();
  REQUIRE(p.run(p.rig.b, 2));
  REQUIRE((p.target == p.source));
}

TEST_CASE("splice_pipe__any_room_any_pieces_any_neighbours__what_leaves_is_what_came") {
  std::mt19937_64 random(11);
  uint64_t passed = 0, left = 0;
  for (int i = 0; i < 60; ++i) {
    INFO("round " << i);
    Passing p(1 + random() % (3 * chunk_bytes), 1 + random() % (2 * chunk_bytes));
    p.rig.hub.recv_max = 1 + random() % 100'000;
    p.rig.hub.send_max = 1 + random() % 100'000;
    p.rig.hub.capacity = 1000 + random() % 200'000;
    p.read();
    const bool by_write = random() % 2 == 0;
    by_write ? p.write_on() : p.let_read();
    for (uint64_t message = 0; message < 10; ++message) {
      REQUIRE(p.rig.send(p.rig.a, p.rig.at_a, filled(1 + random() % 2000, 9), 100 + message) == Status::success);
    }
    Buffer other = filled(1 + random() % 50'000, 5), got(other.size());
    ports::RmaRequest beside;
    beside.write = false;
    beside.remote.handle = p.rig.a.memory.register_region(Bytes(other));
    beside.destination = got;
    REQUIRE(p.rig.b.transport->rma(p.rig.at_b, beside, 4) == Status::success);
    REQUIRE(p.run(by_write ? p.rig.b : p.rig.a, by_write ? 2 : 3));
    REQUIRE((p.target == p.source));
    REQUIRE(p.rig.run([&] { return p.rig.b.status_of(4) && p.rig.a.status_of(109); }));
    REQUIRE((got == other));
    passed += p.fill.passed_bytes;
    left += p.fill.splice_pipe == nullptr ? 1 : 0;
  }
  REQUIRE(passed > 0);
  REQUIRE(left > 0);
  REQUIRE(left < 60);
}

TEST_CASE("splice_pipe__the_region_is_withdrawn_with_bytes_in_it__only_the_read_fails") {
  Passing p(2 * chunk_bytes, 8 * chunk_bytes);
  p.read();
  REQUIRE(p.rig.run([&] { return p.rig.b.status_of(1).has_value(); }));
  const size_t held_bytes = p.splice_pipe.held_bytes();
  REQUIRE(held_bytes > chunk_bytes);
  p.rig.hub.capacity = 5000;
  const ports::Handle handle = p.rig.b.memory.register_filling(Bytes(p.between), &p.fill);
  ports::RmaRequest request;
  request.write = false;
  request.remote.handle = handle;
  request.destination = p.target;
  REQUIRE(p.rig.a.transport->rma(p.rig.at_a, request, 3) == Status::success);
  REQUIRE(p.rig.run([&] { return p.splice_pipe.held_bytes() < held_bytes; }));
  REQUIRE(p.rig.b.memory.deregister_region(handle) == Status::success);
  REQUIRE(p.rig.run([&] { return p.rig.a.status_of(3).has_value(); }));
  REQUIRE(p.rig.a.status_of(3) == Status::rma_handle);
  REQUIRE(p.rig.send(p.rig.a, p.rig.at_a, bytes_of("lives"), 7) == Status::success);
  REQUIRE(p.rig.run([&] { return p.rig.a.status_of(7) == Status::success; }));
}

TEST_CASE("splice_pipe__the_source_goes_in_the_middle__no_more_is_promised_than_came") {
  Passing p(3 * chunk_bytes, 8 * chunk_bytes);
  p.rig.hub.capacity = 50'000;
  p.read();
  p.write_on();
  REQUIRE(p.rig.run([&] { return p.fill.placed_bytes > chunk_bytes + 1000; }));
  REQUIRE(p.rig.a.memory.deregister_region(p.read_from) == Status::success);
  REQUIRE(p.rig.run([&] { return p.rig.b.status_of(1).has_value(); }));
  REQUIRE(p.rig.b.status_of(1) == Status::rma_handle);
  p.fill.failed = true;
  REQUIRE(p.run(p.rig.b, 2));
  REQUIRE(p.rig.b.status_of(2) == Status::cancelled);
  REQUIRE(p.rig.send(p.rig.b, p.rig.at_b, bytes_of("lives"), 7) == Status::success);
  REQUIRE(p.rig.run([&] { return p.rig.b.status_of(7) == Status::success; }));
}

// What has left through the splice pipe is nowhere: a second reader would get what the memory held before.
TEST_CASE("splice_pipe__read_once__a_second_reader_and_one_of_a_part_are_refused") {
  Passing p(chunk_bytes, 2 * chunk_bytes);
  ports::RemoteRef at;
  at.handle = p.rig.b.memory.register_filling(Bytes(p.between), &p.fill);
  REQUIRE(p.rig.b.memory.begin_read(1, at, 100).status == Status::rma_op);
  const ports::Admission admission = p.rig.b.memory.begin_read(1, at, p.between.size());
  REQUIRE(admission.status == Status::success);
  REQUIRE(p.rig.b.memory.fill_of(admission.ticket) == &p.fill);
  REQUIRE(p.rig.b.memory.begin_read(1, at, p.between.size()).status == Status::rma_op);
  p.rig.b.memory.end_read(admission.ticket);
  REQUIRE(p.rig.b.memory.begin_read(1, at, p.between.size()).status == Status::rma_op);
}
