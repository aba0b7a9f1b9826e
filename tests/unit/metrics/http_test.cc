// Requests of HTTP and the answers to them: metrics, page, status, and refusals.
#include "app/metrics/http.h"

#include <catch2/catch.hpp>
#include <random>

#include "app/metrics/server.h"

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const Site site{[](Format format) { return std::string(format == Format::openmetrics ? "open\n" : "plain\n"); }};
const Site site_with_status{site.metrics, true, true};
const Site at_a_unix_socket{site.metrics, true, false};

struct Answered {
  Next next = Next::more;
  std::string out;
  [[nodiscard]] bool has(const std::string& words) const { return out.find(words) != std::string::npos; }
};

Answered ask(const std::string& request, size_t piece = std::string::npos, const Site& of = site) {
  HttpConnection connection(of);
  Answered answered;
  for (size_t at = 0; at < request.size() && answered.next == Next::more; at += std::min(piece, request.size() - at))
    answered.next = connection.received(std::string_view(request).substr(at, piece), answered.out);
  while (answered.next == Next::more && connection.has_waiting()) answered.next = connection.received({}, answered.out);
  return answered;
}
Answered ask_for(const std::string& path, const std::string& headers = "Host: localhost\r\n", const Site& of = site_with_status) {
  return ask("GET " + path + " HTTP/1.1\r\n" + headers + "\r\n", std::string::npos, of);
}

}  // namespace

TEST_CASE("http__get__is_answered_in_the_format_that_is_asked_for_and_may_be_repeated") {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n";
  for (const size_t piece : {std::string::npos, size_t{1}, size_t{7}}) {
    const Answered answered = ask(request + request, piece);
    CHECK(answered.next == Next::more);
    CHECK(answered.out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
    CHECK(answered.has("Content-Length: 5\r\n"));
    CHECK(answered.has("\r\n\r\nopen\nHTTP/1.1 200 OK\r\n"));
    CHECK(answered.out.ends_with("\r\n\r\nopen\n"));
  }
  CHECK(ask("GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").out.ends_with("\r\n\r\nplain\n"));
  CHECK(ask("GET /metrics HTTP/1.0\r\n\r\n").next == Next::end);
  CHECK(ask("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").next == Next::end);
  CHECK(ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").out.ends_with("Connection: keep-alive\r\n\r\n"));
  CHECK(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").has("see /metrics"));
}

TEST_CASE("http__what_is_not_for_it__is_refused_and_hung_up_on") {
  const auto refused = [](const std::string& request, const std::string& status) {
    INFO(request.substr(0, 80));
    const Answered answered = ask(request);
    CHECK(answered.next == Next::end);
    CHECK(answered.out.starts_with("HTTP/1.1 " + status));
    CHECK(answered.has("Connection: close\r\n"));
    CHECK_FALSE(answered.has("plain\n"));
  };
  refused("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  refused("GET /metrics/../x HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  refused("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405");
  CHECK(ask("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n").has("\r\nAllow: GET, HEAD\r\n"));  // RFC 9110, section 15.5.6
  refused("GET /metrics HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n", "413");
  refused("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "413");
  refused("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400");
  refused("GET /metrics HTTP/9.9\r\n\r\n", "400");
  refused("GET  \r\n\r\n", "400");
  refused("GET /" + std::string(2 * request_bytes_max, 'x'), "431");
  refused("GET /metrics HTTP/1.1\r\nX: " + std::string(2 * request_bytes_max, 'x') + "\r\n\r\n", "431");
}

TEST_CASE("http__the_status_page__is_one_file_that_may_run_its_own_script_only") {
  const Answered page = ask_for("/");
  CHECK(page.out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"));
  CHECK(page.has("Content-Security-Policy: default-src 'none'; script-src 'sha256-"));
  CHECK(page.has("<!DOCTYPE html>"));
  for (const char* foreign : {"http://", "https://", "src=", "url(", "innerHTML", "unsafe-inline", "style=\"", "onclick"}) {
    INFO(foreign);
    CHECK_FALSE(page.has(foreign));
  }
  CHECK(page.out.size() < 32768);
}

TEST_CASE("http__status_and_events__are_answered_by_the_owner_and_what_waits_is_served_then") {
  HttpConnection connection(site_with_status);
  std::string out;
  const std::string request = "GET /status.json HTTP/1.1\r\nHost: [::1]:9\r\n\r\n";
  CHECK(connection.received(request + request + "GET /metrics HTTP/1.1\r\n\r\nGET /events HTTP/1.1\r\n\r\n", out) == Next::status);
  CHECK(out.empty());
  CHECK(connection.answer_status("{}", out) == Next::more);
  CHECK(out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json"));
  CHECK(out.ends_with("\r\n\r\n{}"));
  CHECK(connection.has_waiting());
  CHECK(connection.received({}, out) == Next::status);
  CHECK(connection.answer_status("[]", out) == Next::more);
  CHECK(out.ends_with("\r\n\r\n[]"));
  CHECK(connection.received({}, out) == Next::more);
  CHECK(out.ends_with("\r\n\r\nplain\n"));
  CHECK(connection.received({}, out) == Next::events);
  CHECK_FALSE(connection.has_waiting());
  out.clear();
  connection.begin_events(out);
  CHECK(out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"));
  CHECK(event_of("{}") == "data: {}\n\n");
  CHECK(ask("HEAD /events HTTP/1.1\r\n\r\n", std::string::npos, site_with_status).next == Next::more);
  CHECK(ask_for("/status.json", "", site).out.starts_with("HTTP/1.1 404"));
  CHECK(ask_for("/events", "", site).out.starts_with("HTTP/1.1 404"));
}

TEST_CASE("http__a_page_of_somebody_else__reads_neither_the_status_nor_its_events") {
  for (const char* path : {"/", "/status.json", "/events"}) {
    INFO(path);
    CHECK(ask_for(path, "Host: attacker.example:9464\r\n").out.starts_with("HTTP/1.1 421"));
    CHECK(ask_for(path, "Host: 127.0.0.1.attacker.example\r\n").out.starts_with("HTTP/1.1 421"));
    CHECK(ask_for(path, "Host: 192.0.2.1\r\n").out.starts_with("HTTP/1.1 421"));
    for (const char* own : {"localhost", "LocalHost:9464", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:9464"})
      CHECK_FALSE(ask_for(path, std::string("Host: ") + own + "\r\n").out.starts_with("HTTP/1.1 4"));
    CHECK_FALSE(ask_for(path, "Host: anything\r\n", at_a_unix_socket).out.starts_with("HTTP/1.1 4"));
  }
  for (const char* path : {"/status.json", "/events"}) {
    CHECK(ask_for(path, "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n").out.starts_with("HTTP/1.1 403"));
    CHECK(ask_for(path, "Host: localhost\r\nSec-Fetch-Site: same-site\r\n").out.starts_with("HTTP/1.1 403"));
    CHECK(ask_for(path, "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n").out.empty());
  }
  CHECK(ask_for("/metrics", "Host: prometheus.example\r\n").next == Next::more);
}

TEST_CASE("http__a_place_with_a_token__gives_nothing_to_who_does_not_say_it") {
  Refusals refused;
  const Site counted{site.metrics, true, false, &refused};
  const std::string secret = "0123456789abcdef0123";
  const auto token = Token::parse(secret);
  REQUIRE(token);
  const auto ask_with = [&](const std::string& path, const std::string& headers, const std::string& method = "GET") {
    HttpConnection connection(counted, &*token);
    Answered answered;
    answered.next =
        connection.received(method + " " + path + " HTTP/1.1\r\nHost: dtn.example\r\n" + headers + "\r\n", answered.out);
    return answered;
  };
  const std::string good = "Authorization: Bearer " + secret + "\r\n";
  for (const char* path : {"/", "/metrics", "/status.json", "/events", "/elsewhere"}) {
    INFO(path);
    for (const std::string& headers : {std::string(), std::string("Authorization: Bearer x\r\n"),
                                       "Authorization: Bearer x\r\n" + good, "Cookie: " + secret + "\r\n"}) {
      const Answered answered = ask_with(path, headers);
      CHECK(answered.out.starts_with("HTTP/1.1 401 "));
      CHECK(answered.has("\r\nWWW-Authenticate: Basic realm=\"ccixfer\"\r\n"));
      CHECK(answered.next == Next::end);
    }
    CHECK_FALSE(ask_with(path, good).out.starts_with("HTTP/1.1 401"));
  }
  CHECK(refused.of(Refused::no_token) == 10);
  CHECK(refused.of(Refused::wrong_token) == 10);
  CHECK(ask_with("/metrics", good).out.ends_with("\r\n\r\nplain\n"));
  CHECK(ask_with("/metrics", "", "POST").out.starts_with("HTTP/1.1 401"));
  CHECK(ask_with("/metrics", "", "HEAD").out.ends_with("\r\n\r\n"));
}

TEST_CASE("http__half_a_request__waits_and_holds_no_more_than_a_request") {
  HttpConnection connection(site);
  std::string out;
  CHECK(connection.is_between_requests());
  CHECK(connection.received("GET /metrics HT", out) == Next::more);
  CHECK_FALSE(connection.is_between_requests());
  CHECK(out.empty());
  CHECK(connection.received("TP/1.1\r\nHost: x\r\n\r\n", out) == Next::more);
  CHECK(connection.is_between_requests());
  CHECK(out.starts_with("HTTP/1.1 200"));
  // A line that never ends, a byte at a time.
  out.clear();
  size_t bytes = 0;
  while (connection.received("y", out) == Next::more) REQUIRE(++bytes <= 2 * request_bytes_max);
  CHECK_FALSE(out.empty());
}

TEST_CASE("http__any_bytes__are_answered_or_waited_for") {
  std::mt19937_64 random(7);
  const std::string good = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
  for (int round = 0; round < 3000; ++round) {
    std::string request = good;
    for (int change = 0; change < 3; ++change) {
      request[random() % request.size()] = static_cast<char>(random());
      if (random() % 4 == 0) request.insert(random() % request.size(), std::string(random() % 64, static_cast<char>(random())));
    }
    const Answered answered = ask(request, 1 + random() % 40, site_with_status);
    CHECK((answered.out.empty() || answered.out.starts_with("HTTP/1.1 ")));
    CHECK((answered.next == Next::more || !answered.out.empty()));
  }
}
