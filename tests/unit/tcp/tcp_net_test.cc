// Streams over sockets of this host: dial, send, end, waits, and accepting that pauses.
#include "transports/tcp/tcp_net.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "core/sandbox/sandbox.h"
#include "tests/unit/tcp/calls.h"
#include "tests/unit/tcp/nets.h"
#include "transports/inet/uri.h"

namespace ccixfer::tcp {
namespace {

TEST_CASE("tcp_net__dial_send_close__bytes_arrive_and_the_end_is_orderly") {
  const std::string host = GENERATE(as<std::string>{}, "127.0.0.1", "::1", "localhost");
  auto made = TcpNet::create({.listen_host = host, .port = 0, .interface_name = {}, .backlog = 16, .listen = true});
  if (!made && host == "::1") return;  // a machine without IPv6
  REQUIRE(made);
  TcpNet& server = **made;
  const auto client = make("127.0.0.1", false);
  CHECK(client->uri().empty());
  Watch watch({&server, client.get()});
  const auto dialled = client->dial(server.uri());
  REQUIRE(dialled);
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) && watch.find(0, StreamEventType::accepted); }));
  const StreamId accepted = watch.find(0, StreamEventType::accepted)->id;
  std::string got;
  CHECK(recv_some(server, accepted, got) == stream::io_again);
  REQUIRE(send_text(*client, *dialled, "hello") == 5);
  REQUIRE(watch.run([&] {
    static_cast<void>(recv_some(server, accepted, got));
    return got == "hello";
  }));
  client->close(*dialled);
  REQUIRE(watch.run([&] { return recv_some(server, accepted, got) == stream::io_closed; }));
  CHECK(send_text(*client, *dialled, "x") == stream::io_error);  // the id is dead
  server.close(accepted);
  server.close(accepted);
}

TEST_CASE("tcp_net__path_figures__are_those_of_the_kernel_while_the_stream_is_open") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const auto dialled = client->dial(server->uri());
  REQUIRE(dialled);
  CHECK_FALSE(client->path_figures(*dialled));
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) && watch.find(0, StreamEventType::accepted); }));
  const auto before = client->path_figures(*dialled);
  REQUIRE(before);
  CHECK(before->resent_packets == 0);
  CHECK(before->round_trip > Duration{0});
  CHECK(before->round_trip_least > Duration{0});
  CHECK(before->round_trip_least <= std::chrono::seconds(10));
  REQUIRE(send_text(*client, *dialled, "hello") == 5);
  CHECK(client->path_figures(*dialled)->sent_packets == before->sent_packets + 1);
  client->close(*dialled);
  CHECK_FALSE(client->path_figures(*dialled));
}

TEST_CASE("tcp_net__name_resolved_off_thread__connects_and_unknown_names_fail") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const std::string uri = server->uri();
  const auto port = inet::parse_uri("tcp", uri)->port;
  const auto dialled = client->dial("tcp://localhost:" + std::to_string(port));
  REQUIRE(dialled);
  const auto withdrawn = client->dial("tcp://localhost:" + std::to_string(port));
  REQUIRE(withdrawn);
  client->close(*withdrawn);
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected, *dialled) != nullptr; }));
  // .invalid never exists (RFC 6761); no packet leaves this machine for what is not even a name.
  const auto unknown = client->dial("tcp://no_such..name:1");
  REQUIRE(unknown);
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::failed, *unknown) != nullptr; }));
  CHECK(watch.find(1, StreamEventType::failed, *unknown)->status == Status::not_found);
}

TEST_CASE("tcp_net__nobody_listens__refused") {
  const auto client = make("127.0.0.1", false);
  std::string uri;
  { uri = make()->uri(); }
  Watch watch({client.get()});
  const auto dialled = client->dial(uri);
  REQUIRE(dialled);
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::failed, *dialled) != nullptr; }));
  CHECK(watch.find(0, StreamEventType::failed)->status == Status::refused);
  CHECK_FALSE(watch.find(0, StreamEventType::failed)->reason.empty());
}

TEST_CASE("tcp_net__address_in_use_or_impossible__an_error_that_says_so") {
  const auto first = make();
  TcpNetOptions options;
  options.listen_host = "127.0.0.1";
  options.port = inet::parse_uri("tcp", first->uri())->port;
  const auto second = TcpNet::create(options);
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::network);
  CHECK(second.error().message.find("in use") != std::string::npos);
  options.port = 0;
  options.interface_name = "no-such-if0";
  CHECK_FALSE(TcpNet::create(options));
  options.interface_name.clear();
  options.listen_host = "203.0.113.77";
  CHECK_FALSE(TcpNet::create(options));
}

TEST_CASE("tcp_net__bound_to_every_address__uris_can_be_dialled") {
  const auto net = make("0.0.0.0");
  const auto uris = net->uris();
  REQUIRE_FALSE(uris.empty());
  CHECK(net->uri() == uris.front());
  for (const std::string& uri : uris) {
    CHECK(inet::parse_uri("tcp", uri));
    CHECK(uri.find("0.0.0.0") == std::string::npos);
  }
}

TEST_CASE("tcp_net__deadline_and_poke__the_handle_becomes_readable") {
  const auto net = make();
  host::SystemClock clock;
  const auto nothing = [](const StreamEvent&) { FAIL("no event"); };
  net->poll(clock.now(), nothing);
  CHECK_FALSE(readable(*net));
  const Instant now = clock.now();
  net->poll(now, nothing);
  net->set_deadline(now);  // due: at once
  CHECK(readable(*net));
  net->poll(clock.now(), nothing);
  CHECK_FALSE(readable(*net));
  net->set_deadline(clock.now() + 20ms);
  CHECK(readable(*net, 10000));
  net->poll(clock.now(), nothing);
  CHECK_FALSE(readable(*net));
  // A second one after the first has fired; and one that is moved closer.
  net->set_deadline(clock.now() + 1h);
  CHECK_FALSE(readable(*net));
  net->set_deadline(clock.now() + 20ms);
  CHECK(readable(*net, 10000));
}

// An application may take its time between a turn and the wait.
TEST_CASE("tcp_net__deadline_set_long_after_the_last_poll__does_not_come_later_for_that") {
  const auto net = make();
  host::SystemClock clock;
  net->poll(clock.now(), [](const StreamEvent&) { FAIL("no event"); });
  const Instant polled = clock.now();
  static_cast<void>(readable(*net, 600));  // nothing happens; time passes
  net->set_deadline(polled + 550ms);
  CHECK(readable(*net, 300));
}

TEST_CASE("tcp_net__full_socket__again_then_writable_when_the_peer_reads") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const auto dialled = client->dial(server->uri());
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) && watch.find(0, StreamEventType::accepted); }));
  const StreamId accepted = watch.find(0, StreamEventType::accepted)->id;
  watch.poll();
  const std::string block(1u << 20, 'x');
  int64_t sent = 0;
  for (;;) {
    const int64_t n = send_text(*client, *dialled, block);
    if (n == stream::io_again) break;
    REQUIRE(n > 0);
    sent += n;
  }
  watch.events[1].clear();
  std::string got;
  REQUIRE(watch.run([&] {
    std::string part;
    while (recv_some(*server, accepted, part) > 0) {
    }
    got += part;
    return got.size() == static_cast<size_t>(sent) && watch.find(1, StreamEventType::writable);
  }));
}

// An edge is told once: what a wait was told the next poll reports.
TEST_CASE("tcp_net__a_wait_ends_for_bytes__the_next_poll_reports_them") {
  const auto waker = make_waker();
  Pair pair(ByReference::never, waker);
  pair.watch.poll();
  REQUIRE(send_text(*pair.client, pair.out, "hello") == 5);
  REQUIRE(readable(*pair.server, 10000));
  pair.watch.events[0].clear();
  const Instant now = pair.watch.clock.now();
  waker->wait(now, now + 20s);
  waker->wait(now, never);  // not again before it is reported
  pair.watch.poll();
  CHECK(pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr);
}

// Several endpoints of one process.
TEST_CASE("tcp_net__two_that_share_a_waker__one_wait_and_one_call_for_both") {
  const auto waker = make_waker();
  Pair one(ByReference::never, waker), two(ByReference::never, waker);
  const auto poll = [&](Pair& pair) {
    pair.server->poll(pair.watch.clock.now(), [&](const StreamEvent& event) { pair.watch.events[0].push_back(event); });
  };
  for (int i = 0; i < 2; ++i) {  // what came with the connections
    poll(one);
    poll(two);
  }
  one.watch.events[0].clear();
  two.watch.events[0].clear();
  REQUIRE(send_text(*one.client, one.out, "1") == 1);
  REQUIRE(send_text(*two.client, two.out, "2") == 1);
  REQUIRE(readable(*one.server, 10000));
  calls::Watched watched;
  const Instant now = one.watch.clock.now();
  waker->wait(now, now + 20s);
  poll(one);
  poll(two);
  CHECK(watched.count(calls::Call::epoll_wait) == 1);
  CHECK(one.watch.find(0, StreamEventType::readable, one.in) != nullptr);
  CHECK(two.watch.find(0, StreamEventType::readable, two.in) != nullptr);
  // Polls without a wait: one question for both. Neither guesses, as the other depends on what it asks.
  watched.forget();
  for (int i = 0; i < 10; ++i) {
    poll(one);
    poll(two);
  }
  CHECK(watched.count(calls::Call::epoll_wait) <= 11);
  CHECK(watched.count(calls::Call::recv) == 0);
  one.server.reset();
  std::string got;
  REQUIRE(send_text(*two.client, two.out, "3") == 1);
  two.watch.nets.erase(two.watch.nets.begin() + 1);  // the client has nothing to do
  REQUIRE(two.watch.run([&] {
    static_cast<void>(recv_some(*two.server, two.in, got));
    return got == "23";
  }));
}

TEST_CASE("tcp_net__a_signal_in_a_wait__nothing_came_and_nothing_is_lost") {
  const auto waker = make_waker();
  Pair pair(ByReference::never, waker);
  pair.watch.poll();
  pair.watch.poll();
  REQUIRE(send_text(*pair.client, pair.out, "hello") == 5);
  calls::Watched watched;
  watched.fail(calls::Call::epoll_wait, EINTR, 2);
  const Instant now = pair.watch.clock.now();
  waker->wait(now, never);
  pair.watch.events[0].clear();
  pair.server->poll(now, [](const StreamEvent&) { FAIL("no event"); });
  CHECK(watched.count(calls::Call::epoll_wait) == 1);  // the wait was the question
  waker->wait(now, never);
  waker->wait(now, never);
  pair.watch.poll();
  CHECK(pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr);
}

TEST_CASE("tcp_net__a_dial_that_fails_at_once__ends_a_wait") {
  const auto waker = make_waker();
  const auto client = make("127.0.0.1", false, ByReference::never, waker);
  Watch watch({client.get()});
  watch.poll();
  client->set_deadline(never);
  calls::Watched watched;
  watched.fail(calls::Call::connect, ECONNREFUSED);
  const auto dialled = client->dial("tcp://127.0.0.1:9");
  REQUIRE(dialled);
  waker->wait(watch.clock.now(), never);
  watch.poll();
  CHECK(watch.find(0, StreamEventType::failed, *dialled) != nullptr);
  client->set_deadline(never);
  const Instant now = watch.clock.now();
  waker->wait(now, now + 2ms);  // it was told: this one waits
  CHECK(watch.clock.now() >= now + 2ms);
}

// Polls without a wait between them try the stream that had bytes last, and yet find those of others within the bound.
TEST_CASE("tcp_net__polls_in_a_row__the_busy_stream_is_tried_and_others_are_found") {
  Pair pair(ByReference::never, make_waker());
  TcpNet& server = *pair.server;
  const auto other_out = pair.client->dial(server.uri());
  REQUIRE(pair.watch.run([&] { return pair.watch.count(0, StreamEventType::accepted) == 2; }));
  StreamId other_in = 0;
  for (const StreamEvent& event : pair.watch.events[0]) {
    if (event.type == StreamEventType::accepted && event.id != pair.in) other_in = event.id;
  }
  pair.watch.poll();

  std::string got;
  REQUIRE(send_text(*pair.client, pair.out, "1") == 1);
  REQUIRE(pair.watch.run([&] { return recv_some(server, pair.in, got) == 1; }));
  REQUIRE(send_text(*pair.client, pair.out, "2") == 1);
  REQUIRE(readable(server, 10000));
  server.poll(pair.watch.clock.now(), [&](const StreamEvent& event) { CHECK(event.id == pair.in); });
  CHECK(recv_some(server, pair.in, got) == 1);
  CHECK(got == "12");

  REQUIRE(send_text(*pair.client, *other_out, "3") == 1);
  REQUIRE(readable(server, 10000));
  uint32_t polls = 0, tries = 0;
  for (bool found = false; !found && polls < 1000; ++polls) {
    server.poll(pair.watch.clock.now(), [&](const StreamEvent& event) {
      found = found || event.id == other_in;
      tries += event.id == pair.in ? 1u : 0u;
      if (event.id == pair.in) static_cast<void>(recv_some(server, pair.in, got));
    });
  }
  CHECK(polls <= guesses_in_a_row_max + 1);
  CHECK(tries > 1);
  CHECK(recv_some(server, other_in, got) == 1);
  CHECK(got == "123");
}

TEST_CASE("tcp_net__its_handle_is_waited_for__each_poll_asks_and_tries_nothing") {
  Pair pair(ByReference::never);
  std::string got;
  REQUIRE(send_text(*pair.client, pair.out, "1") == 1);
  REQUIRE(pair.watch.run([&] { return recv_some(*pair.server, pair.in, got) == 1; }));
  for (int i = 0; i < 3; ++i) pair.server->poll(pair.watch.clock.now(), [](const StreamEvent&) { FAIL("no event"); });
}

TEST_CASE("tcp_net__less_came_than_there_was_room_for__flushing_until_told") {
  Pair pair(ByReference::never);
  TcpNet& server = *pair.server;
  std::string got;
  CHECK_FALSE(server.nothing_to_read(pair.in));
  REQUIRE(send_text(*pair.client, pair.out, "1") == 1);
  REQUIRE(pair.watch.run([&] { return recv_some(server, pair.in, got) == 1; }));
  CHECK(server.nothing_to_read(pair.in));
  REQUIRE(send_text(*pair.client, pair.out, "2") == 1);
  REQUIRE(readable(server, 10000));
  CHECK(server.nothing_to_read(pair.in));  // not told yet
  pair.watch.poll();
  CHECK_FALSE(server.nothing_to_read(pair.in));
  CHECK(recv_some(server, pair.in, got) == 1);
  CHECK(server.nothing_to_read(pair.in));
  REQUIRE(send_text(*pair.client, pair.out, "3") == 1);
  pair.client->close(pair.out);
  // The end is behind the last bytes, and nothing will tell of it again.
  REQUIRE(pair.watch.run([&] { return recv_some(server, pair.in, got) == stream::io_closed; }));
  CHECK(got == "123");
  CHECK_FALSE(server.nothing_to_read(pair.in));
  server.close(pair.in);
  CHECK_FALSE(server.nothing_to_read(pair.in));
}

// Where the kernel confines nothing there is nothing to see.
TEST_CASE("tcp_net__process_is_confined_after_it_was_made__still_knows_its_machine") {
  constexpr int known = 0, not_known = 1, not_confined = 2;
  const auto net = make();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!sandbox::enter({})) _exit(not_confined);
    _exit(net->machine().number != 0 && net->machine().booted_ms != 0 ? known : not_known);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == known);
}

// Containers of one machine have its number, whatever addresses they have.
TEST_CASE("tcp_net__machine__is_the_kernels") {
  const auto one = make(), other = make();
  CHECK(one->machine().number != 0);
  CHECK(one->machine().number == other->machine().number);
  const auto now_ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  CHECK(one->machine().booted_ms > now_ms - uint64_t{20} * 365 * 86'400'000);
  CHECK(one->machine().booted_ms < now_ms);
  wire::HostIdentity in_a_container = other->machine();  // as LXC shows it
  ++in_a_container.number;
  CHECK_FALSE(wire::are_apart(one->machine(), in_a_container));
}

TEST_CASE("tcp_net__paused__the_backlog_holds_what_comes") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  server->pause_accept(true);
  REQUIRE(client->dial(server->uri()));
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) != nullptr; }));
  watch.poll();
  CHECK_FALSE(watch.find(0, StreamEventType::accepted));
  CHECK_FALSE(readable(*server));
  server->pause_accept(false);
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) != nullptr; }));
}

TEST_CASE("tcp_net__out_of_descriptors__accepting_pauses_the_others_go_on_and_it_resumes") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const auto first = client->dial(server->uri());
  REQUIRE(watch.run(
      [&] { return watch.count(0, StreamEventType::accepted) == 1 && watch.find(1, StreamEventType::connected, *first); }));
  const StreamId accepted = watch.find(0, StreamEventType::accepted)->id;
  const auto second = client->dial(server->uri());
  // No descriptor is left from here on.
  const int next = dup(0);
  REQUIRE(next >= 0);
  close(next);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool connected = watch.run([&] { return watch.find(1, StreamEventType::connected, *second) != nullptr; });
  for (int i = 0; i < 5; ++i) watch.poll();
  const size_t accepts = watch.count(0, StreamEventType::accepted);
  // It does not spin on the listener that it cannot serve.
  const bool spins = readable(*server);
  std::string got;
  const bool sends = send_text(*client, *first, "still here") == 10;
  const bool receives = watch.run([&] {
    static_cast<void>(recv_some(*server, accepted, got));
    return got == "still here";
  });
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connected);
  CHECK(accepts == 1);
  CHECK_FALSE(spins);
  CHECK(sends);
  CHECK(receives);
  server->set_deadline(never);  // as every turn does: the retry is its own affair
  REQUIRE(watch.run([&] { return watch.count(0, StreamEventType::accepted) == 2; }));
}

TEST_CASE("tcp_net__the_last_descriptor_for_a_stream_is_taken_and_nobody_waits__accepting_goes_on") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  int first_after = 0;  // the first time without a bound, to learn which number is the one behind the stream's
  for (const bool bounded : {false, true}) {
    const rlimit few{bounded ? static_cast<rlim_t>(2 * first_after) : before.rlim_cur, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    const auto server = make();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    const auto client = make("127.0.0.1", false);
    Watch watch({server.get(), client.get()});
    static_cast<void>(*client->dial(server->uri()));
    REQUIRE(watch.run([&] { return watch.count(0, StreamEventType::accepted) == 1; }));
    first_after = host::Descriptor(dup(0)).get();
    CHECK_FALSE(server->accept_starves());
  }
}

// Half of the descriptors are for the files of those who are in.
TEST_CASE("tcp_net__half_of_the_descriptors_are_streams__accepting_pauses_until_one_closes") {
  const auto client = make("127.0.0.1", false);
  const int next = dup(0);
  REQUIRE(next >= 0);
  close(next);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{static_cast<rlim_t>(2 * (next + 12)), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto server = make();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);  // what counts is what it may have when it is made
  Watch watch({server.get(), client.get()});
  std::vector<StreamId> dialled;
  for (int i = 0; i < 24; ++i) dialled.push_back(*client->dial(server->uri()));
  REQUIRE(watch.run([&] { return watch.count(1, StreamEventType::connected) == dialled.size(); }));
  for (int i = 0; i < 20; ++i) watch.poll();
  const size_t accepted = watch.count(0, StreamEventType::accepted);
  CHECK(accepted < dialled.size());
  CHECK(server->accept_starves());
  CHECK_FALSE(readable(*server));
  for (const StreamId id : dialled) client->close(id);
  server->set_deadline(never);
  REQUIRE(watch.run([&] { return watch.count(0, StreamEventType::accepted) > accepted; }));
}

}  // namespace
}  // namespace ccixfer::tcp
