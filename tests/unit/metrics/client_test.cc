#include "app/metrics/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const Site site{[](Format) { return std::string("all is well\n"); }, true, true};
const std::string ask_events = "GET /events HTTP/1.1\r\n\r\n";

struct Pair {
  Pair() {
    std::array<int, 2> both{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both.data()) == 0);
    theirs.reset(both[0]);
    client.emplace(host::Descriptor(both[1]), site, now);
  }
  void say(const std::string& words) const {
    REQUIRE(::send(theirs.get(), words.data(), words.size(), 0) == static_cast<ssize_t>(words.size()));
  }
  std::string hear() const {
    std::array<char, 65536> bytes{};
    const ssize_t got = ::recv(theirs.get(), bytes.data(), bytes.size(), 0);
    return {bytes.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }
  void listen() {
    say(ask_events);
    REQUIRE(client->turn(now));
    REQUIRE(client->wants_events());
    client->begin_events();
    REQUIRE(client->turn(now));
  }
  const Client::Clock::time_point now{};
  host::Descriptor theirs;
  std::optional<Client> client;
};

}  // namespace

TEST_CASE("metrics_client__one_that_listens__gets_no_further_event_before_it_has_taken_the_last") {
  Pair pair;
  pair.listen();
  CHECK_FALSE(pair.client->deadline());
  pair.client->tell(event_of(std::string(4u << 20, '1')), pair.now);
  REQUIRE(pair.client->turn(pair.now));
  CHECK(pair.client->waits_for() == POLLOUT);
  CHECK(pair.client->deadline() == pair.now + request_time_max);
  pair.client->tell(event_of("2"), pair.now + std::chrono::seconds(1));
  CHECK(pair.client->deadline() == pair.now + request_time_max);  // no longer for it
  std::string all;
  while (pair.client->waits_for() == POLLOUT) {
    all += pair.hear();
    REQUIRE(pair.client->turn(pair.now));
  }
  all += pair.hear();
  CHECK(all.find("data: 2\n") == std::string::npos);
  CHECK_FALSE(pair.client->deadline());
  pair.client->tell(event_of("3"), pair.now);
  REQUIRE(pair.client->turn(pair.now));
  std::string last;
  for (std::string part; !(part = pair.hear()).empty();) last += part;
  CHECK(last.ends_with("data: 3\n\n"));
}

TEST_CASE("metrics_client__one_that_listens__is_over_when_it_says_something_or_goes") {
  Pair talks;
  talks.listen();
  talks.say("more");
  CHECK_FALSE(talks.client->turn(talks.now));
  Pair goes;
  goes.listen();
  goes.theirs.reset();
  CHECK_FALSE(goes.client->turn(goes.now));
}

TEST_CASE("metrics_client__one_that_waits_for_the_status__is_over_when_it_goes") {
  Pair pair;
  pair.say("GET /status.json HTTP/1.1\r\n\r\n");
  REQUIRE(pair.client->turn(pair.now));
  CHECK(pair.client->wants_status());
  CHECK(pair.client->waits_for() == 0);
  REQUIRE(pair.client->turn(pair.now));
  pair.theirs.reset();
  pollfd one{pair.client->fd(), pair.client->waits_for(), 0};
  REQUIRE(::poll(&one, 1, 0) == 1);
  CHECK_FALSE(pair.client->turn(pair.now, one.revents));
}
