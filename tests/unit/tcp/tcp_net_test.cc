#include "transports/tcp/tcp_net.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "core/host/clock.h"
#include "transports/tcp/tcp_uri.h"

namespace ccixfer::tcp {
namespace {

using namespace std::chrono_literals;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

std::unique_ptr<TcpNet> make(const std::string& host = "127.0.0.1", bool listen = true) {
  TcpNetOptions options;
  options.listen_host = host;
  options.listen = listen;
  auto net = TcpNet::create(options);
  REQUIRE(net);
  return std::move(*net);
}

// Polls the nets, waiting on their handles, until `done`; what happened is written down.
struct Watch {
  std::vector<TcpNet*> nets;
  std::vector<std::vector<StreamEvent>> events = {};
  host::SystemClock clock = {};
  std::vector<std::unique_ptr<TcpNet>> keep = {};

  explicit Watch(std::vector<TcpNet*> list) : nets(std::move(list)), events(nets.size()) {}
  void poll() {
    for (size_t i = 0; i < nets.size(); ++i) {
      nets[i]->poll(clock.now(), [&](const StreamEvent& event) { events[i].push_back(event); });
    }
  }
  template <typename Done>
  bool run(Done done) {
    const Instant end = clock.now() + 20s;
    for (;;) {
      poll();
      if (done()) return true;
      if (clock.now() > end) return false;
      std::vector<pollfd> handles;
      for (const TcpNet* net : nets) handles.push_back({net->os_handle(), POLLIN, 0});
      ::poll(handles.data(), handles.size(), 1000);
    }
  }
  [[nodiscard]] const StreamEvent* find(size_t net, StreamEventType type, StreamId id = 0) const {
    for (const StreamEvent& event : events[net]) {
      if (event.type == type && (id == 0 || event.id == id)) return &event;
    }
    return nullptr;
  }
  [[nodiscard]] size_t count(size_t net, StreamEventType type) const {
    size_t count = 0;
    for (const StreamEvent& event : events[net]) count += event.type == type ? 1u : 0u;
    return count;
  }
};

bool readable(const TcpNet& net, int timeout_ms = 0) {
  pollfd handle{net.os_handle(), POLLIN, 0};
  return ::poll(&handle, 1, timeout_ms) == 1;
}

int64_t send_text(TcpNet& net, StreamId id, std::string_view text) {
  const stream::ConstIoSpan span{as_bytes(text).data(), text.size()};
  return net.send(id, {&span, 1});
}
int64_t recv_some(TcpNet& net, StreamId id, std::string& text) {
  std::array<std::byte, 4096> memory{};
  const stream::IoSpan span{memory.data(), memory.size()};
  const int64_t n = net.recv(id, {&span, 1});
  if (n > 0) text += as_text(Bytes(memory).first(static_cast<size_t>(n)));
  return n;
}

TEST_CASE("tcp_uri__good_and_bad__parsed_or_named") {
  const auto good = [](std::string_view uri) {
    const auto name = parse_tcp_uri(uri);
    REQUIRE(name);
    return name->host + "|" + std::to_string(name->port);
  };
  CHECK(good("tcp://10.0.0.1:80") == "10.0.0.1|80");
  CHECK(good("tcp://host.example:65535") == "host.example|65535");
  CHECK(good("tcp://[::1]:1") == "::1|1");
  CHECK(good("tcp://[fe80::1%eth0]:5000/") == "fe80::1%eth0|5000");
  for (const char* bad : {"", "tcp:", "tcp://", "tcp://a", "tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://a:-1", "tcp://a:1x",
                          "tcp://:1", "tcp://[::1:1", "tcp://[::1]", "tcp://[::1]1", "tcp://[a]:1", "tcp://::1:1", "tcp://a b:1",
                          "tcp://u@a:1", "udp://a:1", "tcp://a:1/x"}) {
    CAPTURE(bad);
    const auto name = parse_tcp_uri(bad);
    REQUIRE_FALSE(name);
    CHECK(name.error().kind == ErrorKind::usage);
  }
  CHECK(format_tcp_uri("::1", 5) == "tcp://[::1]:5");
  CHECK(format_tcp_uri("a", 5) == "tcp://a:5");
}

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

TEST_CASE("tcp_net__name_resolved_off_thread__connects_and_unknown_names_fail") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const std::string uri = server->uri();
  const auto port = parse_tcp_uri(uri)->port;
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
  options.port = parse_tcp_uri(first->uri())->port;
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
    CHECK(parse_tcp_uri(uri));
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

}  // namespace
}  // namespace ccixfer::tcp
