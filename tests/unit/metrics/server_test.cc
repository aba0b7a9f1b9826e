// The thread of the metrics: listening, places for clients, and its questions to the loop.
#include "app/metrics/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/unit/host/few_processes.h"
#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/web_client.h"

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const std::function<std::string(Format)> text = [](Format) { return std::string("all is well\n"); };
const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

host::Descriptor dial(const std::string& place) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoul(place.substr(place.rfind(':') + 1))));
  host::Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

void say(const host::Descriptor& fd, const std::string& words) {
  REQUIRE(::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(words.size()));
}

std::string hear_all(const host::Descriptor& fd) {
  std::string all;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) all.append(bytes, static_cast<size_t>(got));
  return all;
}

std::unique_ptr<Server> serving(const std::string& place = "127.0.0.1:0") {
  auto server = Server::listen(place, {.metrics = text});
  INFO((server ? "" : server.error().message));
  REQUIRE(server);
  REQUIRE((*server)->begin());
  return std::move(*server);
}

}  // namespace

TEST_CASE("metrics_server__asked__answers_and_hangs_up") {
  const auto server = serving();
  for (int round = 0; round < 3; ++round) {
    const host::Descriptor fd = dial(server->place());
    say(fd, request.substr(0, 20));
    say(fd, request.substr(20));
    CHECK(hear_all(fd).ends_with("\r\n\r\nall is well\n"));
  }
}

TEST_CASE("metrics_server__host_gives_no_thread__is_told") {
  CHECK(testing::with_few_processes(1, [] {
    const auto server = Server::listen("127.0.0.1:0", {.metrics = text});
    if (!server) return false;
    const auto begun = (*server)->begin();
    return !begun && begun.error().kind == ErrorKind::file_io;
  }));
}

TEST_CASE("metrics_server__all_places_are_taken__who_comes_is_served_in_the_place_of_who_waited_longest") {
  Refusals refused;
  auto listening = Server::listen("127.0.0.1:0", {.metrics = text, .refused = &refused});
  REQUIRE(listening);
  const auto server = std::move(*listening);
  REQUIRE(server->begin());
  std::vector<host::Descriptor> idle;
  for (size_t i = 0; i < connections_max; ++i) idle.push_back(dial(server->place()));
  for (int round = 0; round < 3; ++round) {
    const host::Descriptor next = dial(server->place());
    say(next, request);
    CHECK(hear_all(next).ends_with("all is well\n"));
  }
  // The first of them was hung up on, and nobody else: those that were answered left their place.
  CHECK(hear_all(idle.front()).empty());
  CHECK(refused.of(Refused::no_place) == 1);
  for (const host::Descriptor* each : {&idle[1], &idle.back()}) {
    say(*each, request);
    CHECK(hear_all(*each).ends_with("all is well\n"));
  }
}

TEST_CASE("metrics_server__ends__while_clients_wait_and_before_it_began") {
  auto server = serving();
  const host::Descriptor idle = dial(server->place());
  server.reset();
  CHECK(hear_all(idle).empty());
  auto never_begun = Server::listen("127.0.0.1:0", {.metrics = text});
  REQUIRE(never_begun);
}

TEST_CASE("metrics_server__unix_socket__is_answered_at_and_goes_with_the_server") {
  std::string pattern = (std::filesystem::temp_directory_path() / "ccixfer-metrics-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const std::string path = pattern + "/socket";
  const auto ask = [&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const host::Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    say(fd, request);
    return hear_all(fd);
  };
  {
    const auto server = serving("unix:" + path);
    CHECK(ask().ends_with("all is well\n"));
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_all) == std::filesystem::perms::none);
    const auto second = Server::listen("unix:" + path, {.metrics = text});  // somebody answers there
    CHECK_FALSE(second);
    CHECK(ask().ends_with("all is well\n"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  {
    // Another process has the place by now.
    auto old = serving("unix:" + path);
    std::filesystem::remove(path);
    const auto next = serving("unix:" + path);
    old.reset();
    CHECK(ask().ends_with("all is well\n"));
  }
  {
    // Left behind by a process that was killed.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const host::Descriptor left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  {
    const auto server = serving("unix:" + path);
    CHECK(ask().ends_with("all is well\n"));
  }
  std::filesystem::remove_all(pattern);
}

namespace {

struct Served {
  std::unique_ptr<Board> board;
  std::unique_ptr<Server> server;
};

Served serving_status() {
  Served served;
  auto board = Board::create();
  REQUIRE(board);
  served.board = std::move(*board);
  auto server = Server::listen("127.0.0.1:0", {.metrics = text, .board = served.board.get()});
  REQUIRE(server);
  served.server = std::move(*server);
  REQUIRE(served.server->begin());
  return served;
}

// The protocol thread's part: it waits as the loop does, and answers once.
void publish(Board& board, const std::string& words) {
  pollfd asked{board.asked_handle(), POLLIN, 0};
  while (!board.is_asked()) REQUIRE(::poll(&asked, 1, 10'000) == 1);
  board.publish([words] { return words; });
}

// Until its end is there.
std::string hear_until(const host::Descriptor& fd, const std::string& end) {
  std::string all;
  char byte = 0;
  while (!all.ends_with(end)) {
    REQUIRE(::recv(fd.get(), &byte, 1, 0) == 1);
    all += byte;
  }
  return all;
}

// Asks on and on, as fast as it is answered, until it is hung up on or ends.
class Flood {
 public:
  Flood(const std::string& place, const std::string& path)
      : fd_(dial(place)), asks_([this, path] { ask(path); }), hears_([this] { hear(); }) {}
  ~Flood() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    asks_.join();
    hears_.join();
  }
  void until_answered() const { answered_.wait(false); }

 private:
  void ask(const std::string& path) const {
    std::string many;
    for (int i = 0; i < 2'000; ++i) many += "GET " + path + " HTTP/1.1\r\n\r\n";
    while (::send(fd_.get(), many.data(), many.size(), MSG_NOSIGNAL) > 0) {
    }
  }
  void hear() {
    std::vector<char> bytes(1u << 20);
    for (int reads = 0; ::recv(fd_.get(), bytes.data(), bytes.size(), 0) > 0; ++reads) {
      if (reads < 20) continue;  // it was not just what the kernel had room for
      answered_ = true;
      answered_.notify_all();
    }
    answered_ = true;
    answered_.notify_all();
  }

  const host::Descriptor fd_;
  std::atomic<bool> answered_ = false;
  std::thread asks_, hears_;
};

// Answers whenever it is asked, as the protocol thread does.
class Publisher {
 public:
  explicit Publisher(Board& board) : board_(board), thread_([this] { publish(); }) {}
  ~Publisher() {
    ends_ = true;
    thread_.join();
  }

 private:
  void publish() {
    pollfd asked{board_.asked_handle(), POLLIN, 0};
    while (!ends_) {
      static_cast<void>(::poll(&asked, 1, 100));
      if (board_.is_asked()) board_.publish([] { return std::string("{}"); });
    }
  }
  Board& board_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

const std::string ask_status = "GET /status.json HTTP/1.1\r\nConnection: close\r\n\r\n";
const std::string ask_events = "GET /events HTTP/1.1\r\n\r\n";

}  // namespace

TEST_CASE("board__is_asked_and_answers__once_each_and_only_when_the_other_has") {
  auto made = Board::create();
  REQUIRE(made);
  Board& board = **made;
  const auto readable = [](int fd) {
    pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  };
  CHECK_FALSE(board.is_asked());
  CHECK_FALSE(board.take());
  CHECK_FALSE(readable(board.asked_handle()));
  board.ask();
  board.ask();
  CHECK(board.is_asked());
  CHECK(readable(board.asked_handle()));
  CHECK_FALSE(board.take());
  board.publish([] { return std::string("words"); });
  CHECK_FALSE(board.is_asked());
  CHECK_FALSE(readable(board.asked_handle()));
  CHECK(readable(board.news_handle()));
  board.ask();  // the answer was not taken
  CHECK_FALSE(board.is_asked());
  const auto words = board.take();
  REQUIRE(words);
  CHECK((*words)() == "words");
  CHECK_FALSE(readable(board.news_handle()));
  CHECK_FALSE(board.take());
}

TEST_CASE("metrics_server__status__is_asked_of_the_loop_and_one_answer_serves_all_who_wait") {
  const Served served = serving_status();
  const host::Descriptor first = dial(served.server->place()), second = dial(served.server->place());
  say(first, ask_status);
  say(second, ask_events);
  publish(*served.board, "{\"n\":1}");
  CHECK(hear_all(first).ends_with("\r\n\r\n{\"n\":1}"));
  CHECK(hear_until(second, "data: {\"n\":1}\n\n").starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"));
  // Who listens hears of the next one without asking again.
  publish(*served.board, "{\"n\":2}");
  CHECK(hear_until(second, "\n\n") == "data: {\"n\":2}\n\n");
}

TEST_CASE("metrics_server__a_listener_that_reads_nothing__keeps_nobody_else_from_hearing") {
  const Served served = serving_status();
  const host::Descriptor slow = dial(served.server->place()), good = dial(served.server->place());
  for (const host::Descriptor* each : {&slow, &good}) {
    say(*each, ask_events);
    CHECK(hear_until(*each, "retry: 2000\n\n").starts_with("HTTP/1.1 200"));
  }
  publish(*served.board, std::string(8u << 20, '1'));  // more than the kernel keeps for one that reads nothing
  std::string all;
  char bytes[65536];
  while (!all.ends_with("1\n\n")) {
    const ssize_t got = ::recv(good.get(), bytes, sizeof bytes, 0);
    REQUIRE(got > 0);
    all.append(bytes, static_cast<size_t>(got));
  }
  publish(*served.board, "2");
  CHECK(hear_until(good, "\n\n") == "data: 2\n\n");
}

TEST_CASE("metrics_server__listeners__are_so_many_and_metrics_are_answered_all_the_same") {
  const Served served = serving_status();
  std::vector<host::Descriptor> listening;
  for (size_t i = 0; i < listeners_max; ++i) {
    listening.push_back(dial(served.server->place()));
    say(listening.back(), ask_events);
    CHECK(hear_until(listening.back(), "retry: 2000\n\n").starts_with("HTTP/1.1 200"));
  }
  const host::Descriptor more = dial(served.server->place());
  say(more, ask_events);
  CHECK(hear_all(more).starts_with("HTTP/1.1 503"));
  const host::Descriptor other = dial(served.server->place());
  say(other, request);
  CHECK(hear_all(other).ends_with("all is well\n"));
  // One that hangs up leaves its place.
  listening.pop_back();
  const host::Descriptor next = dial(served.server->place());
  say(next, ask_events);
  CHECK(hear_until(next, "retry: 2000\n\n").starts_with("HTTP/1.1 200"));
}

TEST_CASE("metrics_server__a_loop_that_says_nothing__keeps_nobody_from_the_metrics_and_the_end") {
  Served served = serving_status();
  const host::Descriptor waits = dial(served.server->place());
  say(waits, ask_status);
  {
    const host::Descriptor gone = dial(served.server->place());
    say(gone, ask_status);
  }
  const host::Descriptor other = dial(served.server->place());
  say(other, request);
  CHECK(hear_all(other).ends_with("all is well\n"));
  served.server.reset();
  CHECK(hear_all(waits).empty());
}

TEST_CASE("metrics_server__one_asks_without_a_pause__others_are_answered_and_it_ends") {
  Served served = serving_status();
  const Publisher publisher(*served.board);
  const Flood flood(served.server->place(), GENERATE("/metrics", "/status.json"));
  flood.until_answered();
  const host::Descriptor other = dial(served.server->place());
  const timeval patience{60, 0};
  REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  say(other, request);
  const bool answered = hear_all(other).ends_with("all is well\n");
  REQUIRE(answered);
  served.server.reset();
}

TEST_CASE("metrics_server__places_that_are_none__are_refused_by_name") {
  for (const char* place :
       {"", "9464", "0.0.0.0:9464", "192.0.2.1:9464", "[::]:9464", "[2001:db8::1]:9464", "127.0.0.1:", "127.0.0.1:x",
        "127.0.0.1:65536", "127.0.0.1:-1", "host.example:9464", "unix:", "unix:relative", "[::1:9464"}) {
    INFO(place);
    const auto server = Server::listen(place, {.metrics = text});
    REQUIRE_FALSE(server);
    CHECK(server.error().kind == ErrorKind::usage);
    CHECK(server.error().message.find("metrics.listen") != std::string::npos);
  }
  CHECK_FALSE(Server::listen("unix:/" + std::string(200, 'x'), {.metrics = text}));
  const auto first = Server::listen("127.0.0.1:0", {.metrics = text});
  REQUIRE(first);
  const auto second = Server::listen((*first)->place(), {.metrics = text});
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::network);
  CHECK(Server::listen("localhost:0", {.metrics = text}));
}

namespace {

Guard guard_of(const std::string& secret) {
  const trust::Issued host = trust::Facility("root").issue();
  auto tls = trust::WebIdentity::from_pem(host.certificate_pem(), "web.pem", host.key_pem(), "web.key");
  auto token = Token::parse(secret);
  REQUIRE((tls && token));
  return {*tls, *token};
}

// All that the server says, over TLS.
std::string ask_with(const std::string& place, const std::string& secret) {
  const host::Descriptor fd = dial(place);
  trust::WebClient client;
  say(fd, client.step(""));
  char bytes[4096];
  bool asked = false;
  for (ssize_t got = 0; (got = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) {
    std::string out = client.step({bytes, static_cast<size_t>(got)});
    if (client.done() && !asked) {
      asked = true;
      out += client.say("GET /metrics HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer " + secret + "\r\n\r\n");
    }
    if (!out.empty()) say(fd, out);
  }
  return client.heard();
}

}  // namespace

TEST_CASE("metrics_server__a_place_that_others_reach__takes_a_guard_which_may_be_renewed") {
  const std::string first(token_bytes_min, 'a'), second(token_bytes_min, 'b');
  auto listening = Server::listen("0.0.0.0:0", {.metrics = text, .guard = guard_of(first)});
  REQUIRE(listening);
  Server& server = **listening;
  CHECK(server.has_guard());
  REQUIRE(server.begin());
  CHECK(ask_with(server.place(), first).ends_with("all is well\n"));
  CHECK(ask_with(server.place(), second).starts_with("HTTP/1.1 401 "));
  server.renew(guard_of(second));
  CHECK(ask_with(server.place(), second).ends_with("all is well\n"));
  CHECK(ask_with(server.place(), first).starts_with("HTTP/1.1 401 "));
  const host::Descriptor plain = dial(server.place());
  say(plain, request);
  CHECK(hear_all(plain).find("all is well") == std::string::npos);
}
