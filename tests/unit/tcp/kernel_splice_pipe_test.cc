// Bytes keep their order through the two pipes of the kernel.
#include "transports/tcp/kernel_splice_pipe.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <vector>

#include "transports/stream/stream_net.h"

using namespace ccixfer;
using namespace ccixfer::tcp;

namespace {

struct Ends {
  std::array<int, 2> fds{-1, -1};
  Ends() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0); }
  ~Ends() {
    for (const int fd : fds) close(fd);
  }
};

}  // namespace

// Small pieces fill a pipe with few bytes: one pipe is full, the other takes over, and back again; unloading in between.
TEST_CASE("kernel_splice_pipe__both_pipes_in_turns__bytes_keep_their_order") {
  Ends in, out;
  const auto splice_pipe = KernelSplicePipe::create();
  REQUIRE(splice_pipe != nullptr);
  std::mt19937_64 random(3);
  uint32_t next_in = 0, next_out = 0;
  size_t full = 0, beyond_one_pipe = 0, unloaded = 0;
  std::vector<std::byte> got;
  const auto check = [&] {
    size_t at = 0;
    for (; at + 4 <= got.size(); at += 4) {
      uint32_t number = 0;
      std::memcpy(&number, got.data() + at, 4);
      REQUIRE(number == next_out++);
    }
    got.erase(got.begin(), got.begin() + static_cast<ptrdiff_t>(at));
  };
  for (int round = 0; round < 6000; ++round) {
    for (size_t pieces = random() % 80; pieces > 0; --pieces) {
      std::array<uint32_t, 5> numbers{};
      for (uint32_t& number : numbers) number = next_in++;
      if (send(in.fds[0], numbers.data(), sizeof numbers, 0) < 0) {
        next_in -= 5;
        break;
      }
    }
    const int64_t n = splice_pipe->fill(in.fds[1], 1 + random() % 3000);
    REQUIRE((n > 0 || n == stream::io_again || n == stream::io_full));
    full += n == stream::io_full ? 1u : 0u;
    beyond_one_pipe += splice_pipe->held_bytes() > 256 * sizeof(uint32_t) * 5 ? 1u : 0u;
    if (splice_pipe->held_bytes() == 0) continue;
    if (random() % 400 == 0) {
      const size_t at = got.size();
      got.resize(at + splice_pipe->held_bytes());
      splice_pipe->unload(MutableBytes(got).subspan(at));
      REQUIRE(splice_pipe->held_bytes() == 0);
      ++unloaded;
    } else if (random() % 100 < (round / 1000 % 2 == 0 ? 10u : 99u)) {  // a slow way out, then a fast one
      const size_t size = 1 + random() % splice_pipe->held_bytes();
      const size_t sent = splice_pipe->flush(out.fds[0], size, false);
      REQUIRE(sent <= size);
      std::vector<std::byte> part(sent);
      for (size_t done = 0; done < sent;) {
        const ssize_t came = recv(out.fds[1], part.data() + done, sent - done, 0);
        REQUIRE(came > 0);
        done += static_cast<size_t>(came);
      }
      got.insert(got.end(), part.begin(), part.end());
    }
    check();
  }
  CHECK(full > 0);
  CHECK(beyond_one_pipe > 0);
  CHECK(unloaded > 0);
  CHECK(next_out > 10'000);
}

// The first pipe leaves whole and the second becomes full before anything more leaves: what the first takes now comes after it.
TEST_CASE("kernel_splice_pipe__the_first_pipe_left_and_is_filled_again__after_the_second") {
  Ends in, out;
  const auto splice_pipe = KernelSplicePipe::create();
  uint32_t next = 0;
  const auto fill_one_pipe = [&] {  // bytes that it took: the socket has more pieces than a pipe has room for
    while (send(in.fds[0], &next, sizeof next, 0) > 0) ++next;
    return splice_pipe->fill(in.fds[1], 1u << 20);
  };
  const auto flush = [&](size_t size) { return splice_pipe->flush(out.fds[0], size, false); };
  const int64_t first = fill_one_pipe();
  const int64_t second = fill_one_pipe();
  REQUIRE(first > 0);
  REQUIRE(second > 0);
  REQUIRE(flush(static_cast<size_t>(first)) == static_cast<size_t>(first));
  const int64_t third = fill_one_pipe();
  REQUIRE(third > 0);
  REQUIRE(fill_one_pipe() == stream::io_full);
  REQUIRE(flush(static_cast<size_t>(second + third)) == static_cast<size_t>(second + third));
  std::vector<uint32_t> numbers(static_cast<size_t>(first + second + third) / sizeof next);
  auto* at = reinterpret_cast<std::byte*>(numbers.data());
  for (size_t left = numbers.size() * sizeof next; left > 0;) {
    const ssize_t came = recv(out.fds[1], at, left, 0);
    REQUIRE(came > 0);
    at += came;
    left -= static_cast<size_t>(came);
  }
  for (uint32_t i = 0; i < numbers.size(); ++i) REQUIRE(numbers[i] == i);
}

TEST_CASE("kernel_splice_pipe__the_peer_has_gone__closed_and_broken_pipe") {
  Ends in, out;
  const auto splice_pipe = KernelSplicePipe::create();
  REQUIRE(send(in.fds[0], "bytes", 5, 0) == 5);
  REQUIRE(shutdown(in.fds[0], SHUT_WR) == 0);
  REQUIRE(splice_pipe->fill(in.fds[1], 100) == 5);
  REQUIRE(splice_pipe->fill(in.fds[1], 100) == stream::io_closed);
  REQUIRE(shutdown(out.fds[0], SHUT_WR) == 0);
  const auto before = signal(SIGPIPE, SIG_IGN);
  CHECK(splice_pipe->flush(out.fds[0], 5, false) == 0);
  CHECK(errno == EPIPE);
  signal(SIGPIPE, before);
  CHECK(splice_pipe->held_bytes() == 5);
}
