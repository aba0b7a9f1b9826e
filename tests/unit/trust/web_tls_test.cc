// TLS of the metrics, against a client of OpenSSL.
#include "core/trust/web_tls.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/web_client.h"

namespace ccixfer::trust {
namespace {

WebIdentity identity() {
  static const Issued host = Facility("root").issue();
  auto made = WebIdentity::from_pem(host.certificate_pem(), "web.pem", host.key_pem(), "web.key");
  REQUIRE(made);
  return *made;
}

struct Server {
  WebTls tls{identity()};
  WebTls::State state = WebTls::State::handshake;
  std::string plain;
  // What goes to the client.
  std::string hear(const std::string& bytes, size_t piece = std::string::npos) {
    std::string out;
    for (size_t at = 0; at < bytes.size() && state != WebTls::State::over; at += std::min(piece, bytes.size() - at))
      state = tls.received(std::string_view(bytes).substr(at, piece), plain, out);
    return out;
  }
};

void shake_hands(Server& server, WebClient& client, size_t piece = std::string::npos) {
  std::string to_client;
  for (int flight = 0; flight < 4; ++flight) to_client = server.hear(client.step(to_client), piece);
}

TEST_CASE("web_tls__a_client_of_tls_13__is_heard_and_answered_in_any_pieces") {
  for (const size_t piece : {std::string::npos, size_t{1}, size_t{100}}) {
    Server server;
    WebClient client;
    shake_hands(server, client, piece);
    REQUIRE(client.done());
    REQUIRE(server.state == WebTls::State::open);
    server.hear(client.say("GET /"), piece);
    server.hear(client.say(" and more"), piece);
    CHECK(server.plain == "GET / and more");
    std::string out;
    server.tls.say(std::string(100'000, 'x'), out);
    server.tls.say("", out);
    server.tls.end(out);
    client.step(out);
    CHECK(client.heard() == std::string(100'000, 'x'));
    CHECK(client.was_told_the_end());
  }
}

TEST_CASE("web_tls__a_client_that_ends__is_over_and_what_it_had_said_counts") {
  Server server;
  WebClient client;
  shake_hands(server, client);
  const std::string said = client.say("GET /");
  server.hear(said + client.end());
  CHECK(server.state == WebTls::State::over);
  CHECK(server.plain == "GET /");
  std::string out;
  server.tls.say("too late", out);  // is nothing, and no fault of ours
  CHECK(out.empty());
}

TEST_CASE("web_tls__what_is_no_tls_13__is_over_with_an_alert_and_nothing_is_heard") {
  Server old;
  WebClient tls_12(TLS1_2_VERSION);
  const std::string alert = old.hear(tls_12.step(""));
  CHECK(old.state == WebTls::State::over);
  CHECK(alert.starts_with('\x15'));  // of RFC 8446, 6
  Server plain;
  plain.hear("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(plain.state == WebTls::State::over);
  CHECK(plain.plain.empty());
  // The head of a handshake of 2^24 - 1 bytes, in records of 16 KiB that go on and on.
  Server endless;
  const std::string record = std::string("\x16\x03\x01\x40\x00", 5) + std::string("\x01\xff\xff\xff") + std::string(16'380, 'x');
  size_t sent = 0;
  for (; endless.state == WebTls::State::handshake && sent < 4 * web_hello_bytes_max; sent += record.size())
    endless.hear(record, 4096);
  CHECK(endless.state == WebTls::State::over);
  CHECK(sent <= 2 * web_hello_bytes_max);
}

TEST_CASE("web_tls__damaged_records__end_it_and_nothing_of_them_is_heard") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Server server;
    WebClient client;
    const bool early = random() % 2 == 0;
    std::string bytes = client.step("");
    if (!early) {
      server.hear(client.step(server.hear(bytes)));
      REQUIRE(client.done());
      bytes = client.say("GET /");
    }
    bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    server.hear(bytes, 1 + random() % 300);
    if (!early) CHECK(server.plain.empty());
  }
}

TEST_CASE("web_tls__certificates_that_cannot_be_used__are_refused_by_the_name_of_their_file") {
  const Facility root("root");
  const Issued host = root.issue(), other = root.issue();
  const auto complaint = [](const std::string& certificate, const std::string& key) {
    const auto made = WebIdentity::from_pem(certificate, "web.pem", key, "web.key");
    return made ? std::string() : made.error().message;
  };
  CHECK(complaint(host.certificate_pem(), host.key_pem()).empty());
  CHECK(complaint(host.certificate_pem(), other.key_pem()).find("web.pem") != std::string::npos);
  CHECK(complaint("", host.key_pem()).find("web.pem") != std::string::npos);
  CHECK(complaint(host.certificate_pem(), "").find("web.key") != std::string::npos);
  const Issued alone = self_signed({});
  CHECK(complaint(alone.certificate_pem(), alone.key_pem()).empty());
}

}  // namespace
}  // namespace ccixfer::trust
