// Routed addresses and native ones, both ways.
#include "routing/map/address.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

TEST_CASE("address__well_formed__round_trips") {
  for (const char* uri : {"cci://32:126:10.101.50.37:6744", "cci://0:4294967295:host.example:1", "cci://1:2:[fe80::1]:7000",
                          "cci://1:2:[02:00:00:aa:bb:cc]:5", "cci://7:1:NAME:0"}) {
    const auto address = parse_address(uri);
    REQUIRE(address);
    CHECK(format_address(*address) == uri);
  }
}

TEST_CASE("address__native__and_back") {
  const auto address = parse_address("cci://1:2:[fe80::1]:7000");
  REQUIRE(address);
  CHECK(native_uri(*address, "tcp") == "tcp://[fe80::1]:7000");
  CHECK(address_of({1, 2}, "tcp://[fe80::1]:7000").value() == *address);
  CHECK(address_of({3, 4}, "tcp://10.0.0.1:7000").value() == Address{{3, 4}, "10.0.0.1", "7000"});
  CHECK(address_of({3, 4}, "shm://NAME").value() == Address{{3, 4}, "NAME", "0"});
  CHECK(native_uri(Address{{3, 4}, "NAME", "0"}, "shm") == "shm://NAME");
  const auto mac = address_of({3, 4}, "eth://02:00:00:aa:bb:cc:5");
  REQUIRE(mac);
  CHECK(format_address(*mac) == "cci://3:4:[02:00:00:aa:bb:cc]:5");
  CHECK(native_uri(*mac, "eth") == "eth://02:00:00:aa:bb:cc:5");
}

TEST_CASE("address__malformed__is_a_usage_error") {
  for (const char* uri : {"", "tcp://a:1", "cci://", "cci://1", "cci://1:2", "cci://1:2:", "cci://1:2:a",
                          "cci://1:2:a:", "cci://1:2::7", "cci://-1:2:a:7", "cci://4294967296:2:a:7", "cci://1:x:a:7",
                          "cci://1:2:a b:7", "cci://1:2:a:7/path", "cci://1:2:fe80::1:7", "cci://1:2:[a:7", "cci://1:2:a\n:7"}) {
    INFO(uri);
    const auto address = parse_address(uri);
    REQUIRE_FALSE(address);
    CHECK(address.error().kind == ErrorKind::usage);
  }
  CHECK_FALSE(address_of({1, 2}, "10.0.0.1:7000"));
  CHECK_FALSE(address_of({1, 2}, "tcp://"));
}

TEST_CASE("address__nodes_and_endpoints__up_to_their_lengths_and_no_longer") {
  const std::string node(255, 'n'), endpoint(32, 'e');
  for (const std::string& before : {std::string("cci://1:2:"), std::string("tcp://")}) {
    const auto taken = [&](const std::string& rest) {
      return before == "tcp://" ? static_cast<bool>(address_of({1, 2}, before + rest))
                                : static_cast<bool>(parse_address(before + rest));
    };
    CHECK(taken(node + ":" + endpoint));
    CHECK_FALSE(taken(node + "n:" + endpoint));
    CHECK_FALSE(taken(node + ":" + endpoint + "e"));
    CHECK(taken("[" + node + "]:7"));
    CHECK_FALSE(taken("[" + node + "n]:7"));
    CHECK_FALSE(taken("[]:7"));
    CHECK_FALSE(taken("[:7"));
    CHECK_FALSE(taken("a]:7"));
    CHECK_FALSE(taken("[a/b]:7"));
    CHECK_FALSE(taken("[a]b]:7"));
  }
}

TEST_CASE("address__same_place__however_ip_and_port_are_written") {
  const auto same = [](const char* a, const char* b) { return is_same(parse_address(a).value(), parse_address(b).value()); };
  CHECK(same("cci://1:2:10.0.0.1:7000", "cci://1:2:10.0.0.1:07000"));
  CHECK(same("cci://1:2:[fe80::1]:7000", "cci://1:2:[fe80:0::1]:7000"));
  CHECK(same("cci://1:2:[::ffff:10.0.0.1]:7000", "cci://1:2:10.0.0.1:7000"));
  CHECK(same("cci://1:2:host:7000", "cci://1:2:host:7000"));
  CHECK_FALSE(same("cci://1:2:10.0.0.1:7000", "cci://1:3:10.0.0.1:7000"));
  CHECK_FALSE(same("cci://1:2:10.0.0.1:7000", "cci://1:2:10.0.0.2:7000"));
  CHECK_FALSE(same("cci://1:2:10.0.0.1:7000", "cci://1:2:10.0.0.1:70"));
  CHECK_FALSE(same("cci://1:2:host:7000", "cci://1:2:other:7000"));
}

TEST_CASE("address__of_the_host_itself__in_every_form") {
  for (const char* node : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:127.0.0.1", "::1%lo", "localhost",
                           "LocalHost.", "a.localhost", "127.1", "0", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "."}) {
    CAPTURE(node);
    CHECK(is_host_itself(node));
  }
  for (const char* node : {"10.0.0.1", "192.0.2.7", "fe80::1", "fe80::1%eth0", "2001:db8::1", "::2", "host",
                           "localhost.example.org", "n1.example.org", "7up", "::ffff:10.0.0.1"}) {
    CAPTURE(node);
    CHECK_FALSE(is_host_itself(node));
  }
}
