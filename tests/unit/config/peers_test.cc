// The tables [identity] and [peer.NAME].
#include "app/config/peers.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "app/config/config.h"

namespace ccixfer::program {
namespace {

const std::string id_a = trust::to_string(trust::PeerId{{1, 2, 3}});
const std::string id_b = trust::to_string(trust::PeerId{{4, 5, 6}});

Result<Config> read(const std::string& text) { return parse_config("/etc/x/f.toml", text); }

std::string complaint(const std::string& text) {
  const auto config = read(text);
  if (config) return "";
  CHECK(config.error().kind == ErrorKind::usage);
  CHECK(config.error().message.find('\n') == std::string::npos);
  return config.error().message;
}

void starts(const std::string& text, const std::string& with) {
  INFO(text);
  CHECK(text.rfind("/etc/x/f.toml:" + with, 0) == 0);
}

std::string peer(const std::string& lines, const std::string& name = "a", const std::string& id = id_a) {
  return "[peer." + name + "]\nid = \"" + id + "\"\n" + lines + "\n";
}

}  // namespace

TEST_CASE("peers__every_key_of_a_peer__is_read") {
  const auto config =
      read(peer("address = [\"sock://DTN.example:7000\", \"cci://1:2:10.0.0.1:7000\"]\n"
                "write = [\"incoming//run42/\", \"./x\"]\nread = [\"published/\"]\nquota = \"10TiB\"\nrate = \"5Gb/s\"\n"
                "entries = 10000000\ndevices = true\nsetid = true\nroute = true\nrouter = true\nas = 4\nadmin = true",
                "lab"));
  REQUIRE(config);
  CHECK_FALSE(config->identity);
  REQUIRE(config->peers.size() == 1);
  const PeerConfig& lab = config->peers[0];
  CHECK(lab.name == "lab");
  CHECK(lab.id == trust::PeerId{{1, 2, 3}});
  CHECK(lab.certified_name.empty());
  CHECK(lab.addresses == std::vector<std::string>{"udp://dtn.example:7000", "cci://1:2:10.0.0.1:7000"});
  CHECK(lab.write == std::vector<std::string>{"incoming/run42", "x"});
  CHECK(lab.read == std::vector<std::string>{"published"});
  CHECK(lab.quota_bytes == uint64_t{10} << 40);
  CHECK(lab.rate_bytes_per_s == 625'000'000u);
  CHECK(lab.entries_max == 10'000'000u);
  CHECK((lab.devices && lab.setid && lab.route && lab.router && lab.admin));
  CHECK(lab.as == 4u);
}

TEST_CASE("peers__what_is_not_given__grants_nothing_and_limits_nothing") {
  const auto config = read("[peer.a]\nname = \"DTN1.Lab.example\"\n");
  REQUIRE(config);
  const PeerConfig& a = config->peers.at(0);
  CHECK(a.certified_name == "dtn1.lab.example");
  CHECK_FALSE(a.id);
  CHECK((a.write.empty() && a.read.empty() && a.addresses.empty()));
  CHECK_FALSE((a.quota_bytes || a.rate_bytes_per_s || a.entries_max || a.as));
  CHECK_FALSE((a.devices || a.setid || a.route || a.router || a.admin));
}

TEST_CASE("peers__limits_of_zero__are_limits") {
  const auto config = read(peer("quota = \"0\"\nentries = 0"));
  REQUIRE(config);
  CHECK(config->peers[0].quota_bytes == 0u);
  CHECK(config->peers[0].entries_max == 0u);
  starts(complaint(peer("rate = \"0Gb/s\"")), "3: peer.a.rate: ");  // nothing would ever end
}

TEST_CASE("peers__all_of_the_root__has_two_spellings_and_one_form") {
  for (const char* all : {"\".\"", "\"/\"", "[\"./\"]"}) {
    INFO(all);
    const auto config = read(peer(std::string("write = ") + all));
    REQUIRE(config);
    CHECK(config->peers[0].write == std::vector<std::string>{""});
  }
}

// A value that a script left empty would else grant all.
TEST_CASE("peers__an_empty_path__grants_nothing_and_is_an_error") {
  for (const char* key : {"write", "read"}) {
    for (const char* empty : {"\"\"", "[\"incoming/\", \"\"]"}) {
      const std::string words = complaint(peer(fmt::format("{} = {}", key, empty)));
      starts(words, fmt::format("3: peer.a.{}: is empty: ", key));
      CHECK(words.find("\".\" is all of the root") != std::string::npos);
    }
  }
  const auto nothing = read(peer("write = []"));
  REQUIRE(nothing);
  CHECK(nothing->peers[0].write.empty());
}

TEST_CASE("peers__paths_that_lead_out_of_the_root__are_errors") {
  for (const char* bad : {"\"..\"", "\"a/../../b\"", "\"/incoming\"", "\"a/..\"", "\"a\\u0000b\"", "3"}) {
    INFO(bad);
    starts(complaint(peer(std::string("read = [") + bad + "]")), "3: peer.a.read: ");
  }
}

TEST_CASE("peers__mistakes__name_file_line_and_key") {
  starts(complaint("[peer.a]\nwrite = \"x\"\n"), "1: peer.a: ");
  starts(complaint(peer("name = \"h\"")), "3: peer.a.name: ");
  starts(complaint("[peer.a]\nid = \"cx1-abcd\"\n"), "2: peer.a.id: ");
  starts(complaint("[peer.a]\nname = \"two words\"\n"), "2: peer.a.name: ");
  starts(complaint(peer("qouta = \"1\"")), "3: peer.a.qouta: unknown key: ");
  starts(complaint(peer("as = 4")), "3: peer.a.as: ");
  starts(complaint(peer("router = false\nas = 4")), "4: peer.a.as: ");
  starts(complaint(peer("entries = -1")), "3: peer.a.entries: ");
  starts(complaint(peer("rate = \"5\"")), "3: peer.a.rate: ");
  starts(complaint(peer("devices = 1")), "3: peer.a.devices: ");
  starts(complaint(peer("address = \"host:1\"")), "3: peer.a.address: ");
  starts(complaint(peer("address = \"tcp://h:1/path\"")), "3: peer.a.address: ");
  starts(complaint("peer = 3\n"), "1: peer: ");
  starts(complaint("[peer]\na = 3\n"), "2: peer.a: ");
}

TEST_CASE("peers__two_tables_for_one_peer__are_an_error_in_the_second") {
  starts(complaint(peer("") + peer("", "b")), "5: peer.b.id: peer a has it too");
  starts(complaint("[peer.a]\nname = \"H\"\n[peer.b]\nname = \"h\"\n"), "4: peer.b.name: ");
  starts(complaint(peer("address = \"tcp://h:1\"") + peer("address = [\"tcp://H:1\"]", "b", id_b)), "6: peer.b.address: ");
  CHECK(read(peer("address = \"tcp://h:1\"") + peer("address = \"tcp://h:2\"", "b", id_b)));
  CHECK(read(peer("address = [\"tcp://h:1\", \"tcp://h:1\"]")));
}

TEST_CASE("identity__files__count_from_the_directory_of_the_configuration") {
  const std::string text =
      "[identity]\ncertificate = \"host.pem\"\nkey = \"/keys/host.key\"\nca = \"ca/all.pem\"\ncrl = \"crl.pem\"\n";
  const auto config = read(text);
  REQUIRE(config);
  REQUIRE(config->identity);
  CHECK(config->identity->certificate == "/etc/x/host.pem");
  CHECK(config->identity->key == "/keys/host.key");
  CHECK(config->identity->ca == "/etc/x/ca/all.pem");
  CHECK(config->identity->crl == "/etc/x/crl.pem");
  CHECK(parse_config("f.toml", text)->identity->certificate == "host.pem");
}

TEST_CASE("identity__mistakes__name_file_line_and_key") {
  starts(complaint("[identity]\ncertificate = \"c\"\n"), "2: identity.certificate: ");
  starts(complaint("[identity]\nkey = \"k\"\ncrl = \"c\"\n"), "3: identity.crl: ");
  starts(complaint("[identity]\npassword = \"k\"\n"), "2: identity.password: unknown key: ");
  starts(complaint("[identity]\nkey = \"\"\n"), "2: identity.key: ");
  starts(complaint("[identity]\nkey = 3\n"), "2: identity.key: ");
  CHECK(read("[identity]\nca = \"c\"\n"));  // with the account's key
  CHECK(read("[identity]\nkey = \"k\"\n"));
}

}  // namespace ccixfer::program
