// The table [metrics]: places, what must guard them, and what is refused.
#include "app/config/metrics.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include "app/config/config.h"

namespace ccixfer::program {
namespace {

std::string said(const std::string& text) {
  const auto config = parse_config("c", text);
  return config ? "" : config.error().message;
}
MetricsConfig metrics(const std::string& lines, const std::string& file = "c") {
  const auto config = parse_config(file, "[metrics]\n" + lines);
  INFO((config ? "" : config.error().message));
  REQUIRE(config);
  return config->metrics;
}
const std::string guarded = "certificate = \"web.pem\"\nkey = \"/web.key\"\ntoken = \"t\"\n";

}  // namespace

TEST_CASE("metrics_config__a_place_and_nothing_else__what_to_write_instead") {
  CHECK(said("metrics = 1\n") == "c:1: metrics: is not a table: write [metrics]");
  CHECK(said("[metrics]\nlisten = 9464\n") == "c:2: metrics.listen: is not a string: write metrics.listen = \"127.0.0.1:9464\"");
  CHECK(said("[metrics]\nlisten = \"\"\n") == "c:2: metrics.listen: is empty: write listen = \"127.0.0.1:9464\", or leave it out");
  CHECK(said("[metrics]\nport = 9464\n") == "c:2: metrics.port: unknown key: listen, names, certificate, key and token are known");
  CHECK(said("[metrics]\nnames = 1\n") == "c:2: metrics.names: is not true or false: write metrics.names = true");
  CHECK(said("[metrics]\ntoken = 1\n") ==
        "c:2: metrics.token: is not a string: write metrics.token = \"/etc/ccixfer/metrics.token\"");
  CHECK(said("[metrics]\nkey = \"\"\n") == "c:2: metrics.key: names no file: give the name of a file");
  CHECK(metrics("listen = \"unix:/run/m\"\n").listen == "unix:/run/m");
}

TEST_CASE("metrics_config__names__are_for_who_may_use_the_socket_or_knows_the_token") {
  CHECK(metrics("listen = \"unix:/run/m\"\n").names);
  CHECK_FALSE(metrics("listen = \"127.0.0.1:9464\"\n").names);
  CHECK(metrics("names = true\nlisten = \"127.0.0.1:9464\"\n").names);
  CHECK_FALSE(metrics("listen = \"unix:/run/m\"\nnames = false\n").names);
  CHECK(metrics("listen = \"127.0.0.1:9464\"\n" + guarded).names);
  CHECK_FALSE(metrics("listen = \"0.0.0.0:9464\"\nnames = false\n" + guarded).names);
}

TEST_CASE("metrics_config__a_place_that_others_reach__takes_certificate_key_and_token") {
  for (const char* place : {"0.0.0.0:9464", "192.0.2.1:9464", "128.0.0.1:1", "[::]:9464", "[2001:db8::1]:9464",
                            "[::ffff:127.0.0.1]:9464", "[fe80::1]:9464"}) {
    INFO(place);
    const std::string listen = fmt::format("[metrics]\nlisten = \"{}\"\n", place);
    CHECK(said(listen + guarded).empty());
    CHECK(said(listen) == fmt::format("c:2: metrics.listen: '{}' is not of this host alone, and certificate is missing: give "
                                      "certificate, key and token, or listen at \"127.0.0.1:9464\"",
                                      place));
    for (const char* missing : {"certificate", "key", "token"}) {
      std::string rest = guarded;
      const size_t at = rest.find(missing);
      rest.erase(at, rest.find('\n', at) + 1 - at);
      CHECK(said(listen + rest)
                .find(fmt::format("c:2: metrics.listen: '{}' is not of this host alone, and {} is missing", place, missing)) == 0);
    }
  }
}

TEST_CASE("metrics_config__what_guards_it__is_whole_and_of_an_address") {
  CHECK(said("[metrics]\nlisten = \"127.0.0.1:1\"\ntoken = \"t\"\n") ==
        "c:3: metrics.token: certificate is missing: certificate, key and token go together");
  CHECK(said("[metrics]\nlisten = \"127.0.0.1:1\"\ncertificate = \"c\"\nkey = \"k\"\n") ==
        "c:3: metrics.certificate: token is missing: certificate, key and token go together");
  CHECK(said("[metrics]\nlisten = \"unix:/run/m\"\n" + guarded) ==
        "c:3: metrics.certificate: a Unix socket has an owner and a group instead: leave it out");
  const MetricsConfig config = metrics("listen = \"[::1]:1\"\n" + guarded, "/etc/ccixfer/border.toml");
  REQUIRE(config.guard);
  CHECK(config.guard->certificate.name == "/etc/ccixfer/web.pem");
  CHECK(config.guard->key.name == "/web.key");
  CHECK(config.guard->token.at == "/etc/ccixfer/border.toml:5: metrics.token");
  CHECK_FALSE(metrics("listen = \"127.0.0.1:1\"\n").guard);
}

TEST_CASE("metrics_config__places__are_parsed_whole_and_know_who_reaches_them") {
  for (const char* text : {"", "9464", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 1",
                           "host.example:9464", "unix:", "unix:relative", "[::1:9464", "::1:9464", "[::1]9464", "127.1:1"}) {
    INFO(text);
    CHECK_FALSE(parse_metrics_place(text));
    CHECK(said(fmt::format("[metrics]\nlisten = \"{}\"\n", text)).starts_with("c:2: metrics.listen: "));
  }
  CHECK_FALSE(parse_metrics_place("unix:/" + std::string(200, 'x')));
  CHECK_FALSE(parse_metrics_place(std::string("127.0.0.1\0x:1", 13)));
  for (const char* text : {"127.0.0.1:1", "127.255.0.3:1", "localhost:1", "[::1]:1", "unix:/run/m"}) {
    INFO(text);
    const auto place = parse_metrics_place(text);
    REQUIRE(place);
    CHECK(place->is_local);
  }
  const auto all = parse_metrics_place("0.0.0.0:65535");
  REQUIRE(all);
  CHECK_FALSE(all->is_local);
  CHECK(reinterpret_cast<const sockaddr_in&>(all->address).sin_port == htons(65535));
}

}  // namespace ccixfer::program
