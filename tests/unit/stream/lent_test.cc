// Memory that the network refers to instead of copying it: it stays as it is until the peer's network has acknowledged it.
#include <algorithm>

#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

// Connected, after which b's network acknowledges nothing; b lends.
struct Lending : Rig {
  Buffer memory = filled(300'000, 3);
  Buffer local = Buffer(memory.size());
  ports::Handle region;
  End& lender = b;

  Lending() {
    a.net->lends_memory = b.net->lends_memory = true;
    connect();
    settle();
    region = b.memory.register_region(Bytes(memory));
    stop_acknowledging(b);
  }
  void stop_acknowledging(End& end) { end.net->acknowledged = hub.links.back().pipes[&end == &a ? 0 : 1].passed; }
  void read(uint64_t token, size_t bytes) {
    ports::RmaRequest request;
    request.write = false;
    request.remote.handle = region;
    request.destination = MutableBytes(local).first(bytes);
    REQUIRE(a.transport->rma(at_a, request, token) == Status::success);
  }
  [[nodiscard]] bool stream_is_open(int end) const { return hub.links.back().ends[end] != nullptr; }
};

ports::RmaRequest write_of(Bytes source, const ports::Handle& to) {
  ports::RmaRequest request;
  request.remote.handle = to;
  request.source = source;
  return request;
}

TEST_CASE("lent_memory__deregistered_before_the_peers_network_has_it__in_use_until_it_has") {
  Lending rig;
  const bool in_the_middle = GENERATE(false, true);
  if (in_the_middle) rig.hub.capacity = 100'000;
  rig.read(1, rig.memory.size());
  if (in_the_middle) {
    rig.a.transport->turn(rig.now);
    rig.b.transport->turn(rig.now);  // a does not take anything
    REQUIRE(rig.hub.links.back().pipes[1].bytes.size() == 100'000);
  } else {
    REQUIRE(rig.run([&] { return rig.a.status_of(1) == Status::success; }));
  }
  REQUIRE(rig.b.memory.deregister_region(rig.region) == Status::busy);
  CHECK(rig.b.memory.in_use(rig.region));
  CHECK(rig.b.memory.deregister_region(rig.region) == Status::rma_handle);
  const ports::Handle other = rig.b.memory.register_region(Bytes(rig.local));
  CHECK(other.number != rig.region.number);
  CHECK_FALSE(rig.b.memory.in_use(other));
  CHECK(rig.b.transport->next_deadline() <= rig.now);  // who waits for the memory need not wait for an event
  rig.b.transport->turn(rig.now);
  CHECK(rig.b.transport->next_deadline() <= rig.now + lent_look_interval);
  CHECK(rig.b.memory.in_use(rig.region));
  rig.b.net->acknowledged = UINT64_MAX;
  rig.now += lent_look_interval;
  rig.b.transport->turn(rig.now);
  CHECK_FALSE(rig.b.memory.in_use(rig.region));
  CHECK(rig.b.transport->next_deadline() > rig.now + lent_look_interval);
  // The slot may be used again, the connection goes on.
  const ports::Handle again = rig.b.memory.register_region(Bytes(rig.local));
  CHECK(again.number == rig.region.number);
  CHECK_FALSE(rig.b.memory.in_use(rig.region));
  rig.hub.capacity = SIZE_MAX;
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  CHECK(rig.a.status_of(1) == (in_the_middle ? Status::rma_handle : Status::success));
  CHECK(rig.stream_is_open(1));
}

// Acknowledgements of the network wake nobody: they are asked for when it matters.
TEST_CASE("lent_memory__deregistered_after_the_peers_network_has_it__is_its_owners_at_once") {
  Lending rig;
  rig.read(1, rig.memory.size());
  REQUIRE(rig.run([&] { return rig.a.status_of(1) == Status::success; }));
  rig.b.net->acknowledged = UINT64_MAX;
  REQUIRE(rig.b.memory.deregister_region(rig.region) == Status::success);
  CHECK_FALSE(rig.b.memory.in_use(rig.region));
}

TEST_CASE("lent_memory__wanted_from_a_peer_that_acknowledges_slowly__the_stream_is_reset") {
  Lending rig;
  const bool slowly = GENERATE(false, true);
  rig.read(1, rig.memory.size());
  REQUIRE(rig.run([&] { return rig.a.status_of(1) == Status::success; }));
  rig.pass(30s);  // nobody wants it: no harm
  CHECK(rig.stream_is_open(1));
  const Instant wanted_at = rig.now;
  REQUIRE(rig.b.memory.deregister_region(rig.region) == Status::busy);
  while (rig.b.memory.in_use(rig.region) && rig.now < wanted_at + 60s) {
    CHECK(rig.stream_is_open(1));
    rig.b.transport->turn(rig.now);
    rig.now += 100ms;
    if (slowly) ++rig.b.net->acknowledged;
  }
  CHECK_FALSE(rig.b.memory.in_use(rig.region));
  CHECK_FALSE(rig.stream_is_open(1));
  const Duration took = rig.now - wanted_at;
  CHECK(took >= (slowly ? lent_wait_max : lent_stall_max));
  CHECK(took <= (slowly ? lent_wait_max : lent_stall_max) + 300ms);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.b.sink.disconnected.front().status == Status::timed_out);
}

TEST_CASE("lent_memory__of_a_connection_that_was_left__in_use_until_the_network_has_it") {
  Lending rig;
  rig.read(1, rig.memory.size());
  rig.a.transport->turn(rig.now);
  rig.b.transport->turn(rig.now);
  rig.b.transport->disconnect(rig.at_b);
  rig.b.transport->turn(rig.now);
  REQUIRE(rig.b.memory.deregister_region(rig.region) == Status::busy);
  rig.b.transport->turn(rig.now);
  CHECK(rig.b.memory.in_use(rig.region));
  const bool acknowledged = GENERATE(true, false);
  if (acknowledged) {
    rig.b.net->acknowledged = UINT64_MAX;
    rig.now += lent_look_interval;
    rig.b.transport->turn(rig.now);
  } else {  // the end of the stream gives it back as well
    rig.pass(30s);
    CHECK_FALSE(rig.stream_is_open(1));
  }
  CHECK_FALSE(rig.b.memory.in_use(rig.region));
}

// What ended is its owner's again, who writes over it; so no goodbye is waited for.
TEST_CASE("lent_memory__of_a_write_that_is_given_up__stream_reset_before_its_owner_hears") {
  Lending rig;
  const bool unacknowledged = GENERATE(true, false);
  ports::RmaRequest request = write_of(rig.memory, rig.b.memory.register_region(MutableBytes(rig.local), cci::access_write));
  SECTION("lent") {}
  SECTION("copied for its local completion") { request.local_completion = true; }
  SECTION("of a file") { request.source_is_file = true; }
  const bool lent = !request.local_completion && !request.source_is_file;
  if (unacknowledged) rig.stop_acknowledging(rig.a);
  REQUIRE(rig.a.transport->rma(rig.at_a, request, 1) == Status::success);
  rig.a.transport->turn(rig.now);
  rig.a.transport->disconnect(rig.at_a);
  while (!rig.a.status_of(1) && rig.now < Instant{} + 2000s) {  // b stands still
    rig.a.transport->turn(rig.now);
    if (!rig.a.status_of(1)) CHECK(rig.stream_is_open(0));
    rig.now += 100ms;
  }
  CHECK(rig.a.status_of(1) == Status::disconnected);
  CHECK(rig.stream_is_open(0) == !(unacknowledged && lent));
}

TEST_CASE("lent_memory__a_peer_that_answers_a_write_before_it_has_it__is_not_believed") {
  Lending rig;
  const ports::Handle to = rig.b.memory.register_region(MutableBytes(rig.local), cci::access_write);
  const bool believable = GENERATE(false, true);
  if (!believable) rig.stop_acknowledging(rig.a);
  REQUIRE(rig.a.transport->rma(rig.at_a, write_of(rig.memory, to), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  CHECK(rig.a.status_of(1) == (believable ? Status::success : Status::disconnected));
  CHECK(rig.stream_is_open(0) == believable);
}

// A buffer of a mailbox is posted again whenever its owner likes.
TEST_CASE("lent_memory__of_mailboxes_and_of_more_reads_than_are_remembered__is_copied") {
  Lending rig;
  auto& mailboxes = rig.b.memory.mailboxes();
  REQUIRE(mailboxes.open(7, {.key = 1, .retired_max = 1}) == Status::success);
  REQUIRE(mailboxes.post(7, MutableBytes(rig.memory), {}) == Status::success);
  ports::Handle handle;
  handle.kind = ports::HandleKind::mailbox;
  handle.number = 7;
  handle.key = 1;
  const Buffer put(1000, std::byte{7});
  ports::RmaRequest write = write_of(put, handle);
  write.remote.put = {1, 1};
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1) == Status::success; }));
  ports::RmaRequest get;
  get.write = false;
  get.remote.handle = handle;
  get.destination = MutableBytes(rig.local).first(1000);
  const uint64_t before = rig.b.net->lent_bytes;
  REQUIRE(rig.a.transport->rma(rig.at_a, get, 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
  REQUIRE(rig.a.status_of(2) == Status::success);
  CHECK(rig.b.net->lent_bytes == before);

  for (uint64_t token = 10; token < 10 + 2 * lent_reads_max; ++token) {
    rig.read(token, 10);
    REQUIRE(rig.run([&] { return rig.a.status_of(token) == Status::success; }));
  }
  CHECK(rig.b.net->lent_bytes - before == 10 * lent_reads_max);
}

}  // namespace
}  // namespace ccixfer::stream::testing
