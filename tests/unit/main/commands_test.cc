// The other commands in this process: a router and who asks it, measurements and their server, and what the loop leaves alone.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "app/main/uri_file.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

const std::string two_subnets =
    "[device.a]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 1\nrouter = []\nrate = \"10Gb/s\"\n"
    "[device.b]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 2\nrouter = []\nrate = \"1Gb/s\"\n";
// Of which no endpoint can be made.
const std::string without_interface = "[device.e]\ninterface = \"none\"\nas = 1\nsubnet = 4\nrouter = []\ntransport = \"eth\"\n";
const std::string no_interface = "no interface of this host has the name none: see ccixfer devices";

Running::Body routing_by(const RouteCommand& command) {
  return [command](const Process& process) { return run_route(process, command); };
}
Running::Body pinging(const PingCommand& command) {
  return [command](const Process& process) { return run_ping(process, command); };
}
Running::Body asking_routes(const RoutesCommand& command) {
  return [command](const Process& process) { return run_routes(process, command); };
}
Running::Body measuring(const BenchCommand& command) {
  return [command](const Process& process) { return run_bench(process, command); };
}
RouteCommand router(const std::string& uri_file = "") {
  RouteCommand command;
  command.common = insecure();
  command.uri_file = uri_file;
  return command;
}
PingCommand ping_of(const std::string& uri) {
  PingCommand command;
  command.common = insecure();
  command.uri = uri;
  command.count = 3;
  return command;
}
RoutesCommand routes_of(const std::vector<std::string>& places) {
  RoutesCommand command;
  command.common = insecure();
  command.places = places;
  return command;
}
BenchCommand bench_server(bool once) {
  BenchCommand command;
  command.common = insecure();
  command.listen = listening(once);
  command.serve = true;
  return command;
}

// A place whose kernel takes connections and from which no answer ever comes.
class Silent {
 public:
  Silent() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    auto* address = reinterpret_cast<sockaddr*>(&any);
    REQUIRE(bind(fd_, address, length) == 0);
    REQUIRE(listen(fd_, 8) == 0);
    REQUIRE(getsockname(fd_, address, &length) == 0);
    uri = "tcp://127.0.0.1:" + std::to_string(ntohs(any.sin_port));
  }
  ~Silent() { close(fd_); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  // Somebody has dialled.
  void await() const {
    pollfd one{fd_, POLLIN, 0};
    while (poll(&one, 1, 60'000) < 0 && errno == EINTR) {
    }
    REQUIRE(one.revents == POLLIN);
  }
  std::string uri;

 private:
  int fd_;
};

}  // namespace

TEST_CASE("commands__router__answers_who_asks_is_loaded_anew_and_drains") {
  TemporaryDirectory here;
  here.write("router.toml", two_subnets);
  Running routing(routing_by(router(here.path("uris"))), load_config(here.path("router.toml")).value());
  const std::string routed = routing.uri(), host = "127.0.0.1:";
  REQUIRE(routed.rfind("cci://1:1:" + host, 0) == 0);
  const std::string uri = "tcp://" + routed.substr(routed.find(host));  // of its first device
  CHECK(here.read("uris").rfind(routed + "\n", 0) == 0);

  Ran asked(asking_routes(routes_of({uri})));
  CHECK(of(asked.end) == "ok: ");
  const std::string said = asked.running.said.await("router");
  CHECK(said.find("subnet 1:1, tcp://127.0.0.1:") != std::string::npos);
  CHECK(said.find("subnet 1:2, tcp://127.0.0.1:") != std::string::npos);
  CHECK(member(asked.running.said.await("route"), "from") == "1:1");

  here.write("router.toml",
             two_subnets + "[device.c]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 3\nrouter = []\n[device.d]\ncolour = 1\n");
  routing.signal(SIGHUP);
  const std::string reloaded = routing.said.await("reloaded");
  CHECK(member(reloaded, "devices") == "3");
  CHECK(member(reloaded, "reason").empty());
  CHECK(routing.said.text.lines("device.d.colour: unknown key, not used").size() == 1);
  CHECK(routing.said.text.lines("device d: it has no as, subnet and router: not routed").size() == 1);
  CHECK(Ran(asking_routes(routes_of({uri}))).running.said.await("router").find("subnet 1:3, ") != std::string::npos);
  here.write("router.toml", "colour = 1\n");
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "reason").find("unknown table or key") != std::string::npos);
  CHECK(routing.said.text.lines("not reloaded: ").size() == 1);
  here.write("router.toml", two_subnets + without_interface);
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "reason").rfind(no_interface, 0) == 0);

  routing.signal(SIGUSR1);
  CHECK(of(routing.stop()) == "ok: ");
  CHECK(routing.said.text.lines(" routed_connections").size() == 1);
  CHECK_FALSE(here.has("uris"));
}

TEST_CASE("commands__router__what_it_cannot_do_is_said") {
  TemporaryDirectory here;
  const Config config = parse_config("router.toml", two_subnets).value();
  RouteCommand command = router();
  command.common.insecure = false;
  CHECK(Ran(routing_by(command), config).end.error.kind == ErrorKind::authentication);
  command = router();
  command.common.device = "a";
  CHECK(of(Ran(routing_by(command), config).end) == "usage: a router has all routing devices: --device: leave it out");
  CHECK(of(Ran(routing_by(router(here.path("none/uris"))), config).end) ==
        "usage: cannot write the uri file: " + here.path("none/uris") +
            ": No such file or directory: give --uri-file a writable place");
  CHECK(Ran(routing_by(router())).end.error.kind == ErrorKind::usage);  // no device at all
  const Config absent = parse_config("f.toml", two_subnets + without_interface).value();
  CHECK(of(Ran(routing_by(router()), absent).end) == "usage: " + no_interface);
}

TEST_CASE("commands__routes__of_files_and_what_is_wrong_with_them") {
  TemporaryDirectory here;
  here.write("good.toml", two_subnets);
  here.write("odd.toml", two_subnets + "colour = 1\n");
  here.write("bad.toml", "colour = 1\n");
  Ran good(asking_routes(routes_of({here.path("good.toml")})));
  CHECK(of(good.end) == "ok: ");
  CHECK(member(good.running.said.await("router"), "name") == here.path("good.toml"));
  Ran odd(asking_routes(routes_of({here.path("odd.toml")})));
  CHECK(odd.running.said.text.lines("unknown key, not used").size() == 1);
  CHECK(Ran(asking_routes(routes_of({here.path("good.toml"), here.path("bad.toml")}))).end.error.kind == ErrorKind::usage);
  CHECK(of(Ran(asking_routes(routes_of({}))).end) ==
        "usage: no configuration: routes: name the configuration files of routers, or the URI of a running one");
  CHECK(of(Ran(asking_routes(routes_of({})), load_config(here.path("good.toml")).value()).end) == "ok: ");
  RoutesCommand open = routes_of({"tcp://127.0.0.1:1"});
  CHECK(Ran(asking_routes(open)).end.error.kind == ErrorKind::no_answer);
  open.common.insecure = false;
  CHECK(Ran(asking_routes(open)).end.error.kind == ErrorKind::authentication);
  CHECK(Ran(asking_routes(routes_of({"cci://1:1:h:1"}))).end.error.message.rfind("routed address without routing: ", 0) == 0);
  CHECK(Ran(asking_routes(routes_of({"nonsense://h"}))).end.error.kind == ErrorKind::usage);
}

TEST_CASE("commands__routes__with_a_configuration__asks_its_routers_only_if_it_was_named") {
  TemporaryDirectory here;
  here.write("own.toml", two_subnets);
  here.write("other.toml",
             "[device.c]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 3\nrouter = []\n"
             "[device.d]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 1\nrouter = []\n");
  const Config own = load_config(here.path("own.toml")).value();
  const auto routers = [&](const RoutesCommand& command) {
    Ran ran(asking_routes(command), own);
    CHECK(of(ran.end) == "ok: ");
    Words names{member(ran.running.said.await("router"), "name")};
    if (command.common.config_file) names.push_back(member(ran.running.said.await("router"), "name"));
    CHECK(member(ran.running.said.await("route"), "from") == "1:1");  // no further router before it
    return names;
  };
  RoutesCommand command = routes_of({here.path("other.toml")});
  CHECK(routers(command) == Words{here.path("other.toml")});
  command.common.config_file = here.path("own.toml");
  CHECK(routers(command) == Words{here.path("own.toml"), here.path("other.toml")});
}

TEST_CASE("commands__who_asks_a_silent_place__ends_in_time_or_by_an_ending_signal") {
  const Silent silent;
  PingCommand ping = ping_of(silent.uri);
  ping.timeout = std::chrono::milliseconds(200);
  const CommandEnd late = Ran(pinging(ping)).end;
  CHECK(late.error.kind == ErrorKind::no_answer);
  CHECK(late.error.message.find(silent.uri + ": check that the peer runs and can be reached") != std::string::npos);
  {
    Running asked(asking_routes(routes_of({silent.uri})));
    silent.await();
    asked.signal(SIGUSR1);
    CHECK(asked.wait().error.kind == ErrorKind::no_answer);
  }
  BenchCommand bench;
  bench.common = insecure();
  bench.uri = silent.uri;
  bench.plan = bench::make_plan({}).value();
  const std::string by_signal = "interrupted: interrupted: by a signal: ";
  for (const int number : {SIGINT, SIGTERM}) {
    for (const size_t which : {0u, 1u, 2u}) {
      const Silent another;
      ping.uri = bench.uri = another.uri;
      ping.timeout = std::chrono::minutes(1);
      Running running(which == 0 ? pinging(ping) : which == 1 ? asking_routes(routes_of({another.uri})) : measuring(bench));
      another.await();
      CHECK(of(running.stop(number)) == by_signal + (which == 1 ? "ask again" : another.uri));
    }
  }
}

TEST_CASE("commands__a_device_that_is_not_there__is_said_by_each_command") {
  const auto said = [](const CommandEnd& end) { return of(end).rfind("usage: no such device: none", 0) == 0; };
  PingCommand ping = ping_of("tcp://127.0.0.1:1");
  ping.common.device = "none";
  CHECK(said(Ran(pinging(ping)).end));
  RoutesCommand routes = routes_of({"tcp://127.0.0.1:1"});
  routes.common.device = "none";
  CHECK(said(Ran(asking_routes(routes)).end));
  BenchCommand bench = bench_server(false);
  bench.common.device = "none";
  CHECK(said(Ran(measuring(bench)).end));
}

TEST_CASE("commands__a_device_that_cannot_be_had__is_said_by_each_command") {
  const Config config = parse_config("f.toml", without_interface).value();
  const auto said = [](const CommandEnd& end) { return of(end) == "usage: " + no_interface; };
  const auto of_another = [](const CommandEnd& end) {
    return of(end) == "usage: address of another transport: tcp://127.0.0.1:1: device e is of eth: name one of tcp (--device)";
  };
  PingCommand ping = ping_of("tcp://127.0.0.1:1");
  ping.common.device = "e";
  CHECK(of_another(Ran(pinging(ping), config).end));
  RoutesCommand routes = routes_of({"tcp://127.0.0.1:1"});
  routes.common.device = "e";
  CHECK(of_another(Ran(asking_routes(routes), config).end));
  BenchCommand bench = bench_server(false);
  bench.common.device = "e";
  bench.listen.listen.reset();
  CHECK(said(Ran(measuring(bench), config).end));
}

TEST_CASE("commands__ping__nobody_there_and_bad_places") {
  CHECK(of(Ran(pinging(ping_of("nonsense"))).end).rfind("usage: not an address: nonsense: ", 0) == 0);
  CHECK(Ran(pinging(ping_of("cci://1:1:h:1"))).end.error.message.rfind("routed address without routing: ", 0) == 0);
  PingCommand open = ping_of("tcp://127.0.0.1:1");
  const CommandEnd nobody = Ran(pinging(open)).end;
  CHECK(nobody.error.kind == ErrorKind::no_answer);
  CHECK(nobody.error.message.find("tcp://127.0.0.1:1: check that the peer runs and can be reached") != std::string::npos);
  open.common.insecure = false;
  CHECK(Ran(pinging(open)).end.error.kind == ErrorKind::authentication);
}

TEST_CASE("commands__ping__as_many_messages_as_asked_for_and_each_hop") {
  TemporaryDirectory to;
  Running receiving_side(receiving(receiver(to.path())));
  const std::string uri = receiving_side.uri();
  Ran told(pinging(ping_of(uri)));
  CHECK(of(told.end) == "ok: ");
  const std::string event = told.running.said.await("ping");
  CHECK(member(event, "uri") == uri);
  CHECK(event.find("\"transport\":\"tcp\"") != std::string::npos);
  Words shown;
  {
    Output output;
    CHECK(of(Ran(pinging(ping_of(uri)), {}, false).end) == "ok: ");
    shown = output.take();
  }
  REQUIRE(shown.size() == 3);
  CHECK(shown[0].rfind(uri + ": at most ", 0) == 0);
  CHECK(shown[1].rfind("hop 1: tcp " + uri, 0) == 0);
  CHECK(shown[1].find("round trip <0.001 ms") == std::string::npos);  // a message through the kernel takes longer
  CHECK(shown[1].find("the slowest subnet") == std::string::npos);    // there is only one
  CHECK(shown[1].find(" ms to the end, not protected") != std::string::npos);
  CHECK(shown[2].rfind("3 messages of 64 bytes: round trip min ", 0) == 0);
  // Its port is taken.
  ReceiveCommand second = receiver(to.path());
  second.listen.listen = uri.substr(uri.find("127"));
  const CommandEnd taken = Ran(receiving(second)).end;
  CHECK(taken.error.kind != ErrorKind::ok);
  CHECK(taken.error.message.find(": listen on a free port of an address of this host") != std::string::npos);
}

TEST_CASE("commands__bench__a_server_for_once_and_each_hop_is_told") {
  Running serving(measuring(bench_server(true)));
  BenchCommand ask;
  ask.common = insecure();
  ask.uri = serving.uri();
  bench::PlanText text;
  text.tests = "rma-write";
  text.sizes = "4KiB,64KiB";
  text.count = "4";
  ask.plan = bench::make_plan(text).value();
  std::vector<std::string> shown;
  {
    Output output;
    CHECK(of(Ran(measuring(ask), {}, false).end) == "ok: ");
    shown = output.take();
  }
  const auto lines_with = [&](const std::string& part) {
    return std::count_if(shown.begin(), shown.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  CHECK(lines_with("hop ") == 1);
  CHECK(lines_with("hop 1: tcp ") == 1);
  CHECK(lines_with("rma-write") == 2);
  CHECK(lines_with(": this side waits by poll, the peer by poll") == 1);
  CHECK(of(serving.wait()) == "ok: ");
  CHECK(serving.said.text.lines("a peer was disconnected").empty());

  ask.uri += "/path";
  CHECK(of(Ran(measuring(ask)).end) == "usage: bad address: " + ask.uri + ": a measurement has no path: give it without");
  Running idle(measuring(bench_server(false))), waiting(measuring(bench_server(true)));
  static_cast<void>(idle.uri());
  static_cast<void>(waiting.uri());
  idle.signal(SIGUSR1);
  CHECK(of(idle.stop()) == "ok: ");
  CHECK(idle.said.text.lines(" routed_connections").size() == 1);
  CHECK(of(waiting.stop()) == "interrupted: interrupted: by a signal: a measurement was under way, or none had come");
}

TEST_CASE("commands__loop__a_reader_that_goes_is_an_error_and_no_end") {
  // Whoever started the tests may have ignored them already, and that is inherited.
  for (const int number : {SIGPIPE, SIGXFSZ}) REQUIRE(std::signal(number, SIG_DFL) != SIG_ERR);
  const TurnLoop loop;
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    struct sigaction now {};
    REQUIRE(sigaction(number, nullptr, &now) == 0);
    CHECK(now.sa_handler == SIG_IGN);
  }
}

// A descriptor that is left open at each address that is written would add up in a router that is loaded anew for years.
TEST_CASE("commands__uri_file__leaves_no_descriptor_and_no_staged_file") {
  TemporaryDirectory here;
  TurnLoop loop;
  const auto open_now = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  {
    UriFile file(loop);
    REQUIRE(file.write(here.path("uris"), {"a", "b"}));
    const auto before = open_now();
    REQUIRE(file.write(here.path("uris"), {"c"}));
    CHECK(open_now() == before);
    CHECK(here.read("uris") == "c\n");
    CHECK(std::distance(std::filesystem::directory_iterator(here.path()), std::filesystem::directory_iterator()) == 1);
  }
  CHECK_FALSE(here.has("uris"));
  {
    UriFile old(loop);
    REQUIRE(old.write(here.path("uris"), {"old"}));
    here.write("another", "next\n");
    std::filesystem::rename(here.path("another"), here.path("uris"));
  }
  CHECK(here.read("uris") == "next\n");  // another process was started before this one had ended
  std::filesystem::remove(here.path("uris"));
  std::filesystem::create_directory(here.path("taken"));
  UriFile file(loop);
  CHECK_FALSE(file.write(here.path("taken"), {"a"}));
  CHECK(std::distance(std::filesystem::directory_iterator(here.path()), std::filesystem::directory_iterator()) == 1);
}
