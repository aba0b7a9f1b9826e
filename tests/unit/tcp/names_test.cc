// Names with several addresses.
#include "tests/unit/inet/names.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/tcp/calls.h"
#include "tests/unit/tcp/nets.h"
#include "transports/inet/resolver.h"
#include "transports/inet/uri.h"

namespace ccixfer::tcp {
namespace {

using host::Descriptor;

// A listener at 127.0.0.2 whose backlog is full: the kernel answers nothing to who dials.
struct SilentAddress {
  Descriptor listener, waits;
  explicit SilentAddress(uint16_t port) {
    listener.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener.get(), 0) == 0);
    waits.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(waits.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
};

struct Scene {
  std::unique_ptr<TcpNet> server = make();
  std::unique_ptr<TcpNet> client = make("127.0.0.1", false);
  Watch watch{{server.get(), client.get()}};
  uint16_t port = inet::parse_uri("tcp", server->uri())->port;
  SilentAddress silent{port};
  inet::testing::Names names;
  calls::Watched watched;
  StreamId dial(std::vector<std::string> addresses) {
    names.give("several.test", std::move(addresses));
    const StreamId id = *client->dial("tcp://several.test:" + std::to_string(port));
    REQUIRE(watch.run([&] { return watched.count(calls::Call::connect) == 1; }));
    return id;
  }
};

TEST_CASE("tcp_net__the_first_address_of_a_name_answers_nothing__the_next_one_is_tried") {
  Scene scene;
  const StreamId id = scene.dial({"127.0.0.2", "127.0.0.1"});
  CHECK(scene.watch.events[1].empty());
  scene.client->set_deadline(never);
  REQUIRE(readable(*scene.client, 20'000));  // the time of an address is the net's own affair
  scene.watch.poll();
  CHECK(scene.watched.count(calls::Call::connect) == 2);
  REQUIRE(scene.watch.run([&] { return scene.watch.find(1, StreamEventType::connected, id) != nullptr; }));
}

TEST_CASE("tcp_net__the_last_address_of_a_name__has_the_time_of_the_dial") {
  Scene scene;
  const StreamId id = scene.dial({"127.0.0.2"});
  scene.client->poll(scene.watch.clock.now() + 1h, [&](const StreamEvent& event) { scene.watch.events[1].push_back(event); });
  CHECK(scene.watched.count(calls::Call::connect) == 1);
  CHECK(scene.watch.find(1, StreamEventType::failed, id) == nullptr);
}

TEST_CASE("tcp_net__a_dial_is_withdrawn_while_another_address_is_left__no_other_is_tried") {
  Scene scene;
  const StreamId id = scene.dial({"127.0.0.2", "127.0.0.1"});
  scene.client->close(id);
  scene.client->poll(scene.watch.clock.now() + 1h, [&](const StreamEvent& event) { scene.watch.events[1].push_back(event); });
  CHECK(scene.watched.count(calls::Call::connect) == 1);
  CHECK(scene.watch.events[1].empty());
}

TEST_CASE("tcp_net__a_dial_is_withdrawn_while_its_name_waits__nobody_asks_for_it") {
  Scene scene;
  const std::string port = ":" + std::to_string(scene.port);
  scene.names.hang("slow.test");
  scene.names.give("other.test", {"127.0.0.1"});
  scene.names.give("unwanted.test", {"127.0.0.1"});
  const size_t asked = scene.names.asked();
  for (size_t i = 0; i < inet::Resolver::threads_max; ++i) REQUIRE(scene.client->dial("tcp://slow.test" + port));
  scene.names.wait_for_questions(asked + inet::Resolver::threads_max);
  scene.client->close(*scene.client->dial("tcp://unwanted.test" + port));
  const StreamId id = *scene.client->dial("tcp://other.test" + port);
  scene.names.let_go("slow.test");
  REQUIRE(scene.watch.run([&] { return scene.watch.find(1, StreamEventType::connected, id) != nullptr; }));
  CHECK(scene.names.asked() == asked + inet::Resolver::threads_max + 1);
}

}  // namespace
}  // namespace ccixfer::tcp
