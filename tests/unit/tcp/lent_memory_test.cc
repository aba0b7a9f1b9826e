// Memory that goes by reference, and splice pipes: what the peer reads is what the memory holds when the network takes it.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "core/memory/file_view.h"
#include "core/memory/pool.h"
#include "tests/unit/tcp/nets.h"
#include "transports/tcp/zero_copy_pipe.h"

namespace ccixfer::tcp {
namespace {

// Memory of RMA goes by reference, headers between it are copied; what the socket has no room for waits in the pipe.
TEST_CASE("tcp_net__lent_memory_between_copies__arrives_in_order_through_a_full_socket") {
  Pair pair(GENERATE(ByReference::never, ByReference::always));
  const size_t lent_bytes =
      GENERATE(size_t{zero_copy_bytes_min - 1}, size_t{zero_copy_bytes_min}, size_t{256} << 10, size_t{1000001});
  std::vector<std::byte> memory(40 * lent_bytes + 3);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  // header, memory, header, memory ...: the headers are overwritten as soon as send() returns.
  constexpr size_t header_bytes = 24;
  const size_t unit_bytes = header_bytes + lent_bytes;
  const size_t total = 40 * unit_bytes;
  const auto header_byte = [](size_t unit) { return static_cast<std::byte>(unit * 7 + 1); };
  size_t sent = 0;
  bool was_full = false;
  const auto send_on = [&] {
    while (sent < total) {
      std::array<std::array<std::byte, header_bytes>, 3> headers;
      std::vector<stream::ConstIoSpan> spans;
      for (size_t position = sent, unit = sent / unit_bytes; position < total && unit < sent / unit_bytes + 3; ++unit) {
        size_t within = position % unit_bytes;
        std::array<std::byte, header_bytes>& header = headers[unit % 3];
        header.fill(header_byte(unit));
        if (within < header_bytes) spans.push_back({header.data() + within, header_bytes - within});
        within = std::max(within, header_bytes);
        spans.push_back({memory.data() + 3 + unit * lent_bytes + within - header_bytes, unit_bytes - within, true});
        position = (unit + 1) * unit_bytes;
      }
      const int64_t n = pair.client->send(pair.out, spans);
      if (n == stream::io_again) {
        was_full = true;
        return;
      }
      REQUIRE(n > 0);
      for (auto& header : headers) header.fill(std::byte{0xee});
      sent += static_cast<size_t>(n);
    }
  };
  std::vector<std::byte> got(total + 1);
  size_t arrived = 0;
  while (sent < total && !was_full) send_on();
  REQUIRE(pair.watch.run([&] {
    send_on();
    for (int64_t n = 1; n > 0; arrived += n > 0 ? static_cast<size_t>(n) : 0) {
      const stream::IoSpan into{got.data() + arrived, std::min(got.size() - arrived, size_t{300000})};
      n = pair.server->recv(pair.in, {&into, 1});
    }
    return arrived >= total;
  }));
  REQUIRE(arrived == total);
  size_t wrong = 0;
  for (size_t unit = 0; unit < 40; ++unit) {
    const std::byte* at = got.data() + unit * unit_bytes;
    wrong += std::count(at, at + header_bytes, header_byte(unit)) == header_bytes ? 0u : 1u;
    wrong += std::equal(at + header_bytes, at + unit_bytes, memory.data() + 3 + unit * lent_bytes) ? 0u : 1u;
  }
  CHECK(wrong == 0);
  CHECK((was_full || total < (16u << 20)));
}

TEST_CASE("tcp_net__peer_closes_with_lent_memory_on_the_way__broken_and_no_more") {
  Pair pair(ByReference::always);
  std::vector<std::byte> memory(64u << 20);
  const stream::ConstIoSpan span{memory.data(), memory.size(), true};
  int64_t n = 0;
  do {
    n = pair.client->send(pair.out, {&span, 1});
  } while (n > 0);
  REQUIRE(n == stream::io_again);
  pair.server->close(pair.in);  // with bytes unread: a reset
  REQUIRE(pair.watch.run([&] {
    return pair.watch.find(1, StreamEventType::writable, pair.out) && pair.client->send(pair.out, {&span, 1}) != stream::io_again;
  }));
  CHECK(pair.client->send(pair.out, {&span, 1}) < stream::io_again);
  pair.client->close(pair.out);
}

// What send() took is the caller's again at once, unless the peer is known to be on another machine. (This one is not, and what it
// reads shows that the pages were ours.)
TEST_CASE("tcp_net__lent_memory__is_copied_until_the_peer_is_known_to_be_elsewhere") {
  Pair pair(ByReference::to_other_machines);
  const bool elsewhere = GENERATE(false, true);
  if (elsewhere) pair.client->peer_is_elsewhere(pair.out);
  std::vector<std::byte> memory(1u << 20, std::byte{1});
  const stream::ConstIoSpan span{memory.data(), memory.size(), true};
  const int64_t taken = pair.client->send(pair.out, {&span, 1});
  REQUIRE(taken > 0);
  std::fill(memory.begin(), memory.end(), std::byte{2});
  std::vector<std::byte> got(memory.size());
  size_t arrived = 0;
  REQUIRE(pair.watch.run([&] {
    const stream::IoSpan into{got.data() + arrived, got.size() - arrived};
    const int64_t n = pair.server->recv(pair.in, {&into, 1});
    arrived += n > 0 ? static_cast<size_t>(n) : 0;
    return arrived >= static_cast<size_t>(taken);
  }));
  CHECK(std::count(got.begin(), got.end(), std::byte{1}) == (elsewhere ? 0 : taken));
}

// A file's pages are never used for anything else, so they may stay with whoever has them: they go by reference on one host too.
TEST_CASE("tcp_net__a_files_pages__go_by_reference_and_as_zeros_when_the_file_is_cut") {
  Pair pair(ByReference::to_other_machines);
  FILE* file = std::tmpfile();
  const std::vector<std::byte> ones(1u << 20, std::byte{1});
  const std::vector<std::byte> twos(1u << 20, std::byte{2});
  REQUIRE(::pwrite(::fileno(file), ones.data(), ones.size(), 0) == static_cast<ssize_t>(ones.size()));
  memory::Pool pool(1u << 20, 1);
  memory::Loan loan = pool.lend();
  REQUIRE(memory::show_file(loan.bytes(), ::fileno(file), 0) == 0);
  loan.shows_file(loan.bytes().size());
  const bool is_file = GENERATE(true, false);
  const bool cut_before = GENERATE(true, false);
  stream::ConstIoSpan span{loan.bytes().data(), loan.bytes().size(), true};
  span.is_file = is_file;
  if (cut_before) REQUIRE(::ftruncate(::fileno(file), 0) == 0);
  const int64_t taken = pair.client->send(pair.out, {&span, 1});
  REQUIRE(taken > 0);
  if (!cut_before) REQUIRE(::pwrite(::fileno(file), twos.data(), twos.size(), 0) == static_cast<ssize_t>(twos.size()));
  loan.reset();
  std::vector<std::byte> got(ones.size());
  size_t arrived = 0;
  REQUIRE(pair.watch.run([&] {
    const stream::IoSpan into{got.data() + arrived, got.size() - arrived};
    const int64_t n = pair.server->recv(pair.in, {&into, 1});
    arrived += n > 0 ? static_cast<size_t>(n) : 0;
    return arrived >= static_cast<size_t>(taken);
  }));
  const std::byte expected{static_cast<uint8_t>(cut_before ? 0 : is_file ? 2 : 1)};
  CHECK(std::count(got.begin(), got.begin() + static_cast<ptrdiff_t>(arrived), expected) == taken);
  std::fclose(file);
}

// The kernel takes what stands before the missing pages, though the socket has room for more: no event would tell of that room.
TEST_CASE("tcp_net__a_files_pages_that_are_copied_and_cut__the_rest_goes_at_once_as_zeros") {
  Pair pair(ByReference::never);
  FILE* file = std::tmpfile();
  const std::vector<std::byte> ones(1u << 20, std::byte{1});
  REQUIRE(::pwrite(::fileno(file), ones.data(), ones.size(), 0) == static_cast<ssize_t>(ones.size()));
  memory::Pool pool(1u << 20, 1);
  memory::Loan loan = pool.lend();
  REQUIRE(memory::show_file(loan.bytes(), ::fileno(file), 0) == 0);
  loan.shows_file(loan.bytes().size());
  constexpr size_t kept = 96u << 10;
  constexpr size_t offered = 160u << 10;
  REQUIRE(::ftruncate(::fileno(file), kept) == 0);
  const std::array<std::byte, 10> behind{std::byte{3}};
  const auto send_from = [&](size_t at) {
    const std::array<stream::ConstIoSpan, 2> spans{
        {{loan.bytes().data() + at, offered - at, true, nullptr, false, true}, {behind.data(), behind.size()}}};
    return pair.client->send(pair.out, spans);
  };
  const int64_t first = send_from(0);
  REQUIRE(first > 0);
  REQUIRE(first <= static_cast<int64_t>(kept));
  const int64_t second = send_from(static_cast<size_t>(first));
  CHECK(first + second == static_cast<int64_t>(offered + behind.size()));
  std::vector<std::byte> got(offered + behind.size());
  size_t arrived = 0;
  REQUIRE(pair.watch.run([&] {
    const stream::IoSpan into{got.data() + arrived, got.size() - arrived};
    const int64_t n = pair.server->recv(pair.in, {&into, 1});
    arrived += n > 0 ? static_cast<size_t>(n) : 0;
    return arrived >= static_cast<size_t>(first + std::max<int64_t>(second, 0));
  }));
  CHECK(std::count(got.begin(), got.end(), std::byte{1}) == static_cast<ptrdiff_t>(kept));
  CHECK(got[offered] == std::byte{3});
  loan.reset();
  std::fclose(file);
}

// Its owner is told that the connection is over and may use the memory for something else: what was not sent must not go out.
TEST_CASE("tcp_net__closed_with_lent_memory_unsent__a_reset_and_no_orderly_end") {
  Pair pair(ByReference::always);
  std::vector<std::byte> memory(64u << 20, std::byte{1});
  const stream::ConstIoSpan span{memory.data(), memory.size(), true};
  while (pair.client->send(pair.out, {&span, 1}) > 0) {
  }
  pair.client->close(pair.out);
  std::vector<std::byte> got(1u << 20);
  size_t arrived = 0;
  int64_t n = 0;
  REQUIRE(pair.watch.run([&] {
    const stream::IoSpan into{got.data(), got.size()};
    while ((n = pair.server->recv(pair.in, {&into, 1})) > 0) arrived += static_cast<size_t>(n);
    return n != stream::io_again;
  }));
  CHECK(n == stream::io_error);
  CHECK(arrived < memory.size());
}

// Whoever lent the memory asks, before it is used for something else.
TEST_CASE("tcp_net__lent_memory__is_unacknowledged_until_the_peers_kernel_has_it") {
  Pair pair(ByReference::always);
  CHECK(pair.client->lends(pair.out));
  Pair near(ByReference::to_other_machines);
  CHECK_FALSE(near.client->lends(near.out));
  near.client->peer_is_elsewhere(near.out);
  CHECK(near.client->lends(near.out));
  std::vector<std::byte> memory(8u << 20, std::byte{1});
  const stream::ConstIoSpan copied{memory.data(), 1000};
  REQUIRE(pair.client->send(pair.out, {&copied, 1}) == 1000);
  CHECK(pair.client->unacknowledged_bytes(pair.out) == 0);
  const stream::ConstIoSpan lent{memory.data(), memory.size(), true};
  uint64_t sent = 1000;
  for (int64_t n = 1; n > 0; sent += n > 0 ? static_cast<uint64_t>(n) : 0) n = pair.client->send(pair.out, {&lent, 1});
  // The peer's socket is full, and so is ours, and the pipe holds what was taken besides.
  const uint64_t unacknowledged = pair.client->unacknowledged_bytes(pair.out);
  CHECK(unacknowledged > 0);
  CHECK(unacknowledged <= sent);
  std::vector<std::byte> got(1u << 20);
  uint64_t arrived = 0;
  REQUIRE(pair.watch.run([&] {
    const stream::IoSpan into{got.data(), got.size()};
    for (int64_t n = 1; n > 0; arrived += n > 0 ? static_cast<uint64_t>(n) : 0) n = pair.server->recv(pair.in, {&into, 1});
    return arrived == sent;
  }));
  REQUIRE(pair.watch.run([&] { return pair.client->unacknowledged_bytes(pair.out) == 0; }));
}

// Through a relay, from one connection to another: into a splice pipe, out of it, or unloaded when it has no room for more, with
// words of the relay's own before the bytes.
TEST_CASE("tcp_net__bytes_through_a_splice_pipe__arrive_in_order_whatever_the_way_out_takes") {
  Pair first(ByReference::to_other_machines), second(ByReference::to_other_machines);
  const bool slow_way_out = GENERATE(false, true);
  const size_t total = 24u << 20;
  std::vector<std::byte> memory(total), kept(total), got(total);
  for (size_t i = 0; i < total; ++i) memory[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  const std::unique_ptr<ports::SplicePipe> splice_pipe = first.server->make_splice_pipe();
  REQUIRE(splice_pipe != nullptr);
  REQUIRE(second.client->takes(*splice_pipe));
  constexpr std::string_view greeting = "words of the relay";
  size_t sent = 0, came = 0, left = 0, arrived = 0;
  std::string greeted;
  bool full = false, unloaded = false;
  const auto relay = [&] {
    for (int64_t n = 1; n > 0 && came < total;) {
      n = full ? [&] {
        const stream::IoSpan into{kept.data() + came, total - came};
        return first.server->recv(first.in, {&into, 1});
      }()
               : first.server->recv_to(first.in, *splice_pipe, total - came);
      if (n == stream::io_full) {
        unloaded = unloaded || splice_pipe->held_bytes() > 0;
        splice_pipe->unload(MutableBytes(kept).subspan(came - splice_pipe->held_bytes()));
        full = true;
        n = 1;
        continue;
      }
      came += n > 0 ? static_cast<size_t>(n) : 0;
    }
    if (slow_way_out && !full && came < total) return;  // nothing leaves before the splice pipe was full
    std::array<stream::ConstIoSpan, 3> spans{};
    size_t count = 0;
    if (greeted.empty() && left == 0) spans[count++] = {as_bytes(greeting).data(), greeting.size()};
    const size_t from = came - splice_pipe->held_bytes();
    if (left < from) spans[count++] = {kept.data() + left, from - left, true};
    if (splice_pipe->held_bytes() > 0) spans[count++] = {nullptr, splice_pipe->held_bytes(), true, splice_pipe.get()};
    if (count == 0 || left == came) return;
    int64_t n = second.client->send(second.out, {spans.data(), count});
    if (n <= 0) return;
    if (left == 0 && greeted.empty()) {
      REQUIRE(n >= static_cast<int64_t>(greeting.size()));
      n -= static_cast<int64_t>(greeting.size());
      greeted = greeting;
    }
    left += static_cast<size_t>(n);
    if (full && left == came) full = false;  // the next ones may go into it again
  };
  bool greeting_came = false;
  Watch both({first.server.get(), first.client.get(), second.server.get(), second.client.get()});
  REQUIRE(both.run([&] {
    while (sent < total) {
      const stream::ConstIoSpan span{memory.data() + sent, std::min(total - sent, size_t{1} << 20)};
      const int64_t n = first.client->send(first.out, {&span, 1});
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    relay();
    std::array<std::byte, greeting.size()> head{};
    for (int64_t n = 1; n > 0 && arrived < total;) {
      if (!greeting_came) {
        const stream::IoSpan into{head.data(), head.size()};
        n = second.server->recv(second.in, {&into, 1});
        greeting_came = n == static_cast<int64_t>(head.size());
        if (greeting_came) REQUIRE(as_text(Bytes(head)) == greeting);
        continue;
      }
      const stream::IoSpan into{got.data() + arrived, total - arrived};
      n = second.server->recv(second.in, {&into, 1});
      arrived += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return arrived >= total;
  }));
  REQUIRE(arrived == total);
  REQUIRE((got == memory));
  if (slow_way_out) REQUIRE(unloaded);
}

TEST_CASE("tcp_net__told_to_copy__has_no_splice_pipes") {
  const auto net = make("127.0.0.1", false, ByReference::never);
  CHECK(net->make_splice_pipe() == nullptr);
  const auto other = make()->make_splice_pipe();
  REQUIRE(other != nullptr);
  CHECK_FALSE(net->takes(*other));
  Pair pair(ByReference::never);
  pair.client->peer_is_elsewhere(pair.out);
  CHECK_FALSE(pair.client->lends(pair.out));
}

}  // namespace
}  // namespace ccixfer::tcp
