// What each command may still do once it hears of peers: the plan that it enters, and when it enters it.
#include "app/main/confinement.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/main/metrics_guard.h"
#include "tests/unit/main/running.h"

namespace ccixfer::program {

using namespace test;
using sandbox::Access;
using sandbox::FileRights;
using sandbox::Plan;

namespace {

bool has(const Plan& plan, const std::string& path, Access access) {
  return std::any_of(plan.places.begin(), plan.places.end(),
                     [&](const sandbox::Place& place) { return place.path == path && place.access == access; });
}

// A command with somebody who notes what it enters, and answers with this.
struct Entered {
  std::vector<Plan> plans;
  Result<sandbox::Report> answer = sandbox::Report{};
  Running::Body of(Running::Body body) {
    return [this, body = std::move(body)](const Process& process) {
      return body(Process{process.loop, process.reporter, process.counters, process.config, [this](const Plan& plan) {
                            plans.push_back(plan);
                            return answer;
                          }});
    };
  }
};

Config configured(const std::string& file) {
  Config config;
  config.file = file;
  return config;
}

}  // namespace

TEST_CASE("confinement__directory_of__is_where_the_name_stands") {
  CHECK(directory_of("/a/b") == "/a");
  CHECK(directory_of("/a/b/") == "/a");
  CHECK(directory_of("/a") == "/");
  CHECK(directory_of("b") == ".");
  CHECK(directory_of("b/") == ".");
  CHECK(directory_of("../b") == "..");
}

// As certbot, kubernetes and those who deploy by a link do it: what the name leads to is another file at the next SIGHUP.
TEST_CASE("confinement__a_file_that_is_a_link__may_lead_to_another_file_later") {
  const TemporaryDirectory here;
  const auto lead = [&](const std::string& name, const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(here.path(name)).parent_path());
    std::filesystem::create_symlink(to, here.path(name));
  };
  using Places = std::vector<std::string>;
  here.write("archive/host/cert1.pem", "");
  lead("live/host/cert.pem", "../../archive/host/cert1.pem");
  CHECK(directories_to(here.path("live/host/cert.pem")) ==
        Places{here.path("live/host"), here.path("live/host") + "/../../archive/host"});
  lead("etc/absolute.toml", here.path("archive/host/cert1.pem"));
  CHECK(directories_to(here.path("etc/absolute.toml")) == Places{here.path("etc"), here.path("archive/host")});
  here.write("app/releases/7/ccixfer.toml", "");
  lead("app/current", "releases/7");
  CHECK(directories_to(here.path("app/current/ccixfer.toml")) == Places{here.path("app/current"), here.path("app")});
  lead("app/elsewhere", "../archive/host");  // all that stands beside the other place is not meant
  CHECK(directories_to(here.path("app/elsewhere/cert1.pem")) == Places{here.path("app/elsewhere")});
  CHECK(directories_to(here.path("none/at/all")) == Places{here.path("none/at")});
  lead("round", "round");
  CHECK(directories_to(here.path("round")).size() == 40);
  // All that SIGHUP reads again.
  Config config = configured(here.path("etc/absolute.toml"));
  CHECK(has(plan_of_receiver(config, "/srv/in"), here.path("archive/host"), Access::read));
  config.identity = IdentityConfig{here.path("live/host/cert.pem"), "", here.path("etc/absolute.toml"), ""};
  auto security = make_security({}, {here.path("config"), here.path("state"), ""}, policy::WithoutIdentity::make_and_keep);
  REQUIRE(security);
  Plan plan;
  add_identity(plan, config, std::optional<Security>(std::move(*security)));
  CHECK(has(plan, here.path("live/host") + "/../../archive/host", Access::read));
  CHECK(has(plan, here.path("archive/host"), Access::read));
}

TEST_CASE("confinement__push__reads_its_sources_or_whatever_links_lead_to") {
  SendCommand command = send_of({"/data/run", "-"}, "tcp://h:1/x");
  const Plan like_cp = plan_of_push(command, command.sources);
  CHECK(like_cp.reads_everything);
  command.transfer.archive = true;
  const Plan archive = plan_of_push(command, command.sources);
  CHECK_FALSE(archive.reads_everything);
  CHECK(has(archive, "/data/run", Access::read));
  CHECK_FALSE(has(archive, "-", Access::read));
  CHECK(archive.dials);
  CHECK_FALSE(archive.listens);
  CHECK_FALSE(archive.executes);
  CHECK(archive.file_rights == FileRights::read_all);
  CHECK(has(archive, temporary_directory(), Access::files));
  CHECK_FALSE(has(archive, temporary_directory(), Access::write));
}

TEST_CASE("confinement__server_and_receiver__have_their_directory_and_their_configuration") {
  const Config config = configured("/etc/ccixfer/alice/receiver.toml");
  const Plan server = plan_of_server(config, "/srv/data");
  CHECK(has(server, "/srv/data", Access::read));
  CHECK_FALSE(has(server, "/srv/data", Access::write));
  CHECK(server.file_rights == FileRights::read_all);
  const Plan receiver = plan_of_receiver(config, "/srv/in");
  CHECK(has(receiver, "/srv/in", Access::write));
  CHECK(receiver.file_rights == FileRights::write_all_with_owners);
  for (const Plan& plan : {server, receiver}) {
    CHECK(has(plan, "/etc/ccixfer/alice", Access::read));
    CHECK_FALSE(plan.reads_everything);
    CHECK_FALSE(plan.dials);
    CHECK_FALSE(plan.listens);
  }
  CHECK(has(plan_of_receiver({}, "/srv/in"), "/etc/ccixfer", Access::read));  // where SIGHUP would find one
}

TEST_CASE("confinement__pull__writes_its_directory_and_gives_owners_with_archive_only") {
  ReceiveCommand command = pull_of({"tcp://h:1/x"}, "/data/run");
  CHECK(plan_of_pull(command, false).file_rights == FileRights::write_all);
  CHECK(has(plan_of_pull(command, false), "/data/run", Access::write));
  CHECK_FALSE(has(plan_of_pull(command, false), "/data", Access::remove));
  CHECK(has(plan_of_pull(command, true), "/data", Access::remove));
  command.transfer.archive = true;
  CHECK(plan_of_pull(command, false).file_rights == FileRights::write_all_with_owners);
  command.transfer.dry_run = true;
  CHECK(has(plan_of_pull(command, false), "/data/run", Access::read));
  CHECK_FALSE(has(plan_of_pull(command, false), "/data/run", Access::write));
}

TEST_CASE("confinement__metrics_at_a_socket__may_be_removed_at_the_end") {
  MetricsConfig metrics;
  metrics.listen = "127.0.0.1:9464";
  Plan plan;
  add_guard(plan, metrics);
  CHECK(plan.places.empty());
  metrics.listen = "unix:/run/ccixfer/metrics.sock";
  add_guard(plan, metrics);
  REQUIRE(plan.places.size() == 1);
  CHECK(has(plan, "/run/ccixfer", Access::remove));
}

TEST_CASE("confinement__router_and_questions__touch_no_files_and_keep_no_capability") {
  RouteCommand command;
  command.uri_file = "/run/ccixfer/uris";
  const Plan router = plan_of_router(configured("/etc/ccixfer/border.toml"), command);
  CHECK(has(router, "/etc/ccixfer", Access::read));
  CHECK(has(router, "/run/ccixfer", Access::files));
  CHECK(router.places.size() == 2);
  CHECK(router.listens);
  for (const Plan& plan : {router, plan_of_question()}) {
    CHECK(plan.dials);
    CHECK_FALSE(plan.executes);
    CHECK(plan.file_rights == FileRights::own);
  }
  CHECK(plan_of_question().places.empty());
}

TEST_CASE("confinement__trust__may_remember_a_peer_and_not_replace_the_key") {
  const TemporaryDirectory account;
  Plan insecure_plan;
  add_trust(insecure_plan, std::nullopt);
  CHECK(has(insecure_plan, "/dev/tty", Access::change));
  CHECK(insecure_plan.places.size() == 1);
  const policy::Places places{account.path("config"), account.path("state"), ""};
  auto security = make_security({}, places, policy::WithoutIdentity::make_and_keep);
  REQUIRE(security);
  Plan plan;
  const std::optional<Security> trust(std::move(*security));
  add_trust(plan, trust);
  CHECK(has(plan, account.path("config"), Access::read));
  CHECK(has(plan, account.path("config/known_peers"), Access::change));
  CHECK(plan.places.size() == 3);
  // SIGHUP reads what is there then: a list that is fetched anew takes the place of the old file.
  Config config;
  config.identity = IdentityConfig{"/etc/pki/host.pem", "", "/etc/ca/ca.pem", "/var/lib/crl/list.pem"};
  Plan of_listener;
  add_identity(of_listener, config, trust);
  for (const std::string& directory :
       {account.path("config"), std::string("/etc/pki"), std::string("/etc/ca"), std::string("/var/lib/crl")})
    CHECK(has(of_listener, directory, Access::read));
  CHECK(of_listener.places.size() == 4);
  // Nobody at a terminal can be asked, so nothing is made.
  if (person_at_terminal() == policy::Person::absent) CHECK_FALSE(account.has("config/known_peers"));
}

TEST_CASE("confinement__commands__enter_once_before_they_are_ready_and_after_what_they_open") {
  TemporaryDirectory served, root, pulled;
  const std::string file = served.path() + "/f",
                    uris = root.path() + "/../" + std::filesystem::path(root.path()).filename().string() + ".uri";
  std::ofstream(file) << "content";
  Entered of_server, of_receiver, of_push, of_pull;
  ReceiveCommand receiving = receiver(root.path());
  receiving.listen.uri_file = uris;
  Running receiver(of_receiver.of(test::receiving(receiving)));
  Running server(of_server.of(sending(test::server(served.path()))));
  const std::string to = receiver.uri(), from = server.uri();
  CHECK(of_receiver.plans.size() == 1);
  CHECK(has(of_receiver.plans.at(0), directory_of(uris), Access::files));
  CHECK_FALSE(of_receiver.plans.at(0).dials);
  CHECK(of_server.plans.size() == 1);
  CHECK(Ran(of_push.of(sending(send_of({file}, to + "/f")))).end.error.kind == ErrorKind::ok);
  CHECK(Ran(of_pull.of(test::receiving(pull_of({from + "/f", from + "/f"}, pulled.path() + "/new")))).end.error.kind ==
        ErrorKind::ok);
  CHECK(of_push.plans.size() == 1);
  REQUIRE(of_pull.plans.size() == 1);
  CHECK(has(of_pull.plans[0], pulled.path(), Access::remove));
  receiver.stop();
  CHECK_FALSE(std::filesystem::exists(uris));
}

TEST_CASE("confinement__a_step_fails__the_command_ends_before_it_is_ready") {
  TemporaryDirectory root, served, uris;
  std::ofstream(served.path() + "/f") << "content";
  // Whoever waits for the addresses dials when they are there.
  uris.write("uris", "the last run's\n");
  const Error error{ErrorKind::file_io, "cannot confine this process: no descriptors"};
  ReceiveCommand receiving_with_file = receiver(root.path());
  receiving_with_file.listen.uri_file = uris.path("uris");
  BenchCommand bench;
  bench.common = insecure();
  bench.listen = listening();
  bench.listen.uri_file = uris.path("uris");
  bench.serve = true;
  PingCommand ping;
  ping.common = insecure();
  ping.uri = "tcp://127.0.0.1:1";
  RoutesCommand routes;
  routes.common = insecure();
  routes.places = {"tcp://127.0.0.1:1"};
  const std::vector<Running::Body> commands = {
      receiving(receiving_with_file),
      sending(server(served.path())),
      sending(send_of({served.path() + "/f"}, "tcp://127.0.0.1:1/f")),
      receiving(pull_of({"tcp://127.0.0.1:1/f"}, root.path())),
      [&](const Process& process) { return run_bench(process, bench); },
      [&](const Process& process) { return run_ping(process, ping); },
      [&](const Process& process) { return run_routes(process, routes); },
  };
  for (size_t i = 0; i < commands.size(); ++i) {
    INFO("command " << i);
    Entered entered;
    entered.answer = tl::unexpected<Error>(error);
    Running running(entered.of(commands[i]));
    CHECK(running.said.has_ended());
    CHECK(running.stop().error.message == error.message);
    CHECK(entered.plans.size() == 1);
    CHECK(uris.read("uris") == "the last run's\n");
  }
}

TEST_CASE("confinement__root_is_replaced__the_confined_receiver_ends_with_11_and_says_why") {
  TemporaryDirectory place, source;
  const std::string root = place.path() + "/root";
  std::filesystem::create_directory(root);
  std::ofstream(source.path() + "/f") << "content";
  Entered entered;
  entered.answer->confines_files = true;
  Running receiver(entered.of(receiving(test::receiver(root))));
  const std::string to = receiver.uri();
  SendCommand command = send_of({source.path() + "/f"}, to + "/f");
  CHECK(Ran(sending(command)).end.error.kind == ErrorKind::ok);
  std::filesystem::rename(root, place.path() + "/archive");
  std::filesystem::create_directory(root);
  // The dialler goes on trying, as the receiver may be there again at any time: here nobody starts it.
  command.transfer.retries = 1;
  command.transfer.timeout = std::chrono::seconds(20);
  CHECK(Ran(interrupted(sending(command))).end.error.kind != ErrorKind::ok);
  CHECK(receiver.said.has_ended());
  const CommandEnd& end = receiver.stop();
  CHECK(end.error.kind == ErrorKind::file_io);
  CHECK(end.error.message.find("was moved or replaced") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(root + "/f"));
}

}  // namespace ccixfer::program
