// The process's identity: the commands that make and show it, and what a command that needs one gets.
#include "app/main/security.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "app/main/session_trust.h"
#include "tests/unit/main/running.h"
#include "tests/unit/trust/facility.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// The account of a test: its home is a directory that goes with it.
class Account {
 public:
  Account() {
    for (const auto& [name, value] :
         {std::pair("XDG_CONFIG_HOME", home.path("config")), std::pair("XDG_STATE_HOME", home.path("state"))}) {
      const char* before = std::getenv(name);
      before_.emplace_back(name, before == nullptr ? "" : before);
      setenv(name, value.c_str(), 1);
    }
  }
  ~Account() {
    for (const auto& [name, value] : before_) value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;
  [[nodiscard]] std::string key() const { return home.path("config/ccixfer/identity.key"); }
  TemporaryDirectory home;

 private:
  std::vector<std::pair<const char*, std::string>> before_;
};

Running::Body making(const KeygenCommand& command) {
  return [command](const Process& process) { return run_keygen(process, command); };
}
Running::Body showing() {
  return [](const Process& process) { return run_id(process, {}); };
}

// What `says_yes` makes of the answers, and what it asked.
std::pair<bool, std::string> answered(const std::string& answers) {
  int from[2], to[2];
  REQUIRE((pipe2(from, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0));
  REQUIRE(write(from[1], answers.data(), answers.size()) == static_cast<ssize_t>(answers.size()));
  close(from[1]);
  const bool yes = says_yes(from[0], to[1], "Well? ");
  close(to[1]);
  std::string asked(1000, '\0');
  asked.resize(static_cast<size_t>(read(to[0], asked.data(), asked.size())));
  close(from[0]);
  close(to[0]);
  return {yes, asked};
}

}  // namespace

TEST_CASE("keygen__a_new_account__gets_a_key_and_id_shows_the_same") {
  const Account account;
  Running keygen(making({}));
  const std::string made = keygen.said.await("identity");
  REQUIRE(keygen.wait().error.kind == ErrorKind::ok);
  CHECK(member(made, "id").rfind("cx1-", 0) == 0);
  CHECK(member(made, "file") == account.key());
  struct stat stat {};
  REQUIRE(::stat(account.key().c_str(), &stat) == 0);
  CHECK((stat.st_mode & 0777) == 0600);
  Running id(showing());
  CHECK(member(id.said.await("identity"), "id") == member(made, "id"));
  CHECK(id.wait().error.kind == ErrorKind::ok);
}

TEST_CASE("keygen__a_key_is_there__stays_without_force_and_goes_with_it") {
  const Account account;
  CHECK(Running(making({})).wait().error.kind == ErrorKind::ok);
  const std::string first = account.home.read("config/ccixfer/identity.key");
  CHECK(Running(making({})).wait().error.kind == ErrorKind::usage);
  CHECK(account.home.read("config/ccixfer/identity.key") == first);
  KeygenCommand force;
  force.force = true;
  CHECK(Running(making(force)).wait().error.kind == ErrorKind::ok);
  CHECK(account.home.read("config/ccixfer/identity.key") != first);
}

TEST_CASE("keygen__out__goes_where_it_is_told_and_makes_no_directories") {
  const Account account;
  KeygenCommand command;
  command.out = account.home.path("host.key");
  CHECK(Running(making(command)).wait().error.kind == ErrorKind::ok);
  CHECK(account.home.has("host.key"));
  CHECK_FALSE(account.home.has("config"));
  command.out = account.home.path("no/such/host.key");
  CHECK(Running(making(command)).wait().error.kind == ErrorKind::file_io);
  CHECK_FALSE(account.home.has("no"));
}

TEST_CASE("id__no_identity__41_and_what_to_run") {
  const Account account;
  Running id(showing());
  CHECK(id.wait().error.kind == ErrorKind::authentication);
  CHECK(id.wait().error.message.find("ccixfer keygen") != std::string::npos);
}

TEST_CASE("security__insecure__is_none_and_said_loudly") {
  const Account account;
  bool none = false;
  Running command([&](const Process& process) -> CommandEnd {
    CommonOptions common;
    common.insecure = true;
    const auto security = security_of_process(process, common, policy::WithoutIdentity::refuse);
    none = security && !*security;
    return {};
  });
  command.wait();
  CHECK(none);
  CHECK(command.said.text.all().find("WARNING: --insecure") != std::string::npos);
}

TEST_CASE("security__an_identity_and_peers__come_from_the_account_and_the_configuration") {
  const Account account;
  Config config;
  config.peers.emplace_back().name = "lab";
  const auto places = policy::places_of_process();
  CHECK(make_security(config, places, policy::WithoutIdentity::refuse).error().kind == ErrorKind::authentication);
  const auto security = make_security(config, places, policy::WithoutIdentity::make_and_keep);
  REQUIRE(security);
  CHECK(security->identity.made);
  CHECK(security->peers().all().size() == 1);
  account.home.write("config/ccixfer/known_peers", "nonsense\n");
  CHECK(make_security(config, places, policy::WithoutIdentity::refuse).error().kind == ErrorKind::usage);
}

// In force is one that holds, and the account that renews it may have taken the wrong file.
TEST_CASE("security__read_again_with_a_certificate_that_has_expired__the_one_in_force_stays") {
  const Account account;
  const trust::Facility facility("Facility");
  const int64_t now_s = wall_time_s();
  const auto keep = [&](int64_t from_s, int64_t to_s) {
    const trust::Issued host = facility.issue({.not_before_s = from_s, .not_after_s = to_s});
    account.home.write("host.pem", host.certificate_pem());
    account.home.write("host.key", host.key_pem());
    REQUIRE(chmod(account.home.path("host.key").c_str(), 0600) == 0);
  };
  Config config;
  config.identity = IdentityConfig{account.home.path("host.pem"), account.home.path("host.key"), "", ""};
  keep(now_s - 2 * trust::day_s, now_s + trust::day_s);
  const auto places = policy::places_of_process();
  const auto security = make_security(config, places, policy::WithoutIdentity::refuse);
  REQUIRE(security);
  CHECK(read_again(*security, config));
  const bool is_old = GENERATE(true, false);
  keep(now_s + (is_old ? -2 : 1) * trust::day_s, now_s + (is_old ? -1 : 2) * trust::day_s);
  const auto news = read_again(*security, config);
  REQUIRE_FALSE(news);
  CHECK(news.error().kind == ErrorKind::usage);
  INFO(news.error().message);
  CHECK(news.error().message.starts_with(account.home.path("host.pem") + ": our certificate "));
  CHECK(news.error().message.find(is_old ? "has expired (" : "is not valid before ") != std::string::npos);
  // At the start there is nothing else in force: it is taken, and said.
  Running command(
      [&](const Process& process) -> CommandEnd {
        const auto again = security_of_process(process, {}, policy::WithoutIdentity::refuse);
        REQUIRE(again);
        warn_of_dates(process, *again);
        return {};
      },
      config);
  command.wait();
  CHECK(command.said.text.all().find("host.pem: our certificate ") != std::string::npos);
}

// Signals are blocked for the loop, which does not run while somebody is asked.
TEST_CASE("asking__a_signal_that_ends_the_program__ends_the_question") {
  int from[2], to[2];
  REQUIRE((pipe2(from, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGTERM, SIG_DFL);
    const TurnLoop loop;
    raise(SIGTERM);
    alarm(30);  // a question without an end ends by another signal
    _exit(says_yes(from[0], to[1], "Well? ") ? 1 : 0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const int fd : {from[0], from[1], to[0], to[1]}) close(fd);
}

TEST_CASE("asking__only_yes_is_yes") {
  CHECK(answered("yes\n").first);
  CHECK(answered("YES \r\n").first);
  CHECK_FALSE(answered("no\nyes\n").first);
  CHECK_FALSE(answered("").first);
  CHECK_FALSE(answered("yes").first);  // the terminal went before the line was complete
  CHECK_FALSE(answered("y\n").first);
  const auto [yes, asked] = answered("y\nperhaps\n\nyes\n");
  CHECK(yes);
  CHECK(asked == "Well? Please write yes or no: Please write yes or no: Please write yes or no: ");
  CHECK_FALSE(answered(std::string(5000, 'y') + "\nyes\n").first);
}
