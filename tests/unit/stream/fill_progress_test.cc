// Memory that is sent on while it is still being filled: no byte before it is there, others pass, and its end tells the truth.
#include "tests/unit/stream/rig.h"

using namespace ccixfer;
using namespace ccixfer::stream;
using namespace ccixfer::stream::testing;

namespace {

constexpr size_t chunk_bytes = chunk_bytes_min;

// b reads from a's region, which fills.
struct Filling {
  Rig rig;
  Buffer source = filled(3 * chunk_bytes + 100, 1);
  Buffer target = Buffer(source.size());
  ports::FillProgress fill, progress;
  ports::Handle handle;

  Filling() {
    rig.a.net->lends_memory = rig.b.net->lends_memory = true;
    rig.connect();
    handle = rig.a.memory.register_filling(Bytes(source), &fill);
  }
  void read() {
    ports::RmaRequest request;
    request.write = false;
    request.remote.handle = handle;
    request.destination = target;
    request.fill = &progress;
    REQUIRE(rig.b.transport->rma(rig.at_b, request, 1) == Status::success);
    rig.settle();
  }
  void write(const ports::Handle& to) {
    ports::RmaRequest request;
    request.remote.handle = to;
    request.source = source;
    request.fill = &fill;
    REQUIRE(rig.a.transport->rma(rig.at_a, request, 1) == Status::success);
    rig.settle();
  }
  void fill_up_to(size_t bytes) {
    fill.placed_bytes = bytes;
    rig.a.transport->resume(rig.at_a);
    rig.settle();
  }
  void complete() {
    fill.complete = true;
    fill_up_to(source.size());
  }
};

}  // namespace

TEST_CASE("arrival__a_read_of_what_fills__chunk_by_chunk_and_the_last_byte_with_the_whole") {
  Filling f;
  f.read();
  REQUIRE(f.progress.placed_bytes == 0);
  f.fill_up_to(chunk_bytes - 1);
  REQUIRE(f.progress.placed_bytes == 0);  // no chunk is promised that is not there
  f.fill_up_to(chunk_bytes);
  REQUIRE(f.progress.placed_bytes == chunk_bytes);
  f.fill_up_to(2 * chunk_bytes + 5);
  REQUIRE(f.progress.placed_bytes == 2 * chunk_bytes);
  f.fill_up_to(f.source.size());
  REQUIRE(f.progress.placed_bytes == 3 * chunk_bytes);  // all is there, and nobody has said that it is good
  REQUIRE_FALSE(f.rig.b.status_of(1));
  f.complete();
  REQUIRE(f.rig.b.status_of(1) == Status::success);
  REQUIRE((f.target == f.source));
}

// A packet that is not full is kept back for what follows at once, and never for what may not come.
TEST_CASE("arrival__chunks__only_one_whose_successor_is_here_says_that_more_follows") {
  const bool write = GENERATE(false, true);
  Filling f;
  const std::vector<bool>& said = f.rig.a.net->said_more;
  write ? f.write(f.rig.b.memory.register_region(MutableBytes(f.target), cci::access_write)) : f.read();
  f.fill_up_to(chunk_bytes);
  REQUIRE(said == std::vector<bool>{false});
  f.fill_up_to(3 * chunk_bytes);
  REQUIRE(said == std::vector<bool>{false, true, false});
  f.complete();
  REQUIRE(said == std::vector<bool>{false, true, false, false});
  REQUIRE((f.target == f.source));
}

TEST_CASE("arrival__while_a_read_waits__messages_and_another_read_pass") {
  Filling f;
  f.read();
  f.fill_up_to(100);
  Buffer other = filled(5000, 7), got(5000);
  ports::RmaRequest request;
  request.write = false;
  request.remote.handle = f.rig.a.memory.register_region(Bytes(other));
  request.destination = got;
  REQUIRE(f.rig.b.transport->rma(f.rig.at_b, request, 2) == Status::success);
  REQUIRE(f.rig.send(f.rig.a, f.rig.at_a, bytes_of("passes"), 3) == Status::success);
  f.rig.settle();
  REQUIRE(f.rig.b.status_of(2) == Status::success);
  REQUIRE((got == other));
  REQUIRE(f.rig.a.status_of(3) == Status::success);
  REQUIRE_FALSE(f.rig.b.status_of(1));
}

TEST_CASE("arrival__the_region_is_withdrawn_while_a_read_waits__the_read_fails") {
  Filling f;
  f.read();
  f.fill_up_to(chunk_bytes + 1);
  REQUIRE(f.rig.a.memory.deregister_region(f.handle) == Status::busy);  // until the next turn
  f.rig.a.transport->resume(f.rig.at_a);
  f.rig.settle();
  REQUIRE(f.rig.b.status_of(1) == Status::rma_handle);
}

TEST_CASE("arrival__a_read_beyond_what_is_there__gets_none_of_what_the_memory_held_before") {
  Filling f;
  f.fill.placed_bytes = 10;
  ports::RemoteRef at;
  at.handle = f.handle;
  at.offset_bytes = 4;
  const ports::Admission admission = f.rig.a.memory.begin_read(1, at, 100);
  REQUIRE(admission.status == Status::success);
  REQUIRE(f.rig.a.memory.read_span(admission.ticket, 0).size() == 6);
  REQUIRE(f.rig.a.memory.read_span(admission.ticket, 50).empty());
  REQUIRE(f.rig.a.memory.read_waits(admission.ticket, 0, 7));
  REQUIRE_FALSE(f.rig.a.memory.read_waits(admission.ticket, 0, 6));
  f.rig.a.memory.end_read(admission.ticket);
}

TEST_CASE("arrival__a_write_of_what_fills__ends_with_the_whole") {
  Filling f;
  f.write(f.rig.b.memory.register_region(MutableBytes(f.target), cci::access_write));
  f.fill_up_to(2 * chunk_bytes);
  REQUIRE((std::equal(f.target.begin(), f.target.begin() + 2 * chunk_bytes, f.source.begin())));
  REQUIRE(f.target[2 * chunk_bytes] == std::byte{0});
  f.fill_up_to(f.source.size());
  REQUIRE_FALSE(f.rig.a.status_of(1));
  f.complete();
  REQUIRE(f.rig.a.status_of(1) == Status::success);
  REQUIRE((f.target == f.source));
}

TEST_CASE("arrival__a_write_whose_rest_does_not_come__is_given_up_and_the_connection_lives") {
  const size_t there = GENERATE(size_t{0}, size_t{100}, chunk_bytes, 2 * chunk_bytes + 1);
  Filling f;
  f.write(f.rig.b.memory.register_region(MutableBytes(f.target), cci::access_write));
  f.fill_up_to(there);
  f.fill.failed = true;
  f.rig.a.transport->resume(f.rig.at_a);
  REQUIRE(f.rig.send(f.rig.a, f.rig.at_a, bytes_of("after"), 3) == Status::success);
  ports::RmaRequest fenced;
  fenced.fence = true;
  Buffer next = filled(1000, 9), next_target(1000);
  fenced.source = next;
  fenced.remote.handle = f.rig.b.memory.register_region(MutableBytes(next_target), cci::access_write);
  REQUIRE(f.rig.a.transport->rma(f.rig.at_a, fenced, 4) == Status::success);
  f.rig.settle();
  const auto status = f.rig.a.status_of(1);
  REQUIRE(status);
  REQUIRE(*status != Status::success);
  REQUIRE(f.rig.a.status_of(3) == Status::success);
  REQUIRE(f.rig.a.status_of(4) == Status::success);
  REQUIRE((next_target == next));
  REQUIRE(f.rig.a.sink.disconnected.empty());
  REQUIRE(f.rig.b.sink.disconnected.empty());
}

TEST_CASE("arrival__a_write_that_the_target_refuses_while_it_waits__ends_at_once") {
  Filling f;
  f.fill.placed_bytes = chunk_bytes;
  f.write(f.rig.b.memory.register_region(Bytes(f.target)));  // read only
  REQUIRE(f.rig.a.status_of(1) == Status::rma_op);
}

TEST_CASE("arrival__the_connection_ends_while_both_wait__both_end") {
  Filling f;
  f.write(f.rig.b.memory.register_region(MutableBytes(f.target), cci::access_write));
  f.read();
  f.fill_up_to(chunk_bytes + 1);
  f.rig.b.transport->disconnect(f.rig.at_b);
  REQUIRE(f.rig.run([&] { return f.rig.a.status_of(1) && f.rig.b.status_of(1); }));
  REQUIRE(*f.rig.a.status_of(1) != Status::success);
  REQUIRE(*f.rig.b.status_of(1) != Status::success);
}
