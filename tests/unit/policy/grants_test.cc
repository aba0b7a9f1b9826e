// What a peer may read and write, by the prefixes of its table.
#include "app/trust/grants.h"

#include "tests/unit/policy/rig.h"

namespace ccixfer::policy {
using namespace test;
namespace {

program::PeerConfig writer(std::vector<std::string> write, std::vector<std::string> read = {}) {
  program::PeerConfig peer = table("lab", 1);
  peer.write = std::move(write);
  peer.read = std::move(read);
  return peer;
}
bool may(const program::PeerConfig& peer, Direction direction, const std::string& path) {
  return authorise(by_key(1), &peer, direction, path).has_value();
}

}  // namespace

TEST_CASE("grants__a_prefix__covers_itself_and_below_by_whole_components") {
  const auto peer = writer({"incoming/run"});
  CHECK(may(peer, Direction::write, "incoming/run"));
  CHECK(may(peer, Direction::write, "incoming/run/a/b"));
  for (const char* outside : {"incoming/run42", "incoming", "", "incoming/ru", "x/incoming/run", "incoming/run.old"}) {
    INFO(outside);
    CHECK_FALSE(may(peer, Direction::write, outside));
  }
}

TEST_CASE("grants__the_whole_root__covers_everything") {
  const auto peer = writer({""});
  CHECK(may(peer, Direction::write, ""));
  CHECK(may(peer, Direction::write, "a/b"));
}

TEST_CASE("grants__no_prefixes__nothing_and_each_direction_has_its_own") {
  CHECK_FALSE(may(writer({}), Direction::write, "a"));
  CHECK_FALSE(may(writer({}), Direction::write, ""));
  const auto both = writer({"in"}, {"out"});
  CHECK(may(both, Direction::write, "in/x"));
  CHECK_FALSE(may(both, Direction::read, "in/x"));
  CHECK(may(both, Direction::read, "out"));
  CHECK_FALSE(may(both, Direction::write, "out"));
}

TEST_CASE("grants__what_the_table_says__stands_in_the_grant") {
  auto peer = writer({"in", "more"}, {"out"});
  peer.quota_bytes = 0;
  peer.rate_bytes_per_s = 5;
  peer.entries_max = 7;
  peer.setid = true;
  const auto grant = authorise(by_key(1), &peer, Direction::write, "more/x");
  REQUIRE(grant);
  CHECK(grant->name == "lab");
  CHECK(grant->quota_bytes == 0u);
  CHECK(grant->rate_bytes_per_s == 5u);
  CHECK(grant->entries_max == 7u);
  CHECK(grant->setid);
  CHECK_FALSE(grant->devices);
  CHECK(grant->prefixes == std::vector<std::string>{"in", "more"});
  CHECK(covers(*grant, "in/deep/er"));
  CHECK_FALSE(covers(*grant, "inner"));
  const auto read = authorise(by_key(1), &peer, Direction::read, "out");
  REQUIRE(read);
  CHECK(read->prefixes == std::vector<std::string>{"out"});
}

TEST_CASE("grants__a_peer_without_a_table__is_told_its_id_and_the_lines_to_add") {
  const auto words = refusal(authorise(by_key(1), nullptr, Direction::write, "incoming/x"), ErrorKind::not_authorised);
  CHECK(words == "not authorised: " + text_of(1) +
                     " may not write incoming/x: add to the receiver's configuration: [peer.NAME] id = \"" + text_of(1) +
                     "\" write = [\"incoming/x\"]");
  contains(refusal(authorise(by_key(1), nullptr, Direction::read, ""), ErrorKind::not_authorised), "read = [\".\"]");
}

TEST_CASE("grants__a_peer_with_a_table__is_told_what_to_add_there") {
  const auto peer = writer({"in"});
  const auto words = refusal(authorise(by_key(1), &peer, Direction::write, "other"), ErrorKind::not_authorised);
  contains(words, text_of(1) +
                      " may not write other: it may write in: put \"other\" into the list write of [peer.lab] of the "
                      "receiver's configuration");
  const auto none = writer({});
  contains(refusal(authorise(by_key(1), &none, Direction::write, "other"), ErrorKind::not_authorised),
           ": add to [peer.lab] of the receiver's configuration: write = [\"other\"]");
  contains(refusal(authorise(by_key(1), &peer, Direction::read, "other"), ErrorKind::not_authorised),
           ": add to [peer.lab] of the server's configuration: read = [\"other\"]");
  const auto many = writer({"a", "b", "c", "d", "e"});
  contains(refusal(authorise(by_key(1), &many, Direction::write, ""), ErrorKind::not_authorised),
           "may not write the whole root: it may write a, b, c, d and others: put \".\" into the list write of");
}

TEST_CASE("grants__a_path_with_odd_bytes__stays_one_line_and_one_string") {
  const auto words = refusal(authorise(by_key(1), nullptr, Direction::write, "a\"\n\x1b[2J\\"), ErrorKind::not_authorised);
  contains(words, R"(["a\"%0A%1B[2J\\"])");
}

}  // namespace ccixfer::policy
