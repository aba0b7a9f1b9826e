// Which key and certificate a process takes as its own, and which it refuses.
#include "app/trust/local_identity.h"

#include "app/trust/private_file.h"
#include "tests/unit/policy/rig.h"
#include "tests/unit/trust/facility.h"

namespace ccixfer::policy {
using namespace test;
namespace {

struct Rig {
  TempDir directory;
  Places places{directory.path() + "/config/ccixfer", directory.path() + "/state", ""};

  std::string path(const std::string& name) const { return directory.path() + "/" + name; }
  Result<LocalIdentity> load(const std::optional<program::IdentityConfig>& config = {},
                             WithoutIdentity without = WithoutIdentity::refuse) const {
    return load_local_identity(config, places, without);
  }
  trust::Identity keep_key(const std::string& file) const {
    REQUIRE(make_directory_of(file));
    return make_key(file, false).value();
  }
};

program::IdentityConfig with_key(const std::string& file) {
  program::IdentityConfig config;
  config.key = file;
  return config;
}

}  // namespace

TEST_CASE("identity__the_accounts_key__is_taken") {
  const Rig rig;
  const auto made = rig.keep_key(rig.places.key());
  const auto loaded = rig.load();
  REQUIRE(loaded);
  CHECK(loaded->identity.id() == made.id());
  CHECK(loaded->file == rig.places.key());
  CHECK_FALSE(loaded->made);
  CHECK_FALSE(loaded->authority);
  CHECK(mode_of(rig.places.key()) == 0600);
  CHECK(mode_of(rig.places.configuration) == 0700);
}

TEST_CASE("identity__the_configured_key__counts_before_the_accounts") {
  const Rig rig;
  rig.keep_key(rig.places.key());
  const auto made = rig.keep_key(rig.path("host.key"));
  const auto loaded = rig.load(with_key(rig.path("host.key")));
  REQUIRE(loaded);
  CHECK(loaded->identity.id() == made.id());
}

TEST_CASE("identity__the_systems_key__is_what_is_left_for_root") {
  Rig rig;
  const auto made = rig.keep_key(rig.path("etc.key"));
  rig.places.system_key = rig.path("etc.key");
  REQUIRE(rig.load());
  CHECK(rig.load()->identity.id() == made.id());
  const auto own = rig.keep_key(rig.places.key());
  CHECK(rig.load()->identity.id() == own.id());
}

TEST_CASE("identity__none_at_all__refused_made_for_now_or_kept") {
  const Rig rig;
  contains(refusal(rig.load(), ErrorKind::authentication), "no identity: run `ccixfer keygen`");
  const auto passing = rig.load({}, WithoutIdentity::make_for_this_process);
  REQUIRE(passing);
  CHECK(passing->file.empty());
  CHECK_FALSE(rig.load());
  const auto kept = rig.load({}, WithoutIdentity::make_and_keep);
  REQUIRE(kept);
  CHECK(kept->made);
  const auto again = rig.load({}, WithoutIdentity::make_and_keep);
  REQUIRE(again);
  CHECK(again->identity.id() == kept->identity.id());
  CHECK_FALSE(again->made);
}

TEST_CASE("identity__a_key_that_others_may_use__is_refused_in_one_line") {
  const Rig rig;
  const std::string file = rig.places.key();
  rig.keep_key(file);
  for (const mode_t bad : {0640u, 0604u, 0610u, 0666u}) {
    REQUIRE(chmod(file.c_str(), bad) == 0);
    CHECK(refusal(rig.load(), ErrorKind::usage) == file + ": others may read it: chmod 600 " + file);
  }
  REQUIRE(chmod(file.c_str(), 0400) == 0);
  CHECK(rig.load());
}

TEST_CASE("identity__what_is_no_key__is_refused_with_the_name_of_the_file") {
  const Rig rig;
  contains(refusal(rig.load(with_key(rig.path("missing"))), ErrorKind::usage), rig.path("missing"));
  write(rig.path("nonsense"), "no PEM\n");
  contains(refusal(rig.load(with_key(rig.path("nonsense"))), ErrorKind::usage), rig.path("nonsense"));
  contains(refusal(rig.load(with_key(rig.directory.path())), ErrorKind::usage), "is no regular file");
  REQUIRE(mkfifo(rig.path("pipe").c_str(), 0600) == 0);
  contains(refusal(rig.load(with_key(rig.path("pipe"))), ErrorKind::usage), "is no regular file");
  write(rig.path("long"), std::string((1u << 20) + 1, 'x'));
  contains(refusal(rig.load(with_key(rig.path("long"))), ErrorKind::usage), "is too long");
}

TEST_CASE("identity__a_certificate_of_a_facility__is_loaded_with_its_authority") {
  const Rig rig;
  const trust::Facility facility("Facility");
  const trust::Issued host = facility.issue(), other = facility.issue();
  write(rig.path("host.pem"), host.certificate_pem(), 0644);
  write(rig.path("host.key"), host.key_pem());
  write(rig.path("ca.pem"), facility.pem(), 0644);
  write(rig.path("crl.pem"), facility.revocation_list({&other}), 0644);
  const program::IdentityConfig config{rig.path("host.pem"), rig.path("host.key"), rig.path("ca.pem"), rig.path("crl.pem")};
  const auto loaded = rig.load(config);
  REQUIRE(loaded);
  CHECK(loaded->identity.has_own_certificate());
  CHECK(loaded->authority);
  CHECK(loaded->file == rig.path("host.key"));

  write(rig.path("host.key"), other.key_pem());
  contains(refusal(rig.load(config), ErrorKind::usage), rig.path("host.pem"));
  write(rig.path("host.key"), host.key_pem(), 0640);
  contains(refusal(rig.load(config), ErrorKind::usage), "chmod 600 " + rig.path("host.key"));
  REQUIRE(chmod(rig.path("host.key").c_str(), 0600) == 0);
  for (const char* no_list : {"no PEM\n", "", "\n"}) {
    write(rig.path("crl.pem"), no_list);
    contains(refusal(rig.load(config), ErrorKind::usage), rig.path("crl.pem"));
  }
}

TEST_CASE("identity__an_authority_alone__goes_with_the_accounts_key") {
  const Rig rig;
  const trust::Facility facility("Facility");
  program::IdentityConfig config;
  config.ca = rig.path("ca.pem");
  write(config.ca, facility.pem(), 0644);
  const auto passing = rig.load(config, WithoutIdentity::make_for_this_process);
  REQUIRE(passing);
  CHECK(passing->authority);
  rig.keep_key(rig.places.key());
  const auto kept = rig.load(config);
  REQUIRE(kept);
  CHECK(kept->authority);
  CHECK_FALSE(kept->identity.has_own_certificate());
}

TEST_CASE("identity__files_of_the_authority__must_be_there_and_nobody_elses_to_write") {
  const Rig rig;
  rig.keep_key(rig.places.key());
  program::IdentityConfig config;
  config.ca = rig.path("ca.pem");
  contains(refusal(rig.load(config), ErrorKind::usage), rig.path("ca.pem"));
  write(rig.path("ca.pem"), "no PEM\n", 0666);
  contains(refusal(rig.load(config), ErrorKind::usage), "others may write it");
  REQUIRE(chmod(rig.path("ca.pem").c_str(), 0644) == 0);
  contains(refusal(rig.load(config), ErrorKind::usage), rig.path("ca.pem"));  // and it is no certificate
}

TEST_CASE("keygen__a_key_that_is_there__stays_without_force") {
  const Rig rig;
  const auto first = rig.keep_key(rig.path("k"));
  contains(refusal(make_key(rig.path("k"), false), ErrorKind::usage), "--force");
  CHECK(rig.load(with_key(rig.path("k")))->identity.id() == first.id());
  const auto second = make_key(rig.path("k"), true);
  REQUIRE(second);
  CHECK(second->id() != first.id());
  CHECK(rig.load(with_key(rig.path("k")))->identity.id() == second->id());
  CHECK(mode_of(rig.path("k")) == 0600);
}

TEST_CASE("keygen__a_place_that_cannot_be_written__is_named") {
  const Rig rig;
  contains(refusal(make_key(rig.path("no/such/k"), false), ErrorKind::file_io), rig.path("no/such/k"));
}

TEST_CASE("places__environment__decides_and_relative_paths_do_not_count") {
  static const char *home, *config, *state, *service;
  const auto environment = [](const char* name) -> const char* {
    const std::string_view wanted = name;
    return wanted == "HOME" ? home : wanted == "XDG_CONFIG_HOME" ? config : wanted == "XDG_STATE_HOME" ? state : service;
  };
  home = "/h", config = state = service = nullptr;
  CHECK(find_places(environment, false).key() == "/h/.config/ccixfer/identity.key");
  CHECK(find_places(environment, false).known_peers() == "/h/.config/ccixfer/known_peers");
  CHECK(find_places(environment, false).tickets() == "/h/.local/state/ccixfer/tickets");
  CHECK(find_places(environment, false).system_key.empty());
  CHECK(find_places(environment, true).system_key == "/etc/ccixfer/identity.key");
  config = "/c", state = "/s";
  CHECK(find_places(environment, false).configuration == "/c/ccixfer");
  CHECK(find_places(environment, false).state == "/s/ccixfer");
  service = "/var/lib/ccixfer:/var/lib/other";
  CHECK(find_places(environment, false).tickets() == "/var/lib/ccixfer/tickets");
  config = "c", state = "", service = "x", home = "relative";
  CHECK(find_places(environment, false).key().empty());
  CHECK(find_places(environment, false).tickets().empty());
}

}  // namespace ccixfer::policy
