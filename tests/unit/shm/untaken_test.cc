// Diallers that never take the memory that they are passed. It stays charged to the listener's account, which may have only so
// much.
#include "transports/shm/untaken.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tests/unit/shm/nets.h"
#include "tests/unit/shm/pass.h"
#include "transports/shm/doorbell.h"

namespace ccixfer::shm {
namespace {

using host::Descriptor;

constexpr uid_t stranger = 65534;

class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{count, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { static_cast<void>(setrlimit(RLIMIT_NOFILE, &before_)); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

std::vector<Descriptor> silent_diallers(const ShmNet& listener, size_t count) {
  std::vector<Descriptor> sockets;
  while (sockets.size() < count) {
    sockets.push_back(dial_name(*parse_uri(listener.uri())));
    REQUIRE(sockets.back());
  }
  return sockets;
}

size_t count_of(const Watch& watch, size_t net, StreamEventType type) {
  return static_cast<size_t>(std::count_if(watch.events[net].begin(), watch.events[net].end(),
                                           [type](const StreamEvent& event) { return event.type == type; }));
}

struct Scene {
  FewDescriptors few{320};  // so that a user may leave 20
  std::unique_ptr<ShmNet> server = make({.name = {}, .meets = Meets::anybody}), client = make({.name = {}, .listen = false});
  Watch watch{{server.get(), client.get()}};

  // What each of these has not taken, after all were accepted.
  std::vector<Descriptor> accepted_diallers(size_t count) {
    auto sockets = silent_diallers(*server, count);
    REQUIRE(watch.run([&] { return count_of(watch, 0, StreamEventType::accepted) == count; }));
    return sockets;
  }
  void close_all() {
    for (const StreamEvent& event : std::exchange(watch.events[0], {})) server->close(event.id);
  }
};

size_t count_passed(const std::vector<Descriptor>& sockets) {
  return static_cast<size_t>(std::count_if(sockets.begin(), sockets.end(), [](const Descriptor& socket) {
    char byte = 0;
    return recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }));
}

TEST_CASE("shm_untaken__diallers_that_take_nothing__only_so_many_are_passed_memory") {
  Scene scene;
  std::vector<Descriptor> silent = scene.accepted_diallers(30);
  CHECK(count_passed(silent) == 20);
  scene.close_all();  // the end of a stream does not take back what it was passed
  for (const Descriptor& socket : silent) {
    char byte = 0;
    CHECK(recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0);  // or its end: each is told of it
  }
  const StreamId out = *scene.client->dial(scene.server->uri());
  REQUIRE(scene.watch.run([&] { return count_of(scene.watch, 0, StreamEventType::accepted) == 1; }));
  const StreamId in = scene.watch.find(0, StreamEventType::accepted)->id;
  CHECK(send_text(*scene.server, in, "welcome") == stream::io_again);
  scene.watch.poll(1);
  CHECK(scene.watch.events[1].empty());
  silent.erase(silent.begin());  // with what it was passed
  REQUIRE(scene.watch.run([&] { return scene.watch.find(1, StreamEventType::connected, out) != nullptr; }));
  CHECK(scene.watch.find(0, StreamEventType::writable, in) != nullptr);
  std::string got;
  CHECK(send_text(*scene.server, in, "welcome") == 7);
  REQUIRE(scene.watch.run([&] { return recv_some(*scene.client, out, got) == 7; }));
}

TEST_CASE("shm_untaken__those_that_take_theirs__do_not_count") {
  Scene scene;
  for (int round = 0; round < 3; ++round) {
    std::vector<StreamId> ids;
    for (size_t i = 0; i < 15; ++i) ids.push_back(*scene.client->dial(scene.server->uri()));
    REQUIRE(scene.watch.run([&] { return count_of(scene.watch, 1, StreamEventType::connected) == 15; }));
    if (round == 1) scene.close_all();
    scene.watch.events[1].clear();
  }
}

TEST_CASE("shm_untaken__a_dialler_that_waits_for_memory_and_goes__its_stream_ends") {
  Scene scene;
  std::vector<Descriptor> silent = scene.accepted_diallers(21);
  REQUIRE(count_passed(silent) == 20);
  const StreamId last = scene.watch.events[0].back().id;
  silent.pop_back();
  REQUIRE(scene.watch.run([&] { return scene.watch.find(0, StreamEventType::failed, last) != nullptr; }));
}

// As root only, as what follows: the others have one user to be.
TEST_CASE("shm_untaken__what_a_stranger_leaves__another_user_does_not_wait_for") {
  if (geteuid() != 0) return;
  Scene scene;
  REQUIRE(seteuid(stranger) == 0);
  const std::vector<Descriptor> silent = scene.accepted_diallers(30);
  REQUIRE(seteuid(0) == 0);
  CHECK(count_passed(silent) == 20);
  const StreamId out = *scene.client->dial(scene.server->uri());
  REQUIRE(scene.watch.run([&] { return scene.watch.find(1, StreamEventType::connected, out) != nullptr; }));
}

TEST_CASE("shm_untaken__strangers_of_many_users__leave_room_for_ours") {
  const FewDescriptors few(320);
  size_t closed = 0;
  Untaken untaken([&](const Descriptor&) { ++closed; });
  std::vector<Descriptor> peers;
  const auto leave_one = [&](uid_t user) {
    int ends[2] = {-1, -1};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    Descriptor ours(ends[0]);
    peers.emplace_back(ends[1]);
    ring(ours.get());
    untaken.add(user, ours.get());
    REQUIRE(untaken.stands_in(ours.get()));
    untaken.keep(std::move(ours));
  };
  for (size_t i = 0; i < 80; ++i) {  // a quarter of 320
    const uid_t user = geteuid() + 1 + static_cast<uid_t>(i % 8);
    REQUIRE(untaken.has_room(user));
    leave_one(user);
  }
  CHECK_FALSE(untaken.has_room(geteuid() + 100));
  CHECK(untaken.has_room(geteuid()));
  CHECK(untaken.keeps_any());
  peers.clear();
  CHECK(untaken.has_room(geteuid() + 100));
  CHECK(closed == 80);
  CHECK_FALSE(untaken.keeps_any());
}

// Somebody else of our account has passed as much as it may. Without the privileges of root, whom the kernel does not bound.
TEST_CASE("shm_untaken__nothing_can_be_passed_now__the_dialler_waits_and_gets_in") {
  if (geteuid() != 0) return;
  const FewDescriptors few(100);
  const std::unique_ptr<ShmNet> server = make({.name = {}, .meets = Meets::anybody}), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  int ends[2] = {-1, -1};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Descriptor one(ends[0]), other(ends[1]);
  const std::vector<int> many(50, 0);
  for (int i = 0; i < 3; ++i) REQUIRE(pass(one.get(), "x", many));
  const StreamId out = *client->dial(server->uri());
  REQUIRE(seteuid(stranger) == 0);
  watch.poll(0);
  REQUIRE(seteuid(0) == 0);
  CHECK(count_of(watch, 0, StreamEventType::accepted) == 1);
  watch.poll(1);
  CHECK(watch.events[1].empty());
  other.reset();
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected, out) != nullptr; }));
}

// The listener is a process of another user, without privileges; it closes who says nothing, as the protocol above does.
TEST_CASE("shm_untaken__more_silent_diallers_than_descriptors__an_honest_one_gets_in") {
  if (geteuid() != 0) return;
  const std::string name = "ccixfer-unit-untaken-" + std::to_string(getpid());
  int ends[2] = {-1, -1};
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Descriptor told(ends[0]), tells(ends[1]);
  const pid_t child = fork();
  if (child == 0) {  // no Catch in here
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0 || setresuid(stranger - 1, stranger - 1, stranger - 1) != 0) _exit(1);
    auto net = ShmNet::create({.name = name, .meets = Meets::anybody});
    if (!net || write(tells.get(), "x", 1) != 1) _exit(1);
    const std::string silent = "shm://user-" + std::to_string(stranger) + ".";
    for (;;) {
      std::vector<StreamId> out;
      (*net)->poll(host::SystemClock().now(), [&](const StreamEvent& event) {
        if (event.type == StreamEventType::accepted && event.reason.starts_with(silent)) out.push_back(event.id);
      });
      for (const StreamId id : out) (*net)->close(id);
      if (!out.empty()) continue;
      (*net)->set_deadline(never);
      pollfd handle{(*net)->os_handle(), POLLIN, 0};
      ::poll(&handle, 1, 1000);
    }
  }
  char byte = 0;
  REQUIRE(read(told.get(), &byte, 1) == 1);
  const std::unique_ptr<ShmNet> client = make({.name = {}, .listen = false, .meets = Meets::anybody});
  std::vector<Descriptor> silent;
  REQUIRE(seteuid(stranger) == 0);
  for (int i = 0; i < 200; ++i) silent.push_back(dial_name(name));
  REQUIRE(seteuid(0) == 0);
  CHECK(std::all_of(silent.begin(), silent.end(), [](const Descriptor& socket) { return static_cast<bool>(socket); }));
  Watch watch({client.get()});
  const StreamId out = *client->dial(format_uri(name));
  CHECK(watch.run([&] { return !watch.events[0].empty(); }));
  CHECK(watch.find(0, StreamEventType::connected, out) != nullptr);
  kill(child, SIGKILL);
  CHECK(waitpid(child, nullptr, 0) == child);
}

}  // namespace
}  // namespace ccixfer::shm
