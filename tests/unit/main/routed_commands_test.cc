// Commands on both sides of a router, all of them in this process: what a path of two subnets comes to for who asks and who sends.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "routing/router/router.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

std::string device(const std::string& name, int subnet, const std::string& routers, const std::string& more = "") {
  return "[device." + name + "]\nip = \"127.0.0.1\"\nas = 1\nsubnet = " + std::to_string(subnet) + "\nrouter = [" + routers +
         "]\n" + more;
}

// A router of two subnets, and what an end of each is configured with.
struct TwoSubnets {
  explicit TwoSubnets(const std::string& of_a = "rate = \"10Gb/s\"\n", const std::string& of_b = "rate = \"1Gb/s\"\n")
      : routing(
            [](const Process& process) {
              RouteCommand command;
              command.common = insecure();
              return run_route(process, command);
            },
            parse_config("router.toml", device("a", 1, "", of_a) + device("b", 2, "", of_b)).value()) {
    const std::string ready = routing.said.await("ready");
    for (const int subnet : {1, 2}) {
      const std::string begin = "cci://1:" + std::to_string(subnet) + ":";
      const size_t at = ready.find(begin) + begin.size();
      places[subnet - 1] = "tcp://" + ready.substr(at, ready.find('"', at) - at);
    }
  }
  [[nodiscard]] Config end(int subnet) const {
    return parse_config("end.toml", device("x", subnet, "\"" + places[subnet - 1] + "\"")).value();
  }
  Running routing;
  std::string places[2];  // native, of its devices
};

Running::Body pinging(const std::string& uri, uint32_t count, Duration timeout = std::chrono::seconds(20)) {
  return [uri, count, timeout](const Process& process) {
    PingCommand command;
    command.common = insecure();
    command.uri = uri;
    command.count = count;
    command.timeout = timeout;
    return run_ping(process, command);
  };
}

Running::Body asking_routes(const std::string& uri) {
  return [uri](const Process& process) {
    RoutesCommand command;
    command.common = insecure();
    command.places = {uri};
    return run_routes(process, command);
  };
}

// What comes about by itself; a hang is told before the limit of all tests ends them without a word.
template <typename What>
bool await(What what) {
  const auto longest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!what() && std::chrono::steady_clock::now() < longest) std::this_thread::yield();
  return what();
}
// The first messages are of the connections themselves.
bool await_pings(const Running& at) {
  return await([&] { return at.counters.get(Counter::messages_received) >= 100; });
}

}  // namespace

TEST_CASE("routed_commands__ping__each_subnet_with_its_rate_and_which_is_the_slowest") {
  for (const bool first_is_slow : {true, false}) {
    INFO(first_is_slow);
    const std::string fast = "rate = \"10Gb/s\"\n", slow = "rate = \"1Gb/s\"\n";
    TwoSubnets net(first_is_slow ? slow : fast, first_is_slow ? fast : slow);
    TemporaryDirectory to;
    Running receiving_side(receiving(receiver(to.path())), net.end(2));
    const std::string uri = receiving_side.uri();
    REQUIRE(uri.rfind("cci://1:2:127.0.0.1:", 0) == 0);
    Ran asked(pinging(uri, 2), net.end(1));
    CHECK(of(asked.end) == "ok: ");
    const std::string event = asked.running.said.await("ping");
    CHECK(member(event, "bottleneck") == (first_is_slow ? "1" : "2"));
    CHECK(member(event, "fragment_bytes") != "");
    Words shown;
    {
      Output output;
      CHECK(of(Ran(pinging(uri, 2), net.end(1), false).end) == "ok: ");
      shown = output.take();
    }
    REQUIRE(shown.size() == 4);
    CHECK(shown[0].rfind(uri + ": at most ", 0) == 0);
    CHECK(shown[0].find(" bytes a message, fragments of " + member(event, "fragment_bytes") + " bytes") != std::string::npos);
    const auto hop = [&](size_t number) {
      const std::string& line = shown[number];
      CHECK(line.rfind("hop " + std::to_string(number) + ": tcp ", 0) == 0);
      CHECK(line.find(" subnet 1:" + std::to_string(number) + ", ") != std::string::npos);
      CHECK(line.find(first_is_slow == (number == 1) ? ", 1Gb/s, round trip " : ", 10Gb/s, round trip ") != std::string::npos);
      const std::string mark =
          " ms to the end, not protected" + std::string(first_is_slow == (number == 1) ? "  <- the slowest subnet" : "");
      CHECK(line.substr(line.size() - mark.size()) == mark);
    };
    hop(1);
    hop(2);
    CHECK(shown[3].rfind("2 messages of 64 bytes: round trip min ", 0) == 0);
    CHECK(of(receiving_side.stop()) == "ok: ");
  }
}

TEST_CASE("routed_commands__ping__of_a_rate_that_nobody_knows_none_is_the_slowest") {
  TwoSubnets net("", "rate = \"1Gb/s\"\n");
  TemporaryDirectory to;
  Running receiving_side(receiving(receiver(to.path())), net.end(2));
  const std::string uri = receiving_side.uri();
  Words shown;
  {
    Output output;
    CHECK(of(Ran(pinging(uri, 1), net.end(1), false).end) == "ok: ");
    shown = output.take();
  }
  REQUIRE(shown.size() == 4);
  CHECK(shown[1].find("b/s") == std::string::npos);
  CHECK(shown[2].find(" subnet 1:2, 1Gb/s, round trip ") != std::string::npos);
  for (const std::string& line : shown) CHECK(line.find("the slowest subnet") == std::string::npos);
  CHECK(shown[3].rfind("1 messages of 64 bytes: ", 0) == 0);
  Ran asked(pinging(uri, 1), net.end(1));
  CHECK(member(asked.running.said.await("ping"), "bottleneck").empty());
}

TEST_CASE("routed_commands__ping__nobody_behind_the_router_and_a_subnet_that_nobody_has") {
  TwoSubnets net;
  const CommandEnd nobody = Ran(pinging("cci://1:2:127.0.0.1:1", 1), net.end(1)).end;
  CHECK(nobody.error.kind == ErrorKind::no_answer);
  const std::string end = ": cci://1:2:127.0.0.1:1: check that the peer runs and can be reached";
  CHECK(nobody.error.message.find(end) != std::string::npos);
  const CommandEnd none = Ran(pinging("cci://1:7:127.0.0.1:1", 1), net.end(1)).end;
  CHECK(none.error.kind == ErrorKind::no_route);
  const std::string remedy = ": cci://1:7:127.0.0.1:1: check the routers and their configuration (ccixfer routes)";
  CHECK(none.error.message.find(remedy) != std::string::npos);
  const CommandEnd map = Ran(asking_routes("cci://1:7:127.0.0.1:1"), net.end(1)).end;
  CHECK(map.error.kind == ErrorKind::no_route);
  CHECK(map.error.message.find(remedy) != std::string::npos);
  const CommandEnd nobody_asked = Ran(asking_routes("cci://1:2:127.0.0.1:1"), net.end(1)).end;
  CHECK(nobody_asked.error.kind == ErrorKind::no_answer);
  CHECK(nobody_asked.error.message.find(": cci://1:2:127.0.0.1:1: check that a router runs there") != std::string::npos);
}

TEST_CASE("routed_commands__ping__the_peer_goes_meanwhile__the_connection_is_lost") {
  for (const bool routed : {false, true}) {
    INFO(routed);
    TwoSubnets net;
    TemporaryDirectory to;
    Running receiving_side(receiving(receiver(to.path())), routed ? net.end(2) : Config{});
    const std::string uri = receiving_side.uri();
    Running asked(pinging(uri, 1'000'000'000), routed ? net.end(1) : Config{});
    REQUIRE(await_pings(receiving_side));
    asked.signal(SIGUSR1);  // no end
    static_cast<void>(receiving_side.stop());
    const CommandEnd end = asked.wait();
    CHECK(end.error.kind == ErrorKind::network);
    CHECK(end.error.message.rfind("the connection is lost (", 0) == 0);
    CHECK(end.error.message.find("): " + uri + ": try again") != std::string::npos);
  }
}

TEST_CASE("routed_commands__a_transfer__names_the_router_on_its_way_which_counts_it") {
  TwoSubnets net;
  TemporaryDirectory from, to;
  from.write("f", std::string(100'000, 'x'));
  Running receiving_side(receiving(receiver(to.path(), true)), net.end(2));
  const std::string uri = receiving_side.uri();
  Ran sent(sending(send_of({from.path("f")}, uri + "/")), net.end(1));
  CHECK(of(sent.end) == "ok: ");
  CHECK(to.read("f").size() == 100'000);
  const std::string session = sent.running.said.await("session");
  CHECK(session.find("\"subnet\":\"1:1\"") != std::string::npos);
  CHECK(session.find("\"subnet\":\"1:2\"") != std::string::npos);
  CHECK(of(receiving_side.wait()) == "ok: ");
  CHECK(net.routing.counters.get(Counter::routed_connections) > 0);
  CHECK(of(net.routing.stop()) == "ok: ");
}

TEST_CASE("routed_commands__router_told_to_end__says_how_many_connections_have_how_long") {
  const std::string until = " connections have " +
                            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(routing::drain_timeout).count()) +
                            " s to end or move; a second signal stops at once";
  for (const int number : {SIGTERM, SIGINT}) {
    TwoSubnets idle;
    CHECK(of(idle.routing.stop(number)) == "ok: ");
    CHECK(idle.routing.said.text.lines("draining") == Words{"draining: 0" + until});
  }
  TwoSubnets net;
  TemporaryDirectory to;
  Running receiving_side(receiving(receiver(to.path())), net.end(2));
  Running asked(pinging(receiving_side.uri(), 1'000'000'000), net.end(1));
  REQUIRE(await_pings(receiving_side));
  net.routing.signal(SIGTERM);
  static_cast<void>(await([&] { return !net.routing.said.text.lines("draining").empty(); }));
  CHECK(net.routing.said.text.lines("draining") == Words{"draining: 1" + until});
  CHECK(of(asked.stop()).rfind("interrupted: interrupted: by a signal: cci://1:2:", 0) == 0);
  CHECK(of(net.routing.wait()) == "ok: ");  // as soon as nobody is left
}

TEST_CASE("routed_commands__router_loaded_anew__says_which_file_and_how_many_devices") {
  TemporaryDirectory here;
  const std::string file = here.path("router.toml");
  const std::string two = device("a", 1, "") + device("b", 2, "");
  here.write("router.toml", two);
  RouteCommand command;
  command.common = insecure();
  Running routing([command](const Process& process) { return run_route(process, command); }, load_config(file).value());
  static_cast<void>(routing.uri());
  const auto reloaded = [&] {
    routing.signal(SIGHUP);
    const std::string event = routing.said.await("reloaded");
    return member(event, "status") + " " + member(event, "devices") + " " + member(event, "reason");
  };
  const auto lines = [&](const std::string& part) { return routing.said.text.lines(part); };
  const auto last = [&](const std::string& part) { return lines(part).empty() ? "" : lines(part).back(); };
  CHECK(reloaded() == "ok 2 ");
  CHECK(last("reloaded: ") == "reloaded: " + file + ": 2 devices");
  here.write("router.toml", two + device("c", 3, ""));
  CHECK(reloaded() == "ok 3 ");
  CHECK(last("reloaded: ") == "reloaded: " + file + ": 3 devices");
  // What cannot be used is said, and the router has as many as before.
  here.write("router.toml", two);
  CHECK(reloaded() == "usage 3 " + file + ": device c is missing: restart the router");
  CHECK(last("not reloaded: ") == "ccixfer: not reloaded: " + file + ": device c is missing: restart the router");
  here.write("router.toml", two + device("c", 3, "") + device("d", 4, "") + device("e", 4, ""));
  CHECK(reloaded() == "usage 3 " + file + ": devices d and e are on one subnet");
  here.write("router.toml", two + device("c", 5, ""));
  CHECK(reloaded() == "usage 3 " + file + ": device c is on subnet 1:3 (tcp): restart the router");
  std::filesystem::remove(file);
  CHECK(reloaded().rfind("usage 3 cannot read ", 0) == 0);
  CHECK(lines("not reloaded: ").size() == 4);
  here.write("router.toml", two + device("c", 3, ""));
  CHECK(reloaded() == "ok 3 ");
  CHECK(lines(": 3 devices").size() == 2);
  CHECK(of(routing.stop()) == "ok: ");
}

TEST_CASE("routed_commands__routes__of_a_running_router_for_people_scripts_and_as_a_graph") {
  TwoSubnets net;
  RoutesCommand command;
  command.common = insecure();
  command.places = {net.places[0]};
  const auto shown = [&](bool json) {
    Output output;
    Ran ran([&](const Process& process) { return run_routes(process, command); }, {}, json);
    CHECK(of(ran.end) == "ok: ");
    if (json) {
      const std::string one = ran.running.said.await("route"), other = ran.running.said.await("route");
      CHECK(member(one, "from") + " " + member(one, "to") + " " + member(one, "chosen") == "1:1 1:2 true");
      CHECK(member(other, "from") + " " + member(other, "to") + " " + member(other, "chosen") == "1:2 1:1 true");
    }
    return output.take();
  };
  CHECK(shown(true).empty());
  const Words text = shown(false);
  CHECK(std::count_if(text.begin(), text.end(), [](const std::string& line) {
          return line.rfind("  subnet 1:1, tcp://127.0.0.1:", 0) == 0 && line.find(", 10Gb/s") != std::string::npos;
        }) == 1);
  command.dot = true;
  const Words graph = shown(false);
  REQUIRE_FALSE(graph.empty());
  CHECK(graph.front().rfind("graph ", 0) == 0);
  CHECK(graph.back() == "}");
  for (const std::string& line : graph) CHECK(std::find(text.begin(), text.end(), line) == text.end());
}
