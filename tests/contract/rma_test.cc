// Points 1, 10, 11, 17: remote memory.
#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

ports::RemoteRef at(const Handle& handle, uint64_t offset = 0) {
  ports::RemoteRef ref;
  ref.handle = handle;
  ref.offset_bytes = offset;
  return ref;
}

cci::RmaOptions rma(bool write, const Handle& local, uint64_t local_offset, const Handle& remote, uint64_t remote_offset,
                    uint64_t length, uint64_t context) {
  cci::RmaOptions options;
  options.write = write;
  options.local = local;
  options.local_offset_bytes = local_offset;
  options.remote = at(remote, remote_offset);
  options.length_bytes = length;
  options.context = context;
  return options;
}

constexpr uint8_t both = cci::access_read | cci::access_write;

TEST_CASE("contract__handle_sent_in_a_message__is_32_bytes_and_works") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> memory(1000);
  const Handle handle = b.memory->register_region(memory, both);
  static_assert(sizeof(Handle) == 32);
  REQUIRE(b.endpoint->send(pair.at_acceptor, {reinterpret_cast<const std::byte*>(&handle), sizeof handle}, 1) == Status::success);
  const auto received = wait_event(lab, a, EventType::receive);
  REQUIRE(received);
  Handle copy;
  REQUIRE(received->data().size() == sizeof copy);
  std::memcpy(&copy, received->data().data(), sizeof copy);
  auto source = pattern(1000, 3);
  const Handle local = a.memory->register_region(source, both);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, copy, 0, 1000, 5)) == Status::success);
  REQUIRE(wait_send(lab, a, 5) == Status::success);
  REQUIRE(memory == source);
}

TEST_CASE("contract__writes_and_reads_of_doubling_lengths__every_byte_and_no_other") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  constexpr size_t size = (3u << 20) + 13;
  std::vector<std::byte> target(size, std::byte{0xee});
  std::vector<std::byte> back(size, std::byte{0});
  auto source = pattern(size, 9);
  const Handle remote = b.memory->register_region(target, both);
  const Handle local = a.memory->register_region(source, both);
  const Handle landing = a.memory->register_region(back, both);
  uint64_t context = 0;
  for (size_t length = 1; length <= (2u << 20); length *= 4) {
    const size_t offset = (length * 7) % 1000 + 3;
    CAPTURE(length);
    std::fill(target.begin(), target.end(), std::byte{0xee});
    REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, offset / 2, remote, offset, length, ++context)) == Status::success);
    REQUIRE(wait_send(lab, a, context) == Status::success);
    REQUIRE(std::equal(source.begin() + static_cast<long>(offset / 2), source.begin() + static_cast<long>(offset / 2 + length),
                       target.begin() + static_cast<long>(offset)));
    REQUIRE(target[offset - 1] == std::byte{0xee});
    REQUIRE(target[offset + length] == std::byte{0xee});
    REQUIRE(a.endpoint->rma(pair.at_dialler, rma(false, landing, 5, remote, offset, length, ++context)) == Status::success);
    REQUIRE(wait_send(lab, a, context) == Status::success);
    REQUIRE(std::equal(back.begin() + 5, back.begin() + static_cast<long>(5 + length), target.begin() + static_cast<long>(offset)));
  }
}

TEST_CASE("contract__one_sided__completes_while_the_target_takes_no_event") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  b.collects = false;
  std::vector<std::byte> target(1u << 20);
  auto source = pattern(target.size(), 4);
  const Handle remote = b.memory->register_region(target, both);
  const Handle local = a.memory->register_region(source, both);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, target.size(), 1)) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  REQUIRE((target == source));
  b.collect();
  REQUIRE(b.events.empty());  // it learns of nothing
}

TEST_CASE("contract__completion_message__after_the_data_never_after_a_failure") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(2u << 20);
  auto source = pattern(target.size(), 4);
  const Handle remote = b.memory->register_region(target, cci::access_write);
  const Handle local = a.memory->register_region(source, both);
  auto options = rma(true, local, 0, remote, 0, target.size(), 1);
  const auto note = pattern(100, 8);
  options.completion_message = Bytes(note);
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  REQUIRE(lab.run([&] { return b.has(EventType::receive); }));
  REQUIRE((target == source));
  const auto received = b.take(EventType::receive);
  REQUIRE(std::equal(note.begin(), note.end(), received->data().begin(), received->data().end()));
  REQUIRE(wait_send(lab, a, 1) == Status::success);

  options.write = false;  // reading was not granted
  options.context = 2;
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  REQUIRE(wait_send(lab, a, 2) == Status::rma_op);
  options.write = true;
  options.remote.offset_bytes = 1;  // one byte too far
  options.context = 3;
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  REQUIRE(wait_send(lab, a, 3) == Status::rma_handle);
  lab.pass(100ms);
  REQUIRE_FALSE(b.has(EventType::receive));
}

TEST_CASE("contract__zero_length_completion_message__is_delivered") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  auto target = pattern(100, 1);
  std::vector<std::byte> landing(100);
  const Handle remote = b.memory->register_region(target, both);
  const Handle local = a.memory->register_region(landing, both);
  auto options = rma(false, local, 0, remote, 0, 100, 1);
  options.completion_message = Bytes{};
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  const auto received = wait_event(lab, b, EventType::receive);
  REQUIRE(received);
  REQUIRE(received->data().empty());
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  REQUIRE(landing == target);
}

TEST_CASE("contract__what_the_target_does_not_grant__refused_and_no_byte_written") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(1u << 20, std::byte{0x11});
  const std::vector<std::byte> before = target;
  auto source = pattern(target.size(), 4);
  const Handle readable = b.memory->register_region(target, cci::access_read);
  const Handle writable = b.memory->register_region(target, cci::access_write);
  const Handle local = a.memory->register_region(source, both);
  const auto end = [&](const cci::RmaOptions& options) {
    REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
    return wait_send(lab, a, options.context);
  };
  REQUIRE(end(rma(true, local, 0, readable, 0, target.size(), 1)) == Status::rma_op);
  REQUIRE(end(rma(false, local, 0, writable, 0, target.size(), 2)) == Status::rma_op);
  REQUIRE(end(rma(true, local, 0, writable, target.size() - 10, 11, 3)) == Status::rma_handle);
  REQUIRE(end(rma(true, local, 0, writable, UINT64_MAX - 10, 10, 4)) == Status::rma_handle);
  Handle forged = writable;
  forged.key ^= 1;
  REQUIRE(end(rma(true, local, 0, forged, 0, target.size(), 5)) == Status::rma_handle);
  forged = writable;
  forged.number += 1000000;
  REQUIRE(end(rma(true, local, 0, forged, 0, 100, 6)) == Status::rma_handle);
  REQUIRE(b.memory->deregister_region(writable) == Status::success);
  REQUIRE(end(rma(true, local, 0, writable, 0, 100, 7)) == Status::rma_handle);
  REQUIRE(target == before);
  REQUIRE(end(rma(false, local, 0, readable, 0, target.size(), 8)) == Status::success);  // the connection is as good as before
}

TEST_CASE("contract__many_rmas_both_ways__all_complete_with_the_right_bytes") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  constexpr size_t piece = 300'000;
  constexpr size_t count = 24;
  struct Side {
    Node& node;
    Connection connection;
    std::vector<std::byte> source, target, back;
    Handle local, remote, landing;
  };
  Side sides[2] = {{a, pair.at_dialler, pattern(piece * count, 1), {}, {}, {}, {}, {}},
                   {b, pair.at_acceptor, pattern(piece * count, 2), {}, {}, {}, {}, {}}};
  for (size_t s = 0; s < 2; ++s) {
    Side& side = sides[s];
    side.target.resize(piece * count);
    side.back.resize(piece * count);
    side.local = side.node.memory->register_region(side.source, both);
    side.landing = side.node.memory->register_region(side.back, both);
    side.remote = sides[1 - s].node.memory->register_region(side.target, both);
  }
  for (size_t i = 0; i < count; ++i) {
    for (Side& side : sides) {
      REQUIRE(side.node.endpoint->rma(side.connection, rma(true, side.local, i * piece, side.remote, i * piece, piece, i)) ==
              Status::success);
      auto fenced = rma(false, side.landing, i * piece, side.remote, i * piece, piece, 1000 + i);
      fenced.fence = true;
      REQUIRE(side.node.endpoint->rma(side.connection, fenced) == Status::success);
    }
  }
  for (Side& side : sides) {
    for (size_t i = 0; i < count; ++i) {
      REQUIRE(wait_send(lab, side.node, i) == Status::success);
      REQUIRE(wait_send(lab, side.node, 1000 + i) == Status::success);
    }
    REQUIRE(side.target == side.source);
    REQUIRE(side.back == side.source);
  }
}

TEST_CASE("contract__fence__earlier_operations_complete_first") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(4u << 20);
  auto source = pattern(target.size(), 1);
  std::vector<std::byte> back(8);
  const Handle local = a.memory->register_region(source, both);
  const Handle landing = a.memory->register_region(back, both);
  const Handle remote = b.memory->register_region(target, both);
  // Without the fence the little read would be answered before the last of the big write.
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, target.size(), 1)) == Status::success);
  auto fenced = rma(false, landing, 0, remote, target.size() - 8, 8, 2);
  fenced.fence = true;
  REQUIRE(a.endpoint->rma(pair.at_dialler, fenced) == Status::success);
  REQUIRE(lab.run([&] { return a.count(EventType::send) == 2; }));
  REQUIRE(a.take(EventType::send)->context == 1);
  REQUIRE(a.take(EventType::send)->context == 2);
  REQUIRE(std::equal(back.begin(), back.end(), source.end() - 8));
}

TEST_CASE("contract__fence__waits_for_earlier_messages_that_find_no_buffer") {
  EVERY_LAB(lab);
  NodeOptions few;
  few.endpoint.receive_buffers = 2;
  Node& a = lab.add();
  Node& b = lab.add(few);
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(1000);
  auto source = pattern(target.size(), 1);
  const Handle local = a.memory->register_region(source, both);
  const Handle remote = b.memory->register_region(target, both);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(a.endpoint->send(pair.at_dialler, Bytes(source).first(8), i) == Status::success);
  auto fenced = rma(true, local, 0, remote, 0, target.size(), 10);
  fenced.fence = true;
  REQUIRE(a.endpoint->rma(pair.at_dialler, fenced) == Status::success);
  lab.pass(500ms);
  REQUIRE(b.count(EventType::receive) == 2);
  REQUIRE(a.count(EventType::send) == 2);
  REQUIRE(target == std::vector<std::byte>(1000));
  b.events.clear();  // the third finds a buffer
  REQUIRE(wait_send(lab, a, 2) == Status::success);
  REQUIRE(wait_send(lab, a, 10) == Status::success);
  REQUIRE(target == source);
}

TEST_CASE("contract__region_deregistered_in_the_middle__not_touched_and_the_status_says_so") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const bool write = GENERATE(true, false);
  auto target = std::make_unique<std::vector<std::byte>>(pattern(24u << 20, 1));
  std::vector<std::byte> local_memory(target->size());
  const Handle local = a.memory->register_region(local_memory, both);
  const Handle remote = b.memory->register_region(*target, both);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(write, local, 0, remote, 0, target->size(), 1)) == Status::success);
  // Some of it is under way.
  REQUIRE(lab.run([&] { return (write ? b : a).counters->get(Counter::bytes_in) > (1u << 20); }));
  REQUIRE_FALSE(a.has(EventType::send));
  // No transport touches the memory once this has returned. Only a network that sends by reference may still read it, and says so.
  const Status status = b.memory->deregister_region(remote);
  REQUIRE((status == Status::success || (!write && status == Status::busy)));
  if (status == Status::busy) REQUIRE(lab.run([&] { return !b.memory->in_use(remote); }));
  target.reset();  // touching it now is an error that the sanitizer sees
  REQUIRE(wait_send(lab, a, 1) == Status::rma_handle);
  std::vector<std::byte> other(1000);
  const Handle again = b.memory->register_region(other, both);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, again, 0, 1000, 2)) == Status::success);
  REQUIRE(wait_send(lab, a, 2) == Status::success);
}

TEST_CASE("contract__put_into_a_mailbox__completes_with_its_bytes_and_a_closed_one_refuses") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  auto source = pattern(1u << 20, 1);
  std::vector<std::byte> buffer(source.size());
  const Handle local = a.memory->register_region(source, both);
  rvma::MailboxOptions mailbox;
  mailbox.key = 99;
  REQUIRE(b.endpoint->mailboxes().open(5, mailbox) == Status::success);
  REQUIRE(b.endpoint->mailboxes().post(5, buffer, 1234) == Status::success);
  Handle remote;
  remote.kind = ports::HandleKind::mailbox;
  remote.number = 5;
  remote.key = 99;
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, source.size(), 1)) == Status::success);
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  const auto completion = b.endpoint->mailboxes().next_completion();
  REQUIRE(completion);
  REQUIRE(completion->context == 1234);
  REQUIRE(completion->length_bytes == source.size());
  REQUIRE(buffer == source);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, source.size(), 2)) == Status::success);
  REQUIRE(wait_send(lab, a, 2) == Status::mailbox_empty);
  REQUIRE(b.endpoint->mailboxes().close(5) == Status::success);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, source.size(), 3)) == Status::success);
  const Status closed = wait_send(lab, a, 3);
  REQUIRE((closed == Status::mailbox_closed || closed == Status::mailbox_unknown));
}

TEST_CASE("contract__more_rmas_than_may_be_in_flight__no_buffers") {
  EVERY_NATIVE_LAB(lab);  // the bound of a routed connection is its own
  NodeOptions small;
  small.transport.rmas_in_flight_max = 4;
  Node& a = lab.add();
  Node& b = lab.add(small);
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(1000);
  auto source = pattern(1000, 1);
  const Handle local = a.memory->register_region(source, both);
  const Handle remote = b.memory->register_region(target, both);
  uint64_t accepted = 0;
  while (a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, 1000, accepted)) == Status::success) ++accepted;
  REQUIRE(accepted == 4);
  for (uint64_t i = 0; i < accepted; ++i) REQUIRE(wait_send(lab, a, i) == Status::success);
}

TEST_CASE("contract__bad_rma_arguments__refused_at_once") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  std::vector<std::byte> target(1000);
  auto source = pattern(1000, 1);
  const Handle local = a.memory->register_region(source, both);
  const Handle remote = b.memory->register_region(target, both);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 0, remote, 0, 0, 1)) == Status::invalid);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, 1, remote, 0, 1000, 1)) != Status::success);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, local, UINT64_MAX, remote, 0, 2, 1)) != Status::success);
  REQUIRE(a.endpoint->rma(pair.at_dialler, rma(true, remote, 0, remote, 0, 10, 1)) != Status::success);
  REQUIRE(a.endpoint->rma({}, rma(true, local, 0, remote, 0, 10, 1)) == Status::not_found);
  REQUIRE(a.endpoint->rma({12345, 1}, rma(true, local, 0, remote, 0, 10, 1)) == Status::not_found);
}

}  // namespace
}  // namespace ccixfer::contract
