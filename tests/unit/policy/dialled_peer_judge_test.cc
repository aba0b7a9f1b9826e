// Whether a peer that we dialled is the right one, by table, known_peers, ticket and person.
#include "app/trust/dialled_peer_judge.h"

#include "tests/unit/policy/rig.h"

namespace ccixfer::policy {
using namespace test;
namespace {

const std::string here = "tcp://dtn.lab:7000";

struct Rig {
  TempDir directory;
  std::string file = directory.path() + "/a/known_peers";

  DialledPeerJudge judge(std::vector<program::PeerConfig> tables = {}, const std::string& known = "") const {
    if (!known.empty()) {
      REQUIRE((mkdir((directory.path() + "/a").c_str(), 0700) == 0 || errno == EEXIST));
      write(file, known);
    }
    return DialledPeerJudge(Peers(std::move(tables)), KnownPeersFile::load(file).value());
  }
};

Result<Verdict> asked(const DialledPeerJudge& judge, const trust::ProvedPeer& peer, const std::string& address = here) {
  return judge.judge(peer, address, std::nullopt, Person::present);
}
bool is_accepted(const Result<Verdict>& verdict) { return verdict && verdict->kind == Verdict::Kind::accepted; }
bool is_asked(const Result<Verdict>& verdict) { return verdict && verdict->kind == Verdict::Kind::ask; }

}  // namespace

TEST_CASE("judge__an_expected_id__decides_alone") {
  const Rig rig;
  // Everything else speaks for peer 1, and the ticket for peer 2.
  const auto judge = rig.judge({table("lab", 1, {here})}, here + " " + text_of(1) + "\n");
  CHECK(is_accepted(judge.judge(by_key(2), here, id_of(2), Person::absent)));
  const auto words =
      refusal(judge.judge(by_certificate(1, {"dtn.lab"}), here, id_of(2), Person::present), ErrorKind::authentication);
  contains(words, text_of(1));
  contains(words, text_of(2));
}

TEST_CASE("may_know__a_table_or_a_line__says_whether_anybody_could_be_accepted") {
  const std::string elsewhere = "tcp://elsewhere:7000";
  CHECK_FALSE(Rig().judge().may_know(here));
  CHECK_FALSE(Rig().judge({table("lab", 1, {elsewhere})}, elsewhere + " " + text_of(1) + "\n").may_know(here));
  CHECK(Rig().judge({table("lab", 1, {here})}).may_know("TCP://DTN.LAB:7000"));
  CHECK(Rig().judge({table("lab", 1, {})}).may_know(here));
  CHECK(Rig().judge({}, here + " " + text_of(1) + "\n").may_know(here));
}

TEST_CASE("judge__a_table_with_this_address__decides_before_known_peers") {
  const Rig rig;
  const auto judge = rig.judge({table("lab", 1, {here})}, here + " " + text_of(2) + "\n");
  CHECK(is_accepted(asked(judge, by_key(1))));
  CHECK(is_accepted(asked(judge, by_key(1), "TCP://DTN.Lab:7000")));
  const auto words = refusal(asked(judge, by_certificate(2, {"dtn.lab"})), ErrorKind::authentication);
  contains(words, "the peer at tcp://dtn.lab:7000 is " + text_of(2) + ", but [peer.lab] says " + text_of(1));
}

TEST_CASE("judge__a_table_with_this_address_and_a_name__wants_a_certificate_with_it") {
  const Rig rig;
  const auto judge = rig.judge({named("lab", "other.lab", {here})});
  CHECK(is_accepted(asked(judge, by_certificate(1, {"other.lab"}))));
  contains(refusal(asked(judge, by_certificate(1, {"dtn.lab"})), ErrorKind::authentication), "the name other.lab");
  refusal(asked(judge, trust::ProvedPeer{id_of(1), false, {"other.lab"}}), ErrorKind::authentication);
}

TEST_CASE("judge__a_known_address_with_another_key__is_refused_with_both_ids_and_the_line") {
  const Rig rig;
  const auto judge = rig.judge({}, "# mine\n\n" + here + " " + text_of(1) + "\n" + here + "0 " + text_of(9) + "\n");
  CHECK(is_accepted(asked(judge, by_key(1))));
  const auto words = refusal(asked(judge, by_certificate(2, {"dtn.lab"})), ErrorKind::authentication);
  contains(words, text_of(1));
  contains(words, text_of(2));
  contains(words, "remove line 3 of " + rig.file);
}

TEST_CASE("judge__a_certificate_that_names_the_host__is_accepted_and_another_host_is_new") {
  const Rig rig;
  const auto judge = rig.judge();
  CHECK(is_accepted(asked(judge, by_certificate(1, {"x", "dtn.lab"}))));
  CHECK(is_asked(asked(judge, by_certificate(1, {"tn.lab", "x.dtn.lab", "*.lab"}))));
  CHECK(is_asked(asked(judge, trust::ProvedPeer{id_of(1), false, {"dtn.lab"}})));
  CHECK(is_accepted(asked(judge, by_certificate(1, {"10.0.0.2"}), "cci://1:2:10.0.0.2:7000")));
  CHECK(is_asked(asked(judge, by_certificate(1, {"7000", "1:2"}), "cci://1:2:10.0.0.2:7000")));
  CHECK(is_accepted(asked(judge, by_certificate(1, {"2001:db8:0:0:0:0:0:1"}), "tcp://[2001:DB8::1]:7000")));
  CHECK(is_asked(asked(judge, by_certificate(1, {""}), "nonsense")));
}

TEST_CASE("judge__a_table_without_addresses__is_accepted_anywhere_and_one_with_others_is_new") {
  const Rig rig;
  const auto judge = rig.judge({table("anywhere", 1), table("elsewhere", 2, {"tcp://else:1"}), named("certified", "c.lab")});
  CHECK(is_accepted(asked(judge, by_key(1))));
  CHECK(is_asked(asked(judge, by_key(2))));
  CHECK(is_accepted(asked(judge, by_certificate(3, {"c.lab"}))));
}

TEST_CASE("judge__a_new_peer__a_person_is_asked_with_address_and_id") {
  const Rig rig;
  const auto verdict = asked(rig.judge(), by_key(5));
  REQUIRE(is_asked(verdict));
  contains(verdict->words, here);
  contains(verdict->words, text_of(5));
}

TEST_CASE("judge__a_new_peer_and_nobody_there__is_refused_with_the_command_to_run") {
  const Rig rig;
  const auto words = refusal(rig.judge().judge(by_key(5), here, std::nullopt, Person::absent), ErrorKind::authentication);
  const std::string marker = "prints the same, ";
  REQUIRE(contains(words, marker));
  const std::string command = words.substr(words.find(marker) + marker.size());
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(is_accepted(rig.judge().judge(by_key(5), here, std::nullopt, Person::absent)));
  refusal(rig.judge().judge(by_key(6), here, std::nullopt, Person::absent), ErrorKind::authentication);
}

TEST_CASE("judge__an_account_without_a_home__names_the_table_to_add") {
  DialledPeerJudge judge(Peers(), KnownPeersFile::load("").value());
  const auto words = refusal(judge.judge(by_key(5), here, std::nullopt, Person::absent), ErrorKind::authentication);
  contains(words, "[peer.NAME] id = \"" + text_of(5) + "\" address = \"" + here + "\"");
  refusal(judge.remember(here, id_of(5)), ErrorKind::usage);
}

TEST_CASE("judge__remembered__is_accepted_at_once_and_by_the_next_process") {
  const Rig rig;
  auto judge = rig.judge();
  REQUIRE(judge.remember("tcp://DTN.lab:7000", id_of(5)));
  CHECK(is_accepted(asked(judge, by_key(5))));
  CHECK(is_accepted(asked(rig.judge(), by_key(5))));
  refusal(asked(judge, by_key(6)), ErrorKind::authentication);
  CHECK(mode_of(rig.file) == 0600);
  CHECK(mode_of(rig.directory.path() + "/a") == 0700);
}

TEST_CASE("judge__a_person_said_yes_and_the_file_cannot_be_written__it_holds_for_this_process") {
  DialledPeerJudge judge(Peers(), KnownPeersFile::load("").value());
  refusal(judge.remember("tcp://DTN.lab:7000", id_of(5)), ErrorKind::usage);
  CHECK(is_accepted(asked(judge, by_key(5))));
  CHECK(is_asked(asked(judge, by_key(6))));
  CHECK(is_asked(judge.judge(by_key(5), "tcp://other.lab:7000", std::nullopt, Person::present)));
}

TEST_CASE("judge__remembered_behind_a_line_without_its_end__gets_a_line_of_its_own") {
  const Rig rig;
  auto judge = rig.judge({}, "tcp://x:1 " + text_of(1));
  REQUIRE(judge.remember("tcp://y:1", id_of(2)));
  REQUIRE(judge.remember("tcp://z:1", id_of(3)));
  CHECK(content_of(rig.file) == "tcp://x:1 " + text_of(1) + "\ntcp://y:1 " + text_of(2) + "\ntcp://z:1 " + text_of(3) + "\n");
}

TEST_CASE("known_peers__a_file_that_others_may_write__is_refused_and_one_they_may_read_is_not") {
  const Rig rig;
  static_cast<void>(rig.judge({}, here + " " + text_of(1) + "\n"));
  REQUIRE(chmod(rig.file.c_str(), 0644) == 0);
  CHECK(KnownPeersFile::load(rig.file));
  for (const mode_t bad : {0660u, 0602u, 0666u}) {
    REQUIRE(chmod(rig.file.c_str(), bad) == 0);
    contains(refusal(KnownPeersFile::load(rig.file), ErrorKind::usage), rig.file + ": others may write it: chmod go-w " + rig.file);
  }
}

TEST_CASE("known_peers__a_damaged_line__is_named") {
  const Rig rig;
  static_cast<void>(rig.judge());
  REQUIRE(mkdir((rig.directory.path() + "/a").c_str(), 0700) == 0);
  write(rig.file, "# fine\ntcp://h:1 cx1-nonsense\n");
  contains(refusal(KnownPeersFile::load(rig.file), ErrorKind::usage), rig.file + ":2: ");
}

TEST_CASE("known_peers__an_address_beyond_ascii__cannot_be_remembered") {
  const Rig rig;
  auto judge = rig.judge();
  refusal(judge.remember("tcp://d\xc3\xa9j\xc3\xa0:1", id_of(1)), ErrorKind::usage);
}

// Several connections to one peer may be on their way when the person answers: nobody is asked for each.
TEST_CASE("judge__a_person_said_no__that_peer_there_is_not_asked_about_again") {
  const Rig rig;
  auto judge = rig.judge();
  REQUIRE(is_asked(asked(judge, by_key(1))));
  judge.decline(here, id_of(1));
  const auto again = asked(judge, by_key(1));
  REQUIRE_FALSE(again);
  CHECK(again.error().kind == ErrorKind::authentication);
  CHECK(again.error().message == declined(here, id_of(1)).message);
  CHECK_FALSE(asked(judge, by_key(1), "TCP://DTN.LAB:7000"));
  CHECK(is_asked(asked(judge, by_key(2))));
  CHECK(is_asked(asked(judge, by_key(1), "tcp://elsewhere.example:7000")));
}

}  // namespace ccixfer::policy
