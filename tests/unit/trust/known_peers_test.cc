// The file known_peers: its lines, and which ones are wrong.
#include "core/trust/known_peers.h"

#include <catch2/catch.hpp>

namespace ccixfer::trust {
namespace {

const PeerId one = peer_id_of(as_bytes("one"));
const PeerId two = peer_id_of(as_bytes("two"));

std::string complaint(const std::string& text) {
  const auto known = KnownPeers::parse(text, "known_peers");
  if (known) return "";
  CHECK(known.error().kind == ErrorKind::usage);
  return known.error().message;
}

TEST_CASE("known_peers__lines_as_they_are_appended__found_by_address") {
  const std::string text =
      "# made by hand\n\n" + KnownPeers::line("tcp://10.0.0.1:7100", one) + KnownPeers::line("cci://1:2:n:7", two);
  const auto known = KnownPeers::parse(text, "known_peers");
  REQUIRE(known);
  CHECK(known->find("tcp://10.0.0.1:7100") == one);
  CHECK(known->find("cci://1:2:n:7") == two);
  CHECK_FALSE(known->find("tcp://10.0.0.1:7101"));
  CHECK_FALSE(known->find("tcp://10.0.0.1:710"));
  CHECK_FALSE(known->find(""));
}

TEST_CASE("known_peers__a_line_written_by_hand_in_capitals__is_the_same_address") {
  const auto known = KnownPeers::parse(KnownPeers::line("tcp://Data.Example:7100", one), "known_peers");
  REQUIRE(known);
  CHECK(known->find("tcp://data.example:7100") == one);
}

TEST_CASE("known_peers__a_line_written_down__address_space_id_newline") {
  CHECK(KnownPeers::line("tcp://host:1", peer_id_of(as_bytes("abc"))) ==
        "tcp://host:1 cx1-xj4b-np4p-ahh6-uqkb-idpf-3lrc-eoya-gynd-sylx-vhfu-cd7w-d4qa-cwwq\n");
}

TEST_CASE("known_peers__an_address_twice__its_last_line_counts") {
  const auto known = KnownPeers::parse(KnownPeers::line("tcp://h:1", one) + KnownPeers::line("tcp://h:1", two), "known_peers");
  REQUIRE(known);
  CHECK(known->find("tcp://h:1") == two);
}

TEST_CASE("known_peers__no_newline_at_the_end_or_an_empty_file__read_all_the_same") {
  std::string text = KnownPeers::line("tcp://h:1", one);
  text.pop_back();
  const auto known = KnownPeers::parse(text, "known_peers");
  REQUIRE(known);
  CHECK(known->find("tcp://h:1") == one);
  REQUIRE(KnownPeers::parse("", "known_peers"));
  CHECK_FALSE(KnownPeers::parse("\n", "known_peers")->find(""));
}

TEST_CASE("known_peers__a_wrong_line__named_by_file_and_number") {
  const std::string id = to_string(one);
  const std::string good = KnownPeers::line("tcp://h:1", one);
  for (const auto& [line, part] : {std::pair<std::string, std::string>("tcp://h:1", "a line is an address"),
                                   {"tcp://h:1 ", "not an id"},
                                   {"tcp://h:1  " + id, "not an id"},
                                   {"tcp://h:1 " + id + " ", "not an id"},
                                   {"tcp://h:1 " + id + "\r", "not an id"},
                                   {"tcp://h:1 cx1-abcd", "4 letters and not 52"},
                                   {"h:1 " + id, "not an address: h:1"},
                                   {" tcp://h:1 " + id, "not an address"},
                                   {"tcp://\x1b[2J:1 " + id, "not an address: tcp://%1B"},
                                   {std::string("tcp://\0:1 ", 10) + id, "not an address"},
                                   {" # comment", "not an address"}}) {
    const std::string said = complaint(good + line + "\n" + good);
    INFO(said);
    CHECK(said.rfind("known_peers:2: ", 0) == 0);
    CHECK(said.find(part) != std::string::npos);
    CHECK(said.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("known_peers__longer_than_its_bound__refused") {
  const std::string most(known_peers_bytes_max, '\n');
  CHECK(complaint(most).empty());
  CHECK(complaint(most + "\n").find("too long: known_peers") == 0);
}

}  // namespace
}  // namespace ccixfer::trust
