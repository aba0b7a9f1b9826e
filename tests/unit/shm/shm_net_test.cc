// ShmNet between two nets of this process: names, bytes in order, waking, full rings, the end, descriptors.
#include "transports/shm/shm_net.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "core/host/waker.h"
#include "tests/unit/shm/nets.h"
#include "transports/shm/doorbell.h"

namespace ccixfer::shm {
namespace {

size_t open_descriptors() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

TEST_CASE("shm_net__bytes_both_ways__come_in_order") {
  Pair pair(8192);
  std::string sent, got;
  for (int i = 0; i < 4000; ++i) sent += std::to_string(i * 7919) + ",";
  for (const bool back : {false, true}) {
    ShmNet& from = back ? *pair.server : *pair.client;
    ShmNet& to = back ? *pair.client : *pair.server;
    size_t at = 0;
    got.clear();
    REQUIRE(pair.watch.run([&] {
      const int64_t n = send_text(from, back ? pair.in : pair.out, std::string_view(sent).substr(at, 3000));
      if (n > 0) at += static_cast<size_t>(n);
      while (recv_some(to, back ? pair.out : pair.in, got, 700) > 0) {
      }
      return got.size() == sent.size();
    }));
    CHECK(got == sent);
  }
}

TEST_CASE("shm_net__several_places__are_joined_on_the_way") {
  Pair pair;
  const std::string head = "head", body(100'000, 'b'), tail = "tail";
  const stream::ConstIoSpan from[] = {
      {as_bytes(head).data(), head.size()}, {as_bytes(body).data(), body.size()}, {as_bytes(tail).data(), tail.size()}};
  const int64_t taken = pair.client->send(pair.out, from);
  CHECK(taken == 64 << 10);  // the ring is full
  CHECK(pair.client->waiting_bytes(pair.out) == 64u << 10);
  std::string first(10, 0), second(70'000, 0);
  const stream::IoSpan into[] = {{reinterpret_cast<std::byte*>(first.data()), first.size()},
                                 {reinterpret_cast<std::byte*>(second.data()), second.size()}};
  CHECK(pair.server->recv(pair.in, into) == 64 << 10);
  CHECK(first == "headbbbbbb");
  CHECK(second.substr(0, (64 << 10) - 10) == std::string((64 << 10) - 10, 'b'));
  CHECK(pair.client->waiting_bytes(pair.out) == 0);
}

// While one side copies the other goes on: what comes meanwhile must not get into the wrong place.
TEST_CASE("shm_net__two_threads_and_places_of_many_sizes__the_bytes_stay_in_order") {
  Pair pair(8192);
  constexpr size_t total = 4'000'000;
  const auto byte_at = [](size_t i) { return static_cast<std::byte>(i * 7 % 251); };
  std::vector<std::byte> numbered(251 + 9000);
  for (size_t i = 0; i < numbered.size(); ++i) numbered[i] = byte_at(i);
  host::SystemClock clock;
  const Instant end = clock.now() + 60s;
  std::thread sender([&] {
    for (size_t sent = 0; sent < total && clock.now() < end;) {
      pair.client->poll(clock.now(), [](const StreamEvent&) {});
      const size_t size = std::min<size_t>(1 + sent % 8999, total - sent);
      const size_t first = size / 3;
      const std::byte* begin = numbered.data() + sent % 251;
      const stream::ConstIoSpan from[] = {{begin, first}, {begin + first, size - first}};
      const int64_t taken = pair.client->send(pair.out, from);
      if (taken > 0) sent += static_cast<size_t>(taken);
    }
  });
  size_t came = 0, wrong = 0;
  std::vector<std::byte> first(4000), second(4000);
  while (came < total && clock.now() < end) {
    pair.server->poll(clock.now(), [](const StreamEvent&) {});
    const size_t room = 1 + came % 3999;
    const stream::IoSpan into[] = {{first.data(), room}, {second.data(), second.size()}};
    const int64_t n = pair.server->recv(pair.in, into);
    if (n <= 0) continue;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const std::byte got = i < room ? first[i] : second[i - room];
      wrong += got == byte_at(came + i) ? 0u : 1u;
    }
    came += static_cast<size_t>(n);
  }
  sender.join();
  CHECK(came == total);
  CHECK(wrong == 0);
}

// Bytes come while a place is being filled short: between any two of many places that one receive fills.
TEST_CASE("shm_net__two_threads_and_many_short_places__what_comes_meanwhile_waits_for_the_next_receive") {
  Pair pair(8192);
  constexpr size_t total = 2'000'000;
  constexpr size_t places = 64, place_bytes = 16;
  const auto byte_at = [](size_t i) { return static_cast<std::byte>(i * 7 % 251); };
  std::vector<std::byte> numbered(251 + 64);
  for (size_t i = 0; i < numbered.size(); ++i) numbered[i] = byte_at(i);
  host::SystemClock clock;
  const Instant end = clock.now() + 60s;
  std::thread sender([&] {
    for (size_t sent = 0; sent < total && clock.now() < end;) {
      pair.client->poll(clock.now(), [](const StreamEvent&) {});
      const size_t size = std::min<size_t>(1 + sent % 5, total - sent);
      const stream::ConstIoSpan from[] = {{numbered.data() + sent % 251, size}};
      const int64_t taken = pair.client->send(pair.out, from);
      if (taken > 0) sent += static_cast<size_t>(taken);
    }
  });
  size_t came = 0, wrong = 0;
  std::vector<std::byte> memory(places * place_bytes);
  std::vector<stream::IoSpan> into;
  for (size_t i = 0; i < places; ++i) into.push_back({memory.data() + i * place_bytes, place_bytes});
  while (came < total && clock.now() < end) {
    pair.server->poll(clock.now(), [](const StreamEvent&) {});
    const int64_t n = pair.server->recv(pair.in, into);
    if (n <= 0) continue;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) wrong += memory[i] == byte_at(came + i) ? 0u : 1u;
    came += static_cast<size_t>(n);
  }
  sender.join();
  CHECK(came == total);
  CHECK(wrong == 0);
}

TEST_CASE("shm_net__who_sleeps__is_woken_by_bytes__and_who_does_not_is_not") {
  Pair pair;
  std::string got;
  CHECK(recv_some(*pair.server, pair.in, got) == stream::io_again);
  pair.watch.poll(0);  // whatever was there is taken
  REQUIRE(send_text(*pair.client, pair.out, "a") == 1);
  CHECK_FALSE(wakes(*pair.server));  // it did not say that it sleeps
  pair.server->set_deadline(never);
  CHECK(wakes(*pair.server));  // there is news: it may not sleep
  pair.watch.poll(0);
  REQUIRE(pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr);
  CHECK(recv_some(*pair.server, pair.in, got) == 1);
  pair.server->set_deadline(never);
  CHECK_FALSE(wakes(*pair.server));
  REQUIRE(send_text(*pair.client, pair.out, "b") == 1);
  CHECK(wakes(*pair.server));
  pair.watch.events[0].clear();
  pair.watch.poll(0);
  CHECK(pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr);
  CHECK(recv_some(*pair.server, pair.in, got) == 1);
  CHECK(got == "ab");
}

TEST_CASE("shm_net__a_full_ring__says_again_until_there_is_room") {
  Pair pair(8192);
  const std::string much(10'000, 'x');
  CHECK(send_text(*pair.client, pair.out, much) == 8192);
  CHECK(send_text(*pair.client, pair.out, much) == stream::io_again);
  pair.client->set_deadline(never);
  pair.watch.poll(1);
  CHECK(pair.watch.find(1, StreamEventType::writable) == nullptr);
  pair.client->set_deadline(never);
  CHECK_FALSE(wakes(*pair.client));
  std::string got;
  CHECK(recv_some(*pair.server, pair.in, got, 4096) == 4096);
  CHECK(wakes(*pair.client));
  pair.watch.poll(1);
  CHECK(pair.watch.find(1, StreamEventType::writable, pair.out) != nullptr);
  CHECK(send_text(*pair.client, pair.out, much) == 4096);
}

TEST_CASE("shm_net__closed__the_peer_reads_what_was_sent_before_and_then_the_end") {
  Pair pair;
  REQUIRE(send_text(*pair.client, pair.out, "last words") == 10);
  pair.client->close(pair.out);
  REQUIRE(pair.watch.run([&] { return pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr; }));
  std::string got;
  int64_t n = 0;
  REQUIRE(pair.watch.run([&] {
    while ((n = recv_some(*pair.server, pair.in, got, 4)) > 0) {
    }
    return n == stream::io_closed;
  }));
  CHECK(got == "last words");
  CHECK(send_text(*pair.server, pair.in, "x") == stream::io_closed);
  CHECK(recv_some(*pair.client, pair.out, got) == stream::io_error);  // the id is dead
  CHECK(send_text(*pair.client, pair.out, "x") == stream::io_error);
}

TEST_CASE("shm_net__a_process_that_is_killed__its_peer_reads_what_it_published_and_then_the_end") {
  const std::unique_ptr<ShmNet> server = make();
  const pid_t child = fork();
  if (child == 0) {  // no Catch in here
    auto net = ShmNet::create({.name = {}, .listen = false});
    const StreamId id = *(*net)->dial(server->uri());
    bool connected = false;
    while (!connected)
      (*net)->poll(host::SystemClock().now(),
                   [&](const StreamEvent& event) { connected = event.type == StreamEventType::connected; });
    if (send_text(**net, id, "published") != 9) _exit(1);
    kill(getpid(), SIGKILL);
    _exit(2);
  }
  Watch watch({server.get()});
  StreamId in = 0;
  std::string got;
  int64_t n = 0;
  REQUIRE(watch.run([&] {
    const StreamEvent* accepted = watch.find(0, StreamEventType::accepted);
    if (accepted == nullptr) return false;
    in = accepted->id;
    while ((n = recv_some(*server, in, got)) > 0) {
    }
    return n == stream::io_closed;
  }));
  CHECK(got == "published");
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

TEST_CASE("shm_net__names__taken_free_again_and_nobody_there") {
  ShmNetOptions options;
  options.name = "ccixfer-unit-" + std::to_string(getpid());
  auto one = ShmNet::create(options);
  REQUIRE(one);
  CHECK((*one)->uri() == "shm://" + options.name);
  const auto other = ShmNet::create(options);
  REQUIRE_FALSE(other);
  CHECK(other.error().kind == ErrorKind::network);
  CHECK(other.error().message == "cannot listen on shm://" + options.name + ": the name is in use");
  one->reset();
  CHECK(ShmNet::create(options));  // nothing stale is in the way
  options.name = "a/b";
  CHECK(ShmNet::create(options).error().kind == ErrorKind::usage);

  const std::unique_ptr<ShmNet> client = make({.name = {}, .listen = false});
  CHECK(client->uri().empty());
  CHECK(client->dial("tcp://h:1").error().kind == ErrorKind::usage);
  CHECK(client->dial("shm://").error().kind == ErrorKind::usage);
  Watch watch({client.get()});
  const StreamId id = *client->dial("shm://ccixfer-unit-nobody");
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::failed, id) != nullptr; }));
  CHECK(watch.find(0, StreamEventType::failed)->status == Status::refused);
  CHECK(watch.find(0, StreamEventType::failed)->reason == "shm://ccixfer-unit-nobody: nobody listens");
}

TEST_CASE("shm_net__names_that_were_not_given__are_all_different") {
  const std::unique_ptr<ShmNet> one = make(), other = make();
  CHECK(one->uri() != other->uri());
}

TEST_CASE("shm_net__many_streams__each_is_woken__and_nothing_is_left_open") {
  const size_t before = open_descriptors();
  {
    constexpr size_t count = 3 * streams_watched_max;
    const std::unique_ptr<ShmNet> server = make(), client = make({.name = {}, .listen = false});
    Watch watch({server.get(), client.get()});
    std::vector<StreamId> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(*client->dial(server->uri()));
    const auto all = [&](size_t net, StreamEventType type) {
      return static_cast<size_t>(std::count_if(watch.events[net].begin(), watch.events[net].end(),
                                               [&](const StreamEvent& event) { return event.type == type; }));
    };
    REQUIRE(watch.run([&] { return all(0, StreamEventType::accepted) == count && all(1, StreamEventType::connected) == count; }));
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < count; ++i) REQUIRE(send_text(*client, ids[i], std::to_string(i) + ";") > 0);
      size_t came = 0;
      std::string text;
      watch.events[0].clear();
      REQUIRE(watch.run([&] {
        for (const StreamEvent& event : std::exchange(watch.events[0], {})) {
          while (event.type == StreamEventType::readable && recv_some(*server, event.id, text) > 0) {
          }
        }
        came = static_cast<size_t>(std::count(text.begin(), text.end(), ';'));
        return came >= count;
      }));
      CHECK(came == count);
    }
    for (size_t i = 0; i < count; i += 2) client->close(ids[i]);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("shm_net__out_of_descriptors__accepting_pauses_and_goes_on") {
  const std::unique_ptr<ShmNet> server = make(), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const StreamId id = *client->dial(server->uri());
  const rlimit none{1, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_FALSE(server->accept_starves());
  watch.poll(0);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(server->accept_starves());
  CHECK(watch.find(0, StreamEventType::accepted) == nullptr);
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) && watch.find(1, StreamEventType::connected, id); }));
  CHECK_FALSE(server->accept_starves());
}

// Whoever waits in the backlog is not taken off it only to be sent away.
TEST_CASE("shm_net__too_few_descriptors_for_a_stream__who_dialled_waits_and_gets_in") {
  const std::unique_ptr<ShmNet> server = make(), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  const StreamId id = *client->dial(server->uri());
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  host::Descriptor next(dup(0));
  const int number = next.get();
  std::vector<host::Descriptor> filling;
  const bool is_half_full = GENERATE(true, false);
  const rlimit few{static_cast<rlim_t>(is_half_full ? 2 * number : 2 * number + 2), limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  if (!is_half_full) {  // one number is left, for the socket and not for the memory
    while (filling.empty() || filling.back()) filling.emplace_back(dup(0));
  }
  next.reset();
  watch.poll(0);
  watch.poll(1);
  filling.clear();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(server->accept_starves());
  CHECK(watch.events[0].empty());
  CHECK(watch.events[1].empty());
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) && watch.find(1, StreamEventType::connected, id); }));
}

TEST_CASE("shm_net__the_last_descriptor_for_a_stream_is_taken_and_nobody_waits__accepting_goes_on") {
  const std::unique_ptr<ShmNet> server = make(), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  static_cast<void>(*client->dial(server->uri()));
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int next = host::Descriptor(dup(0)).get();
  const rlimit few{static_cast<rlim_t>(2 * next + 2), limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  watch.poll(0);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(watch.find(0, StreamEventType::accepted) != nullptr);
  CHECK_FALSE(server->accept_starves());
}

TEST_CASE("shm_net__accepting_paused__the_backlog_holds_who_comes") {
  const std::unique_ptr<ShmNet> server = make({.name = {}, .backlog = 1}), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  server->pause_accept(true);
  std::vector<StreamId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(*client->dial(server->uri()));  // more than the backlog holds
  watch.poll(0);
  watch.poll(1);
  CHECK(watch.events[0].empty());
  CHECK(watch.events[1].empty());
  client->close(ids[7]);
  server->pause_accept(false);
  for (size_t i = 0; i < 7; ++i) {
    REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected, ids[i]) != nullptr; }));
  }
}

// As root only: the others have one user to be.
TEST_CASE("shm_net__another_user__meets_only_who_meets_anybody") {
  if (geteuid() != 0) return;
  constexpr uid_t stranger = 65534;
  Counters counters;
  const auto as_stranger = [](auto&& what) {
    REQUIRE(seteuid(stranger) == 0);
    auto made = what();
    REQUIRE(seteuid(0) == 0);
    return made;
  };
  for (const Meets meets : {Meets::own_user, Meets::anybody}) {
    // We dial what a stranger took the name of.
    const std::unique_ptr<ShmNet> theirs = as_stranger([] { return make({.name = {}, .meets = Meets::anybody}); });
    const std::unique_ptr<ShmNet> ours = make({.name = {}, .meets = meets, .counters = &counters});
    Watch watch({theirs.get(), ours.get()});
    const StreamId id = *ours->dial(theirs->uri());
    REQUIRE(watch.run([&] { return !watch.events[1].empty(); }));
    const StreamEvent event = watch.events[1].front();
    CHECK(event.id == id);
    CHECK(event.type == (meets == Meets::anybody ? StreamEventType::connected : StreamEventType::failed));
    if (meets == Meets::own_user) {
      CHECK(event.status == Status::refused);
      CHECK(event.reason == theirs->uri() + ": it is of user 65534, and connections without proof stay within one user");
    }
    // A stranger dials us.
    watch.events[0].clear();
    watch.events[1].clear();
    const StreamId inbound = as_stranger([&] { return *theirs->dial(ours->uri()); });
    REQUIRE(watch.run(
        [&] { return watch.find(0, StreamEventType::connected, inbound) || watch.find(0, StreamEventType::failed, inbound); }));
    CHECK((watch.find(0, StreamEventType::connected) != nullptr) == (meets == Meets::anybody));
    CHECK((watch.find(1, StreamEventType::accepted) != nullptr) == (meets == Meets::anybody));
    CHECK(counters.get(Counter::hello_rejected) == 1);
  }
}

// As the loop of a process does it.
TEST_CASE("shm_net__in_a_waker_that_waits_inside__no_wait_while_there_is_news") {
  auto waker = host::Waker::create(host::Waits::inside);
  REQUIRE(waker);
  const std::unique_ptr<ShmNet> server = make({.name = {}, .waker = *waker}), client = make({.name = {}, .listen = false});
  Watch watch({server.get(), client.get()});
  host::SystemClock clock;
  const StreamId out = *client->dial(server->uri());
  StreamId in = 0;
  while (in == 0 || watch.find(1, StreamEventType::connected) == nullptr) {
    watch.poll(0);
    watch.poll(1);
    if (const StreamEvent* accepted = watch.find(0, StreamEventType::accepted)) in = accepted->id;
  }
  for (int i = 0; i < 5; ++i) {
    REQUIRE(send_text(*client, out, "x") == 1);
    server->set_deadline(never);
    (*waker)->wait(clock.now(), never);  // else it would never end
    watch.events[0].clear();
    watch.poll(0);
    REQUIRE(watch.find(0, StreamEventType::readable, in) != nullptr);
    std::string got;
    REQUIRE(recv_some(*server, in, got) == 1);
    if (i % 2 == 1) {  // it sleeps, and is woken by the bell
      server->set_deadline(never);
      (*waker)->wait(clock.now(), clock.now() + 1ms);
      watch.poll(0);
    }
  }
}

}  // namespace
}  // namespace ccixfer::shm
