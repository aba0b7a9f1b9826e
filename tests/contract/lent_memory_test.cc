// What an application does with memory once an operation has given it back, or deregistering has: no peer sees it.
#include <algorithm>

#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

constexpr std::byte used_again{0x5e};

// Nothing of ours is 0x5e.
std::vector<std::byte> content(size_t size, uint32_t seed) {
  std::vector<std::byte> bytes = pattern(size, seed);
  std::ranges::replace(bytes, used_again, std::byte{});
  return bytes;
}

size_t leaked(Bytes bytes) { return static_cast<size_t>(std::ranges::count(bytes, used_again)); }

TEST_CASE("contract__a_put_that_was_given_up__sends_nothing_of_what_the_memory_holds_next") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const size_t size = GENERATE(size_t{20'000}, size_t{150'000}, size_t{1} << 20);
  std::vector<std::byte> source = content(size, 1);
  std::vector<std::byte> target(size);
  cci::RmaOptions put;
  put.local = a.memory->register_region(Bytes(source));
  put.remote.handle = b.memory->register_region(MutableBytes(target), cci::access_write);
  put.length_bytes = size;
  put.context = 1;
  b.frozen = true;
  REQUIRE(a.endpoint->rma(pair.at_dialler, put) == Status::success);
  lab.pass(100ms);  // it lies in the networks' buffers
  a.endpoint->disconnect(pair.at_dialler);
  for (int i = 0; i < 300 && !a.has(EventType::send); ++i) lab.pass(100ms);
  REQUIRE(a.has(EventType::send));
  std::ranges::fill(source, used_again);
  b.frozen = false;
  lab.pass(3s);
  // On one host the bytes that the peer's socket had are still ours; real peers to whom memory is lent are on another.
  const Bytes got = lab_name.starts_with("tcp") ? Bytes(target).last(1000) : Bytes(target);
  REQUIRE(leaked(got) == 0);
}

TEST_CASE("contract__a_region_deregistered_while_read__sends_nothing_of_its_next_content") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const size_t size = GENERATE(size_t{20'000}, size_t{1} << 20);
  std::vector<std::byte> source = content(size, 1);
  std::vector<std::byte> target(size);
  cci::RmaOptions read;
  read.write = false;
  read.local = a.memory->register_region(MutableBytes(target), 0);
  const Handle remote = b.memory->register_region(Bytes(source));
  read.remote.handle = remote;
  read.length_bytes = size;
  read.context = 1;
  const uint64_t before = b.counters->get(Counter::bytes_out);
  REQUIRE(a.endpoint->rma(pair.at_dialler, read) == Status::success);
  REQUIRE(lab.run([&] { return b.counters->get(Counter::bytes_out) > before + 10'000; }));
  const Status status = b.memory->deregister_region(remote);
  REQUIRE((status == Status::success || status == Status::busy));
  REQUIRE((status == Status::busy) == b.memory->in_use(remote));
  const Handle other = b.memory->register_region(Bytes(source));
  REQUIRE((status != Status::busy || other.number != remote.number));
  REQUIRE(lab.run([&] { return !b.memory->in_use(remote); }));
  std::ranges::fill(source, used_again);
  const Status ended = wait_send(lab, a, 1);
  REQUIRE((ended == Status::success || ended == Status::rma_handle));
  if (!lab_name.starts_with("tcp")) REQUIRE(leaked(target) == 0);
}

}  // namespace
}  // namespace ccixfer::contract
