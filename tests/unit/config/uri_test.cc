// URIs of the command line, split into address and path.
#include "app/config/uri.h"

#include <catch2/catch.hpp>

namespace ccixfer::program {

TEST_CASE("uri__native_and_routed__split_into_address_and_path") {
  const auto native = split_target("tcp://host:7000/a/b/");
  REQUIRE(native);
  CHECK(native->address == "tcp://host:7000");
  CHECK(native->path == "a/b/");
  CHECK_FALSE(native->routed);
  CHECK(split_target("sock://[::1]:7000")->address == "udp://[::1]:7000");
  CHECK(split_target("tcp://h:1")->path.empty());
  CHECK(split_target("tcp://h:1//x")->path == "/x");
  const auto routed = split_target("cci://32:126:10.101.50.37:6744/incoming/run42/");
  REQUIRE(routed);
  CHECK(routed->routed);
  CHECK(routed->address == "cci://32:126:10.101.50.37:6744");
  CHECK(routed->path == "incoming/run42/");
}

TEST_CASE("uri__of_each_transport__and_where_to_listen") {
  const auto udp = split_target("udp://h:7000/a").value();
  CHECK(udp.scheme == "udp");
  CHECK(udp.address == "udp://h:7000");
  CHECK(udp.path == "a");
  CHECK(split_target("udp://h").error().kind == ErrorKind::usage);
  const auto verbs = split_target("verbs://[::1]:7000/a").value();
  CHECK(verbs.scheme == "verbs");
  CHECK(verbs.address == "verbs://[::1]:7000");
  CHECK(verbs.path == "a");
  const auto listen = [](std::string_view text) {
    const auto place = split_listen(text).value();
    return place.scheme + "|" + place.at.host + "|" + std::to_string(place.at.port);
  };
  CHECK(listen("127.0.0.1:0") == "|127.0.0.1|0");
  CHECK(listen("udp://[::1]:7") == "udp|::1|7");
  CHECK(listen("tcp://*:7") == "tcp|*|7");
  CHECK(listen("verbs://h:7") == "verbs|h|7");
  for (const char* text : {"cci://1:1:h:1", "verbs://h", "udp://", "udp://h", "udp://h:1/x", "://h:1", ""}) {
    CAPTURE(text);
    CHECK(split_listen(text).error().kind == ErrorKind::usage);
  }
}

TEST_CASE("uri__of_eth__a_mac_and_an_id") {
  const auto eth = split_target("eth://02:00:00:00:aB:01:7/a/b").value();
  CHECK(eth.scheme == "eth");
  CHECK(eth.address == "eth://02:00:00:00:aB:01:7");
  CHECK(eth.path == "a/b");
  for (const char* uri : {"eth://h:1", "eth://02:00:00:00:00:01", "eth://02:00:00:00:00:01:", "eth://02:00:00:00:00:01:0",
                          "eth://02:00:00:00:00:01:65536", "eth://02-00-00-00-00-01:7", "eth://02:00:00:00:00:0g:7",
                          "eth://[02:00:00:00:00:01]:7", "eth://02:00:00:00:00:01:7x", "eth://2:0:0:0:0:1:7", "eth:///x"}) {
    CAPTURE(uri);
    CHECK(split_target(uri).error().kind == ErrorKind::usage);
  }
  const auto place = split_listen("eth://02:00:00:00:00:01:0").value();
  CHECK(place.scheme == "eth");
  CHECK(place.at.host == "02:00:00:00:00:01");
  CHECK(place.at.port == 0);
  CHECK(split_listen("eth://h:1").error().message == "not an address: h:1: write MAC:ID, such as 02:00:00:00:00:01:7");
}

TEST_CASE("uri__malformed__usage") {
  for (const char* uri : {"", "x", "tcp:/h:1", "tcp://nohost", "tcp://h:", "tcp://h:0/x", "tcp://h:70000", "tcp://:1", "tcp://h:1x",
                          "tcp://a:b:1", "tcp://[::1:1", "gopher://x:1/y", "cci://1:2/x", "cci://a:b:c:d", "tcp://h h:1"}) {
    INFO(uri);
    const auto target = split_target(uri);
    REQUIRE_FALSE(target);
    CHECK(target.error().kind == ErrorKind::usage);
  }
}

TEST_CASE("uri__a_ticket_where_an_address_is_meant__is_not_said_again") {
  const auto target = split_target("cxt1secret/in");
  REQUIRE_FALSE(target);
  CHECK(target.error().message.find("secret") == std::string::npos);
  CHECK(target.error().message.starts_with("not an address: a ticket: "));
}

TEST_CASE("uri__host_names__are_at_most_255_bytes") {
  const std::string longest(255, 'h');
  CHECK(split_target("tcp://" + longest + ":1/x").value().address == "tcp://" + longest + ":1");
  CHECK(split_target("tcp://" + longest + "h:1/x").error().kind == ErrorKind::usage);
}

TEST_CASE("uri__shm__a_name_and_a_path") {
  const auto target = split_target("shm://site-A_1.x/a/b");
  REQUIRE(target);
  CHECK(target->scheme == "shm");
  CHECK(target->address == "shm://site-A_1.x");
  CHECK(target->path == "a/b");
  CHECK_FALSE(target->routed);
  CHECK(split_target("shm://" + std::string(64, 'n')).value().path.empty());
  const std::string hint = "write shm://NAME, of at most 64 letters, digits, '.', '_' and '-'";
  for (const std::string& uri : {std::string("shm://"), std::string("shm:///x"), std::string("shm://a:1/x"),
                                 std::string("shm://a b"), "shm://" + std::string(65, 'n')}) {
    const auto wrong = split_target(uri);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().kind == ErrorKind::usage);
    CHECK(wrong.error().message == "not an address: " + uri + ": " + hint);
  }
  CHECK(split_listen("shm://here").value().at.host == "here");
  CHECK(split_listen("shm://here").value().scheme == "shm");
  CHECK(split_listen("shm://").value().at.host.empty());  // any
  CHECK(split_listen("shm://a:1").error().message == "cannot listen there: shm://a:1: " + hint);
}

TEST_CASE("uri__unknown_transport__said_with_those_there_are") {
  const std::string forms =
      "tcp://HOST:PORT, udp://HOST:PORT, verbs://HOST:PORT, shm://NAME, eth://MAC:ID or cci://AS:SUBNET:NODE:ENDPOINT";
  CHECK(address_forms() == forms);
  CHECK(split_target("gm://h:1").error().message == "not an address: gm://h:1: write " + forms + ", and /PATH after it");
  CHECK(split_listen("gm://h:1").error().message ==
        "cannot listen there: gm://h:1: write HOST:PORT, or one of " + std::string(native_forms));
}

TEST_CASE("peer_path__trailing_slash_or_nothing__is_a_directory") {
  CHECK(peer_path("").directory);
  CHECK(peer_path("a/").directory);
  CHECK(peer_path("a/").path == "a");
  CHECK_FALSE(peer_path("a/b").directory);
  CHECK(peer_path("//a//").path == "a");
  CHECK(peer_path("//a//").directory);
  CHECK_FALSE(peer_path("/a").directory);
}

TEST_CASE("peer_path__doubled_slashes_and_dots__mean_nothing") {
  CHECK(peer_path("a//b").path == "a/b");
  CHECK_FALSE(peer_path("a//b").directory);
  CHECK(peer_path("./a/./b").path == "a/b");
  CHECK_FALSE(peer_path("./a").directory);
  for (const char* root : {".", "/", "./", "//.", "."}) {
    CAPTURE(root);
    CHECK(peer_path(root).path.empty());
    CHECK(peer_path(root).directory);
  }
  CHECK(peer_path("a/.").path == "a");
  CHECK(peer_path("a/.").directory);
  CHECK(peer_path("a/../b").path == "a/../b");  // the receiver's to judge, and to refuse
  CHECK(peer_path("a/..b/.c").path == "a/..b/.c");
}

}  // namespace ccixfer::program
