// Processes that are killed between any two steps of what they do with a stream: their peer gets what they published, and the end.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/unit/shm/nets.h"
#include "transports/shm/doorbell.h"

namespace ccixfer::shm {
namespace {

using host::Descriptor;

// Runs `act` in a process that is killed right after it, while the nets of `watch` go on.
template <typename Act>
void kill_after(Watch& watch, Act act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // no Catch in here
    alarm(60);       // should nobody be left who waits for it
    act();
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  REQUIRE(watch.run([&] { return waitpid(child, &status, WNOHANG) == child; }));
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
}

// A dialler by hand, in the process that is to be killed. Ends it with 2 where nothing comes.
struct Dialler {
  Descriptor socket;
  Segment segment;
  RingWriter out;

  explicit Dialler(const std::string& uri) : socket(dial_name(*parse_uri(uri))) {
    Closer closer;
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) != 1) _exit(2);
    auto taken = take_segment(socket.get(), closer);
    if (!taken || !*taken) _exit(2);
    segment = std::move(**taken);
    out = RingWriter(segment.ring(0));
  }
};

struct Scene {
  std::unique_ptr<ShmNet> server = make({.name = {}, .ring_bytes = 8192});
  Watch watch{{server.get()}};
  std::string got;

  // All that comes until the end.
  void read_all() {
    REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) != nullptr; }));
    const StreamId in = watch.find(0, StreamEventType::accepted)->id;
    int64_t n = 0;
    REQUIRE(watch.run([&] {
      while ((n = recv_some(*server, in, got)) > 0) {
      }
      return n == stream::io_closed;
    }));
    CHECK(send_text(*server, in, "x") == stream::io_closed);
  }
};

TEST_CASE("shm_killed__before_it_takes_the_memory__its_stream_ends") {
  Scene scene;
  kill_after(scene.watch, [&] {
    const Descriptor socket = dial_name(*parse_uri(scene.server->uri()));
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) != 1) _exit(2);
  });
  scene.read_all();
  CHECK(scene.got.empty());
}

TEST_CASE("shm_killed__before_it_publishes__what_it_wrote_never_was") {
  Scene scene;
  kill_after(scene.watch, [&] {
    Dialler dialler(scene.server->uri());
    if (dialler.out.append(as_bytes("published")) != 9) _exit(2);
    if (dialler.out.publish()) ring(dialler.socket.get());
    if (dialler.out.append(as_bytes("and not")) != 7) _exit(2);
  });
  scene.read_all();
  CHECK(scene.got == "published");
}

TEST_CASE("shm_killed__before_it_rings__what_it_published_comes_with_the_end") {
  Scene scene;
  kill_after(scene.watch, [&] {
    Dialler dialler(scene.server->uri());
    RingControl& control = *dialler.segment.ring(0).control;
    while (control.reader_waits == 0) sched_yield();
    if (dialler.out.append(as_bytes("published")) != 9 || !dialler.out.publish()) _exit(2);
  });
  scene.read_all();
  CHECK(scene.got == "published");
}

TEST_CASE("shm_killed__asleep_until_there_is_room__all_that_fits_comes_and_then_the_end") {
  Scene scene;
  kill_after(scene.watch, [&] {
    Dialler dialler(scene.server->uri());
    const std::string much(10'000, 'x');
    if (dialler.out.append(as_bytes(much)) != 8192) _exit(2);
    if (dialler.out.publish()) ring(dialler.socket.get());
    if (!dialler.out.wait()) _exit(2);
  });
  scene.read_all();
  CHECK(scene.got == std::string(8192, 'x'));
}

// It took nothing out of a ring that is full.
TEST_CASE("shm_killed__while_we_wait_for_room__we_are_told") {
  Scene scene;
  int ends[2] = {-1, -1};
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Descriptor told(ends[0]), tells(ends[1]);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // should nobody be left who waits for it
    const Dialler dialler(scene.server->uri());
    char byte = 0;
    if (read(told.get(), &byte, 1) != 1) _exit(2);
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  REQUIRE(scene.watch.run([&] { return scene.watch.find(0, StreamEventType::accepted) != nullptr; }));
  const StreamId in = scene.watch.find(0, StreamEventType::accepted)->id;
  REQUIRE(send_text(*scene.server, in, std::string(10'000, 'x')) == 8192);
  scene.server->set_deadline(never);
  REQUIRE(write(tells.get(), "x", 1) == 1);
  REQUIRE(scene.watch.run([&] { return scene.watch.find(0, StreamEventType::writable, in) != nullptr; }));
  CHECK(send_text(*scene.server, in, "x") == stream::io_closed);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

// A listener that is killed before it passes the memory.
TEST_CASE("shm_killed__a_listener_before_it_passes_memory__the_dial_fails") {
  const std::string name = "ccixfer-unit-killed-" + std::to_string(getpid());
  const std::unique_ptr<ShmNet> client = make({.name = {}, .listen = false});
  Watch watch({client.get()});
  int ends[2] = {-1, -1};
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Descriptor told(ends[0]), tells(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // should nobody be left who waits for it
    const auto listener = listen_at(name, 1);
    if (!listener || write(tells.get(), "x", 1) != 1) _exit(2);
    pollfd ready{listener->get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) != 1) _exit(2);
    const Descriptor peer = accept_at(listener->get());
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  char byte = 0;
  REQUIRE(read(told.get(), &byte, 1) == 1);
  const StreamId id = *client->dial(format_uri(name));
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::failed, id) != nullptr; }));
  CHECK(watch.find(0, StreamEventType::failed)->reason == format_uri(name) + ": the listener closed the connection");
  CHECK(waitpid(child, nullptr, 0) == child);
}

}  // namespace
}  // namespace ccixfer::shm
