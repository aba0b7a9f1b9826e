// HOST:PORT in URIs of the networks with IP.
#include "transports/inet/uri.h"

#include <catch2/catch.hpp>
#include <string>

namespace ccixfer::inet {
namespace {

TEST_CASE("uri__good_and_bad__parsed_or_named") {
  const auto good = [](std::string_view uri) {
    const auto name = parse_uri("tcp", uri);
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
    const auto name = parse_uri("tcp", bad);
    REQUIRE_FALSE(name);
    CHECK(name.error().kind == ErrorKind::usage);
  }
  CHECK(format_uri("tcp", "::1", 5) == "tcp://[::1]:5");
  CHECK(format_uri("tcp", "a", 5) == "tcp://a:5");
}

}  // namespace
}  // namespace ccixfer::inet
