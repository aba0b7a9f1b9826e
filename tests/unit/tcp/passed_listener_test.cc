// A socket that somebody else opened and listens at, as the service manager does.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "core/host/descriptor.h"
#include "tests/unit/tcp/nets.h"
#include "transports/inet/address.h"
#include "transports/inet/uri.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::tcp {
namespace {

host::Descriptor socket_at_loopback(int type, int protocol, bool listens) {
  host::Descriptor fd(::socket(AF_INET, type | SOCK_CLOEXEC, protocol));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  if (listens) REQUIRE(::listen(fd.get(), 16) == 0);
  return fd;
}

Result<std::unique_ptr<TcpNet>> net_of(int listener) {
  TcpNetOptions options;
  options.listen_host = "192.0.2.1";  // nobody's: it is not looked at
  options.port = 1;
  options.listener = listener;
  return TcpNet::create(options);
}

}  // namespace

TEST_CASE("passed_listener__whoever_dialled_before_and_after_it_was_taken__is_accepted") {
  const host::Descriptor passed = socket_at_loopback(SOCK_STREAM, 0, true);
  const std::string uri = inet::format_uri("tcp", "127.0.0.1", inet::port_of(inet::local_address(passed.get())));
  const auto client = make("127.0.0.1", false);
  REQUIRE(client->dial(uri));
  for (int round = 0; round < 2; ++round) {  // a process after another
    auto server = net_of(passed.get());
    REQUIRE(server);
    CHECK((*server)->uris() == std::vector<std::string>{uri});
    CHECK((::fcntl(passed.get(), F_GETFL) & O_NONBLOCK) != 0);
    Watch watch({server->get(), client.get()});
    REQUIRE(watch.run([&] { return watch.find(0, stream::StreamEventType::accepted) != nullptr; }));
    server->reset();
    int listens = 0;
    socklen_t size = sizeof listens;
    CHECK(::getsockopt(passed.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0);
    CHECK(listens == 1);  // whoever passed it has it still
    REQUIRE(client->dial(uri));
  }
}

TEST_CASE("passed_listener__what_does_not_listen_at_tcp__is_an_error_that_says_so") {
  const host::Descriptor of_udp = socket_at_loopback(SOCK_DGRAM, 0, false);
  const host::Descriptor silent = socket_at_loopback(SOCK_STREAM, 0, false);
  const host::Descriptor local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int fd : {of_udp.get(), silent.get(), local.get()}) {
    const auto net = net_of(fd);
    REQUIRE_FALSE(net);
    CHECK(net.error().kind == ErrorKind::usage);
    CHECK(net.error().message.find("does not listen at TCP") != std::string::npos);
  }
}

}  // namespace ccixfer::tcp
