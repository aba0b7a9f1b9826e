// Which connections stay within this host, and the thread that looks names up.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "transports/inet/resolver.h"
#include "transports/tcp/socket.h"

namespace ccixfer::tcp {
namespace {

struct Connected {
  Descriptor dialler, acceptor;
};

// From one address of this host to another one; none: this host does not have them, or has no way between them.
std::optional<Connected> connected(const std::string& from, const std::string& to) {
  auto listener = open_listener(to, 0, {}, 1);
  if (!listener) return std::nullopt;
  inet::Address local, remote;
  if (!inet::numeric_address(from, 0, local) ||
      !inet::numeric_address(to, inet::port_of(inet::local_address(listener->get())), remote))
    return std::nullopt;
  Connected both;
  both.dialler = Descriptor(socket(remote.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(both.dialler.get(), reinterpret_cast<const sockaddr*>(&local.storage), local.size) != 0) return std::nullopt;
  if (connect(both.dialler.get(), reinterpret_cast<const sockaddr*>(&remote.storage), remote.size) != 0) return std::nullopt;
  pollfd came{listener->get(), POLLIN, 0};
  if (poll(&came, 1, 10'000) != 1) return std::nullopt;
  both.acceptor = Descriptor(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  return both;
}

// Blocks until it is readable; false: that does not come.
bool readable(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return poll(&wanted, 1, 10'000) == 1;
}

size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

TEST_CASE("peer_is_this_host__on_the_loopback_or_one_address_at_both_ends__yes") {
  const auto one = connected("127.0.0.1", "127.0.0.1");
  REQUIRE(one);
  CHECK(peer_is_this_host(one->dialler.get()));
  CHECK(peer_is_this_host(one->acceptor.get()));
  const auto two = connected("127.0.0.2", "127.0.0.1");
  REQUIRE(two);
  CHECK(peer_is_this_host(two->dialler.get()));
  CHECK(peer_is_this_host(two->acceptor.get()));
  CHECK_FALSE(peer_is_this_host(Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()));  // nobody is
  if (const auto six = connected("::1", "::1")) {
    CHECK(peer_is_this_host(six->dialler.get()));
    CHECK(peer_is_this_host(six->acceptor.get()));
  } else {
    WARN("not tested: this host has no IPv6");
  }
}

TEST_CASE("peer_is_this_host__one_of_its_own_addresses__yes_from_itself_and_the_loopback") {
  const auto hosts = inet::interface_hosts(AF_INET6, {});
  REQUIRE(hosts);
  bool six = false;
  for (const std::string& host : *hosts) {
    INFO(host);
    if (const auto itself = connected(host, host)) {
      CHECK(peer_is_this_host(itself->dialler.get()));
      CHECK(peer_is_this_host(itself->acceptor.get()));
    }
    if (host.find(':') == std::string::npos) continue;
    if (const auto mixed = connected("::1", host)) {
      six = true;
      CHECK(peer_is_this_host(mixed->acceptor.get()));       // ::1 called
      CHECK_FALSE(peer_is_this_host(mixed->dialler.get()));  // by the addresses alone nobody can tell
    }
  }
  if (!six) WARN("not tested: this host has no address of IPv6 beside the loopback's");
}

TEST_CASE("resolver__answers__wake_the_caller_and_are_taken_once") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const Descriptor reader(ends[0]), writer(ends[1]);
  inet::Resolver resolver{host::WakeHandle(writer.get())};
  CHECK(resolver.take().empty());
  REQUIRE(resolver.resolve(7, "127.0.0.1", 80));
  const size_t with_the_first = threads();
  REQUIRE(resolver.resolve(8, "127.0.0.2", 81));
  CHECK(threads() <= with_the_first + 1);  // one for each at most
  std::vector<inet::Resolver::Answer> answers;
  std::array<char, 8> wake{};
  while (answers.size() < 2) {
    REQUIRE(readable(reader.get()));
    REQUIRE(read(reader.get(), wake.data(), wake.size()) == 8);
    for (auto& answer : resolver.take()) answers.push_back(std::move(answer));
  }
  if (answers[0].id > answers[1].id) std::swap(answers[0], answers[1]);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(answers[i].id == 7 + i);
    CHECK_FALSE(answers[i].unknown);
    CHECK(answers[i].reason.empty());
    REQUIRE_FALSE(answers[i].addresses.empty());
    CHECK(inet::host_of(answers[i].addresses[0]) == (i == 0 ? "127.0.0.1" : "127.0.0.2"));
    CHECK(inet::port_of(answers[i].addresses[0]) == 80 + i);
  }
  CHECK(resolver.take().empty());
}

TEST_CASE("resolver__destroyed__its_thread_ends_and_the_callers_descriptor_is_let_go") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  {
    inet::Resolver resolver{host::WakeHandle(writer.get())};
    REQUIRE(resolver.resolve(7, "127.0.0.1", 80));
    std::array<char, 8> wake{};
    REQUIRE(readable(reader.get()));
    REQUIRE(read(reader.get(), wake.data(), wake.size()) == 8);
  }
  writer.reset();
  // The last one who could write is the thread: the pipe's end is its end.
  REQUIRE(readable(reader.get()));
  char byte = 0;
  CHECK(read(reader.get(), &byte, 1) == 0);
}

TEST_CASE("is_wildcard__the_address_of_all_of_each_family") {
  for (const auto& [host, wild] :
       {std::pair{"0.0.0.0", true}, {"::", true}, {"127.0.0.1", false}, {"::1", false}, {"0.0.0.1", false}}) {
    inet::Address address;
    REQUIRE(inet::numeric_address(host, 1, address));
    INFO(host);
    CHECK(inet::is_wildcard(address) == wild);
  }
}

}  // namespace ccixfer::tcp
