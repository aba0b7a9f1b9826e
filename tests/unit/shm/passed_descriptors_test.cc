// Peers that pass descriptors whose last close waits for as long as the peer likes. Our thread waits for none.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/unit/shm/lingering.h"
#include "tests/unit/shm/nets.h"
#include "tests/unit/shm/pass.h"
#include "transports/shm/doorbell.h"

namespace ccixfer::shm {
namespace {

using host::Descriptor;

// A net that has dialled a listener by hand.
struct Dialled {
  Counters counters;
  std::string name = "ccixfer-unit-passes-" + std::to_string(getpid());
  Descriptor listener;
  std::unique_ptr<ShmNet> net = make({.name = {}, .listen = false, .counters = &counters});
  Watch watch{{net.get()}};
  StreamId id = 0;
  Descriptor peer;
  LingeringSocket passed;

  Dialled() {
    auto listening = listen_at(name, 1);
    REQUIRE(listening);
    listener = std::move(*listening);
    id = *net->dial(format_uri(name));
    peer.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(peer);
  }
  void meet() {
    const auto segment = Segment::create(8192);
    REQUIRE(segment);
    REQUIRE(pass_segment(peer.get(), *segment));
    REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::connected) != nullptr; }));
  }
  void pass_one(int flags = 0) {
    REQUIRE(pass(peer.get(), "x", {passed.get()}, flags));
    passed.forget();
  }
};

TEST_CASE("shm_passed_descriptors__many_with_the_first_words__nobody_waits") {
  Dialled dialled;
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::vector<int> descriptors{null.get(), null.get(), null.get(), null.get(), dialled.passed.get()};
  REQUIRE(pass(dialled.peer.get(), "sixteen letters.", descriptors));
  dialled.passed.forget();
  HeldUp held_up([&] { dialled.passed.let_go(); });
  REQUIRE(dialled.watch.run([&] { return dialled.watch.find(0, StreamEventType::failed) != nullptr; }));
  CHECK_FALSE(held_up.end());
  CHECK(dialled.watch.find(0, StreamEventType::failed)->reason.ends_with(": the peer does not speak shm"));
}

TEST_CASE("shm_passed_descriptors__with_a_bell__ends_the_stream_and_nobody_waits") {
  Dialled dialled;
  dialled.meet();
  dialled.pass_one(GENERATE(0, static_cast<int>(MSG_OOB)));
  HeldUp held_up([&] { dialled.passed.let_go(); });
  REQUIRE(dialled.watch.run([&] {
    ring(dialled.peer.get());
    return dialled.watch.find(0, StreamEventType::failed) != nullptr;
  }));
  CHECK_FALSE(held_up.end());
  CHECK(dialled.watch.find(0, StreamEventType::failed)->reason == "the peer passed descriptors in place of a bell");
  CHECK(dialled.counters.get(Counter::shared_rings_rejected) == 1);
}

TEST_CASE("shm_passed_descriptors__the_stream_is_closed_with_one_in_its_socket__nobody_waits") {
  Dialled dialled;
  const bool met = GENERATE(false, true);
  if (met) dialled.meet();
  dialled.pass_one();
  HeldUp held_up([&] { dialled.passed.let_go(); });
  dialled.net->close(dialled.id);
  CHECK_FALSE(held_up.end());
  char byte = 0;
  CHECK(recv(dialled.peer.get(), &byte, 1, 0) <= 0);  // the peer is told of the end: it waits no more
}

TEST_CASE("shm_passed_descriptors__unread_bells_without_any__the_socket_is_closed_at_once") {
  Dialled dialled;
  dialled.meet();
  for (int i = 0; i < 10; ++i) ring(dialled.peer.get());
  dialled.watch.poll(0);
  dialled.net->close(dialled.id);
  CHECK(send(dialled.peer.get(), "x", 1, MSG_NOSIGNAL) == -1);
  CHECK(errno == EPIPE);
}

// Each such listener leaves two descriptors that are to be closed.
TEST_CASE("shm_passed_descriptors__as_many_wait_to_be_closed_as_may__the_next_dial_waits") {
  Dialled dialled;
  dialled.net = make({.name = {}, .listen = false, .closing_threads = 0});
  dialled.watch.nets = {dialled.net.get()};
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto accept_one = [&] { return Descriptor(accept4(dialled.listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); };
  for (size_t closing = 0; closing < Closer::waiting_max; closing += 2) {
    dialled.watch.events[0].clear();
    static_cast<void>(*dialled.net->dial(format_uri(dialled.name)));
    const Descriptor peer = accept_one();
    REQUIRE(peer);
    REQUIRE(pass(peer.get(), "sixteen letters.", {null.get()}));
    REQUIRE(dialled.watch.run([&] { return dialled.watch.find(0, StreamEventType::failed) != nullptr; }));
  }
  dialled.watch.events[0].clear();
  static_cast<void>(*dialled.net->dial(format_uri(dialled.name)));
  CHECK_FALSE(accept_one());
  dialled.watch.poll(0);
  CHECK_FALSE(accept_one());
  CHECK(dialled.watch.events[0].empty());
}

// Where the kernel refuses them at the door, since Linux 6.16.
TEST_CASE("shm_passed_descriptors__from_a_dialler__are_refused_or_end_its_stream") {
  constexpr int pass_rights = 83;
  int value = 0;
  socklen_t size = sizeof value;
  Counters counters;
  const std::unique_ptr<ShmNet> server = make({.name = {}, .counters = &counters});
  Watch watch({server.get()});
  const Descriptor peer = dial_name(*parse_uri(server->uri()));
  REQUIRE(peer);
  const bool kernel_refuses = getsockopt(peer.get(), SOL_SOCKET, pass_rights, &value, &size) == 0;
  LingeringSocket passed;
  const bool passes = pass(peer.get(), "x", {passed.get()});
  CHECK(passes == !kernel_refuses);
  if (passes) passed.forget();
  HeldUp held_up([&] { passed.let_go(); });
  REQUIRE(watch.run([&] {
    ring(peer.get());
    return watch.find(0, passes ? StreamEventType::failed : StreamEventType::accepted) != nullptr;
  }));
  CHECK_FALSE(held_up.end());
}

}  // namespace
}  // namespace ccixfer::shm
