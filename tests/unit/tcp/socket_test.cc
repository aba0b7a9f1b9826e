// Congestion control: of the system where a connection leaves this host, and none that spaces packets out where it does not.
#include "transports/tcp/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/host/clock.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::tcp {
namespace {

std::string congestion_control(int fd) {
  std::array<char, 17> name{};
  socklen_t size = name.size() - 1;
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 ? std::string(name.data()) : std::string();
}

std::string of_the_system() { return congestion_control(Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()); }
bool spaces(const std::string& name) { return name.starts_with("bbr"); }

// Of every connected socket of this process.
std::set<std::string> of_connections() {
  std::set<std::string> names;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.ss_family == AF_INET)
      names.insert(congestion_control(fd));
  }
  return names;
}

}  // namespace

TEST_CASE("socket__until_its_peer_is_known__no_congestion_control_that_spaces_packets_out") {
  const std::string system = of_the_system();
  REQUIRE_FALSE(system.empty());
  const Descriptor fd = open_socket(AF_INET, {});
  REQUIRE(fd);
  CHECK(congestion_control(fd.get()) == (spaces(system) ? "reno" : system));
  space_packets(fd.get());
  CHECK(congestion_control(fd.get()) == system);
}

TEST_CASE("socket__a_congestion_control_of_the_route_or_the_user__stays") {
  const Descriptor fd = open_socket(AF_INET, {});
  const std::string other = of_the_system() == "cubic" ? "bbr" : "cubic";
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, other.data(), static_cast<socklen_t>(other.size())) != 0) {
    WARN("nothing to test: this host has no " << other << " for us");
    return;
  }
  space_packets(fd.get());
  CHECK(congestion_control(fd.get()) == other);
}

TEST_CASE("tcp_net__both_ends_on_this_host__never_spaced_out") {
  TcpNetOptions options;
  options.listen_host = "127.0.0.1";
  auto server = TcpNet::create(options);
  options.listen = false;
  auto client = TcpNet::create(options);
  REQUIRE((server && client));
  host::SystemClock clock;
  REQUIRE((*client)->dial((*server)->uri()));
  bool connected = false, accepted = false;
  const Instant end = after(clock.now(), std::chrono::seconds(20));
  while (!(connected && accepted) && clock.now() < end) {
    (*client)->poll(clock.now(),
                    [&](const auto& event) { connected = connected || event.type == stream::StreamEventType::connected; });
    (*server)->poll(clock.now(),
                    [&](const auto& event) { accepted = accepted || event.type == stream::StreamEventType::accepted; });
  }
  REQUIRE((connected && accepted));
  for (const std::string& name : of_connections()) CHECK_FALSE(spaces(name));
}

}  // namespace ccixfer::tcp
