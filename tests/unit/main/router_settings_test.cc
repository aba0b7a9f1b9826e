// What a router takes from its configuration and its command line, seen from outside.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

RouteCommand router(const std::string& uri_file = "") {
  RouteCommand command;
  command.common = insecure();
  command.uri_file = uri_file;
  return command;
}
Running::Body routing_by(const RouteCommand& command) {
  return [command](const Process& process) { return run_route(process, command); };
}

std::string device(const std::string& name, int subnet, const std::string& more = "") {
  return "[device." + name + "]\nip = \"127.0.0.1\"\nas = 1\nsubnet = " + std::to_string(subnet) + "\nrouter = []\n" + more;
}

const std::string two = device("a", 1) + device("b", 2);

}  // namespace

TEST_CASE("router_settings__each_of_a_device__is_told_to_who_asks") {
  const std::string devices = device("a", 1, "rate = \"10Gb/s\"\ntransit = false\ncapabilities = [\"zero-copy\"]\n") +
                              device("b", 2, "rate = \"1Gb/s\"\nwan = true\nwan_to = [7]\n");
  Running routing(routing_by(router()), parse_config("f.toml", devices).value());
  const std::string routed = routing.uri();
  RoutesCommand asking;
  asking.common = insecure();
  asking.places = {"tcp://" + routed.substr(routed.find("127.0.0.1:"))};
  Words shown;
  {
    Output output;
    const Config metrics = parse_config("g.toml", "[router]\nmetric = [\"capabilities\", \"hops\"]\n").value();
    CHECK(of(Ran([&](const Process& process) { return run_routes(process, asking); }, metrics, false).end) == "ok: ");
    shown = output.take();
  }
  const auto has = [&](const std::string& begin, const std::string& end) {
    return std::count_if(shown.begin(), shown.end(), [&](const std::string& line) {
             return line.rfind(begin, 0) == 0 && line.size() >= end.size() && line.substr(line.size() - end.size()) == end;
           }) == 1;
  };
  CHECK(has("  subnet 1:1, tcp://127.0.0.1:", ", 10Gb/s, no transit"));
  CHECK(has("  subnet 1:2, tcp://127.0.0.1:", ", 1Gb/s, wan"));
  CHECK(has("subnet 1:1: ", "tcp, 10Gb/s, cost 0/1, no transit"));  // what copies nothing costs nothing
  CHECK(has("subnet 1:2 (W7): ", "tcp, 1Gb/s, cost 1/1"));
}

TEST_CASE("router_settings__two_workers__whoever_asks_for_the_map_gets_it_each_time") {
  Running routing(routing_by(router()), parse_config("f.toml", two + "[router]\nworkers = 2\nmemory = \"1MiB\"\n").value());
  const std::string routed = routing.uri();
  RoutesCommand asking;
  asking.common = insecure();
  asking.places = {"tcp://" + routed.substr(routed.find("127.0.0.1:"))};
  for (int i = 0; i < 3; ++i) {
    Output output;
    CHECK(of(Ran([&](const Process& process) { return run_routes(process, asking); }, {}, false).end) == "ok: ");
    CHECK(output.take().size() > 2);
  }
}

TEST_CASE("router_settings__memory_for_one_worker_only__two_are_refused") {
  const Config config = parse_config("f.toml", two + "[router]\nworkers = 2\nmemory = \"32KiB\"\n").value();
  CHECK(of(Ran(routing_by(router()), config, false).end).find("memory of 16384 bytes is too little") != std::string::npos);
}

TEST_CASE("router_settings__loaded_anew__the_address_file_follows_or_the_router_goes_on") {
  TemporaryDirectory here;
  here.write("router.toml", two);
  Running routing(routing_by(router(here.path("uris"))), load_config(here.path("router.toml")).value());
  static_cast<void>(routing.uri());
  CHECK(here.read("uris").find("cci://1:3:127.0.0.1:") == std::string::npos);
  here.write("router.toml", two + device("c", 3));
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "status") == "ok");
  CHECK(here.read("uris").find("cci://1:3:127.0.0.1:") != std::string::npos);
  std::filesystem::remove(here.path("uris"));
  std::filesystem::create_directory(here.path("uris"));
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "status") == "ok");
  CHECK(routing.said.text.lines("--uri-file: " + here.path("uris") + " is a directory").size() == 1);
  CHECK(of(routing.stop()) == "ok: ");
}

TEST_CASE("router_settings__loaded_anew__what_takes_a_restart_is_said") {
  TemporaryDirectory here;
  const std::string file = here.path("router.toml");
  here.write("router.toml", two);
  Running routing(routing_by(router()), load_config(file).value());
  static_cast<void>(routing.uri());
  here.write("router.toml", two + "[router]\nfragment = \"2MiB\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n");
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "status") == "ok");
  for (const char* key : {"router.fragment", "metrics.listen"})
    CHECK(routing.said.text.lines(file + ": " + key + ": another value takes a restart").size() == 1);
  CHECK(of(routing.stop()) == "ok: ");
}

TEST_CASE("router_settings__a_configuration_that_the_router_refuses__is_not_taken_and_said") {
  TemporaryDirectory here;
  here.write("router.toml", two);
  Running routing(routing_by(router()), load_config(here.path("router.toml")).value());
  static_cast<void>(routing.uri());
  here.write("router.toml", device("a", 1) + device("c", 3));
  routing.signal(SIGHUP);
  const std::string told = routing.said.await("reloaded");
  CHECK(member(told, "status") == "usage");
  CHECK(member(told, "reason") == here.path("router.toml") + ": device b is missing: restart the router");
  CHECK(routing.said.text.lines("not reloaded: " + here.path("router.toml") + ": device b is missing").size() == 1);
  CHECK(of(routing.stop()) == "ok: ");
}

TEST_CASE("router_settings__memory_and_fragments__the_command_line_before_the_file") {
  const auto refused = [](const std::string& settings, const RouteCommand& command) {
    return of(Ran(routing_by(command), parse_config("f.toml", two + "[router]\n" + settings).value()).end);
  };
  CHECK(refused("fragment = \"5B\"\n", router()).rfind("usage: fragment of 5 bytes: at least ", 0) == 0);
  CHECK(refused("memory = \"5B\"\n", router()).rfind("usage: memory of 5 bytes is too little: ", 0) == 0);
  RouteCommand command = router();
  command.memory_bytes = 6;
  CHECK(refused("memory = \"5B\"\n", command).rfind("usage: memory of 6 bytes is too little: ", 0) == 0);
  // More than fits into a fragment's length is as much as fits.
  CHECK(refused("fragment = \"4GiB\"\nmemory = \"5B\"\n", router()).rfind("usage: memory of 5 bytes is too little: ", 0) == 0);
}
