// One client of the metrics: what it is sent, when it is over, and TLS with a token.
#include "app/metrics/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/web_client.h"

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const Site site{[](Format) { return std::string("all is well\n"); }, true, true};
const std::string ask_events = "GET /events HTTP/1.1\r\n\r\n";

struct Pair {
  explicit Pair(std::shared_ptr<const Guard> guard = nullptr) {
    std::array<int, 2> both{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both.data()) == 0);
    theirs.reset(both[0]);
    client.emplace(host::Descriptor(both[1]), site, now, std::move(guard));
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

namespace {

const std::string secret = "0123456789abcdef0123";

std::shared_ptr<const Guard> guard() {
  static const trust::Issued host = trust::Facility("root").issue();
  auto tls = trust::WebIdentity::from_pem(host.certificate_pem(), "web.pem", host.key_pem(), "web.key");
  auto token = Token::parse(secret);
  REQUIRE((tls && token));
  return std::make_shared<const Guard>(Guard{*tls, *token});
}

// A pair whose other end speaks TLS.
struct GuardedPair : Pair {
  GuardedPair() : Pair(guard()) {}
  bool exchange(const std::string& bytes) {
    if (!bytes.empty()) say(bytes);
    const bool lives = client->turn(now);
    for (std::string heard = hear(); !heard.empty(); heard = hear()) {
      if (const std::string reply = tls.step(heard); !reply.empty()) say(reply);
    }
    return lives;
  }
  void shake_hands() {
    REQUIRE(exchange(tls.step("")));
    REQUIRE(client->turn(now));
    REQUIRE(tls.done());
  }
  trust::WebClient tls;
};

}  // namespace

TEST_CASE("metrics_client__one_that_asks_on_and_does_not_read__is_owed_one_answer_at_a_time") {
  const std::string long_answer(1u << 20, 'x');
  const std::string path = GENERATE("/status.json", "/metrics");
  Pair pair;
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  pair.say(requests);
  int given = 0, made = 0;
  Site own{[&](Format) { return ++made, long_answer; }, true, true};
  std::array<int, 2> both{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both.data()) == 0);
  pair.theirs.reset(both[0]);
  pair.client.emplace(host::Descriptor(both[1]), own, pair.now);
  pair.say(requests);
  std::string heard;
  const auto turn = [&] {
    REQUIRE(pair.client->turn(pair.now));
    while (pair.client->wants_status()) {
      pair.client->answer(long_answer);
      ++given;
      REQUIRE(pair.client->turn(pair.now));
    }
  };
  turn();
  CHECK(given + made == 1);
  for (int rounds = 0; given + made < 20; ++rounds) {
    REQUIRE(rounds < 10'000);
    const std::string more = pair.hear();
    REQUIRE((!more.empty() || pair.client->waits_for() != POLLOUT));
    heard += more;
    const int before = given + made;
    turn();
    REQUIRE(given + made <= before + 1);
    REQUIRE(heard.size() + (2u << 20) >= static_cast<size_t>(given + made) * long_answer.size());
  }
}

TEST_CASE("metrics_client__one_that_asks_for_much_at_once__has_few_answers_a_turn") {
  Pair pair;
  constexpr int asked = 3 * answers_a_turn;
  std::string requests;
  for (int i = 0; i < asked; ++i) requests += "GET /metrics HTTP/1.1\r\n\r\n";
  pair.say(requests);
  std::string heard;
  const auto answers = [&] {
    heard += pair.hear();
    int found = 0;
    for (size_t at = 0; (at = heard.find("all is well\n", at)) != std::string::npos; ++at) ++found;
    return found;
  };
  for (int turns = 1; turns <= 3; ++turns) {
    REQUIRE(pair.client->turn(pair.now));
    CHECK(answers() == turns * answers_a_turn);
    CHECK(pair.client->has_more() == (turns < 3));
  }
}

TEST_CASE("metrics_client__behind_a_guard__is_answered_over_tls_when_it_says_the_token") {
  GuardedPair pair;
  pair.shake_hands();
  CHECK(pair.exchange(pair.tls.say("GET /metrics HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\n\r\n")));
  CHECK(pair.tls.heard().ends_with("all is well\n"));
  CHECK_FALSE(pair.exchange(pair.tls.say("GET /metrics HTTP/1.1\r\n\r\n")));
  CHECK(pair.tls.heard().find("HTTP/1.1 401 ") != std::string::npos);
  CHECK(pair.tls.was_told_the_end());
}

TEST_CASE("metrics_client__behind_a_guard__listens_and_is_told_over_tls") {
  GuardedPair pair;
  pair.shake_hands();
  REQUIRE(pair.exchange(pair.tls.say("GET /events HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\n\r\n")));
  REQUIRE(pair.client->wants_events());
  pair.client->begin_events();
  REQUIRE(pair.exchange(""));
  pair.client->tell(event_of("1"), pair.now);
  REQUIRE(pair.exchange(""));
  CHECK(pair.tls.heard().ends_with("data: 1\n\n"));
  // A new key is no word, and is taken.
  SSL_key_update(pair.tls.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
  REQUIRE(pair.client->listens());
  CHECK_FALSE(pair.exchange(pair.tls.say("more")));
}

TEST_CASE("metrics_client__behind_a_guard__has_no_more_time_for_a_slow_handshake_or_without_tls") {
  GuardedPair slow;
  const std::string hello = slow.tls.step("");
  const auto until = slow.client->deadline();
  CHECK(until == slow.now + request_time_max);
  for (const char byte : hello) {
    slow.say(std::string(1, byte));
    REQUIRE(slow.client->turn(slow.now + std::chrono::seconds(5)));
    REQUIRE(slow.client->deadline() == until);
  }
  slow.say(slow.tls.step(slow.hear()));
  REQUIRE(slow.client->turn(slow.now + std::chrono::seconds(6)));
  CHECK(slow.client->deadline() == until);  // the handshake was no request
  GuardedPair plain;
  plain.say("GET /metrics HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\n\r\n");
  CHECK_FALSE(plain.client->turn(plain.now));
  CHECK(plain.hear().find("all is well") == std::string::npos);
}

TEST_CASE("metrics_client__an_answer__begins_the_time_of_the_next_request_anew") {
  Pair pair;
  const auto later = pair.now + std::chrono::seconds(3);
  pair.say("GET /metrics HTTP/1.1\r\n");
  REQUIRE(pair.client->turn(later));
  CHECK(pair.client->deadline() == pair.now + request_time_max);
  pair.say("\r\n");
  REQUIRE(pair.client->turn(later));
  CHECK(pair.client->deadline() == later + request_time_max);
}
