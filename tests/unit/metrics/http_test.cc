#include "app/metrics/http.h"

#include <catch2/catch.hpp>
#include <random>

#include "app/metrics/server.h"

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const std::function<std::string(Format)> text = [](Format format) {
  return std::string(format == Format::openmetrics ? "open\n" : "plain\n");
};

struct Answered {
  bool stays = false;
  std::string out;
  [[nodiscard]] bool has(const std::string& words) const { return out.find(words) != std::string::npos; }
};

Answered ask(const std::string& request, size_t piece = std::string::npos) {
  HttpConnection connection(text);
  Answered answered{true, ""};
  for (size_t at = 0; at < request.size() && answered.stays; at += std::min(piece, request.size() - at))
    answered.stays = connection.received(std::string_view(request).substr(at, piece), answered.out);
  return answered;
}

}  // namespace

TEST_CASE("http__get__is_answered_in_the_format_that_is_asked_for_and_may_be_repeated") {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n";
  for (const size_t piece : {std::string::npos, size_t{1}, size_t{7}}) {
    const Answered answered = ask(request + request, piece);
    CHECK(answered.stays);
    CHECK(answered.out.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
    CHECK(answered.has("Content-Length: 5\r\n"));
    CHECK(answered.has("\r\n\r\nopen\nHTTP/1.1 200 OK\r\n"));
    CHECK(answered.out.ends_with("\r\n\r\nopen\n"));
  }
  CHECK(ask("GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").out.ends_with("\r\n\r\nplain\n"));
  CHECK_FALSE(ask("GET /metrics HTTP/1.0\r\n\r\n").stays);
  CHECK_FALSE(ask("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").stays);
  CHECK(ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").out.ends_with("Connection: keep-alive\r\n\r\n"));
  CHECK(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").has("see /metrics"));
}

TEST_CASE("http__what_is_not_for_it__is_refused_and_hung_up_on") {
  const auto refused = [](const std::string& request, const std::string& status) {
    INFO(request.substr(0, 80));
    const Answered answered = ask(request);
    CHECK_FALSE(answered.stays);
    CHECK(answered.out.starts_with("HTTP/1.1 " + status));
    CHECK(answered.has("Connection: close\r\n"));
    CHECK_FALSE(answered.has("plain\n"));
  };
  refused("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  refused("GET /metrics/../x HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  refused("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405");
  refused("GET /metrics HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n", "413");
  refused("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "413");
  refused("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400");
  refused("GET /metrics HTTP/9.9\r\n\r\n", "400");
  refused("GET  \r\n\r\n", "400");
  refused("GET /" + std::string(2 * request_bytes_max, 'x'), "431");
  refused("GET /metrics HTTP/1.1\r\nX: " + std::string(2 * request_bytes_max, 'x') + "\r\n\r\n", "431");
}

TEST_CASE("http__half_a_request__waits_and_holds_no_more_than_a_request") {
  HttpConnection connection(text);
  std::string out;
  CHECK(connection.is_between_requests());
  CHECK(connection.received("GET /metrics HT", out));
  CHECK_FALSE(connection.is_between_requests());
  CHECK(out.empty());
  CHECK(connection.received("TP/1.1\r\nHost: x\r\n\r\n", out));
  CHECK(connection.is_between_requests());
  CHECK(out.starts_with("HTTP/1.1 200"));
  // A line that never ends, a byte at a time.
  out.clear();
  size_t bytes = 0;
  while (connection.received("y", out)) REQUIRE(++bytes <= 2 * request_bytes_max);
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
    const Answered answered = ask(request, 1 + random() % 40);
    CHECK((answered.out.empty() || answered.out.starts_with("HTTP/1.1 ")));
    CHECK((answered.stays || !answered.out.empty()));
  }
}
