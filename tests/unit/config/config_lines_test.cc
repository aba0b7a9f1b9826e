// The configuration's mistakes, each with its whole line, and every bound from both sides.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "app/config/config.h"
#include "app/config/config_text.h"

namespace ccixfer::program {
namespace {

std::string said(const std::string& text) {
  const auto config = parse_config("c", text);
  return config ? "" : config.error().message;
}
std::string in_device(const std::string& line) { return said("[device.x]\n" + line + "\n"); }
std::string in_router(const std::string& line) { return said("[router]\n" + line + "\n"); }
std::string in_static(const std::string& lines) { return said("[[router.static]]\n" + lines + "\n"); }
DeviceConfig device(const std::string& lines) {
  const auto config = parse_config("c", "[device.x]\n" + lines + "\n");
  REQUIRE(config);
  return config->devices.at(0);
}
std::string warned(const std::string& lines) {
  const auto config = parse_config("c", "[device.x]\n" + lines + "\n");
  REQUIRE(config);
  return config->warnings.empty() ? "" : config->warnings.at(0);
}

}  // namespace

TEST_CASE("config_lines__of_the_wrong_kind__what_to_write_instead") {
  CHECK(said("device = 1\n") == "c:1: device: is not a table: write [device]");
  CHECK(said("[device]\nx = 3\n") == "c:2: device.x: is not a table: write [device.x]");
  CHECK(said("router = 1\n") == "c:1: router: is not a table: write [router]");
  CHECK(said("colour = 3\n") == "c:1: colour: unknown table or key: device, router, identity, peer and metrics are known");
  CHECK(in_device("transport = 1") == "c:2: device.x.transport: is not a string: write device.x.transport = \"tcp\"");
  CHECK(in_device("interface = 1") == "c:2: device.x.interface: is not a string: write device.x.interface = \"eth0\"");
  CHECK(in_device("interface = \"\"") == "c:2: device.x.interface: is empty: name an interface");
  CHECK(in_device("ip = 1") == "c:2: device.x.ip: is not a string: write device.x.ip = \"192.0.2.10\"");
  CHECK(in_device("router = 1") == "c:2: device.x.router: is not a list: write device.x.router = [...]");
  CHECK(in_device("router = [1]") == "c:2: device.x.router: is not a string: write device.x.router = [\"tcp://192.0.2.1:7000\"]");
  CHECK(in_device("rate = 1") == "c:2: device.x.rate: is not a string: write device.x.rate = \"10Gb/s\"");
  CHECK(in_device("capabilities = 1") == "c:2: device.x.capabilities: is not a list: write device.x.capabilities = [...]");
  for (const char* key : {"default", "transit", "wan"})
    CHECK(in_device(fmt::format("{} = 1", key)) ==
          fmt::format("c:2: device.x.{0}: is not true or false: write device.x.{0} = true", key));
  CHECK(in_device("wan_to = 1") == "c:2: device.x.wan_to: is not a list: write device.x.wan_to = [...]");
  CHECK(in_router("metric = \"hops\"") == "c:2: router.metric: is not a list: write router.metric = [...]");
  CHECK(in_router("metric = [1]") == "c:2: router.metric: is not a string: write router.metric = \"bandwidth\"");
  CHECK(in_router("fragment = 1") == "c:2: router.fragment: is not a string: write router.fragment = \"1MiB\"");
  CHECK(in_router("static = 1") == "c:2: router.static: is not a list: write router.static = [...]");
  CHECK(in_router("static = [1]") == "c:2: [router.static]: is not a table: write [[router.static]]");
  CHECK(in_static("from = 1\nvia = [1]\nto = []") == "c:4: router.static.to: is not a string: write router.static.to = \"4:7\"");
}

TEST_CASE("config_lines__numbers__from_the_least_to_the_most") {
  struct Case {
    const char* key;
    uint64_t most;
  };
  for (const Case& one : {Case{"port", 65535}, {"as", UINT32_MAX}, {"subnet", UINT32_MAX}, {"priority", 100}}) {
    const std::string line = fmt::format("c:2: device.x.{}: bad value: give a whole number from 0 to {}", one.key, one.most);
    CHECK(in_device(fmt::format("{} = {}", one.key, one.most)).empty());
    CHECK(in_device(fmt::format("{} = 0", one.key)).empty());
    CHECK(in_device(fmt::format("{} = {}", one.key, one.most + 1)) == line);
    CHECK(in_device(fmt::format("{} = -1", one.key)) == line);
    CHECK(in_device(fmt::format("{} = \"1\"", one.key)) == line);
    CHECK(in_device(fmt::format("{} = 1.5", one.key)) == line);
  }
  CHECK(device("port = 65535").port == 65535);
  CHECK(device("priority = 100").priority == 100);
  CHECK(in_device("wan = true\nwan_to = [1, -1]") == "c:3: device.x.wan_to: bad value: give a whole number from 0 to 4294967295");
  CHECK(in_static("from = -1") == "c:2: router.static.from: bad value: give a whole number from 0 to 4294967295");
  CHECK(in_static("via = [-1]") == "c:2: router.static.via: bad value: give a whole number from 0 to 4294967295");
}

TEST_CASE("config_lines__words__one_of_those_that_are_known") {
  for (const char* transport : {"tcp", "udp", "verbs", "eth", "shm"})
    CHECK(device(fmt::format("transport = \"{}\"", transport)).transport == transport);
  CHECK(in_device("transport = \"pigeon\"").rfind("c:2: device.x.transport: unknown value 'pigeon': give one of tcp, ", 0) == 0);
  CHECK(in_device("capabilities = [\"magic\"]") ==
        "c:2: device.x.capabilities: unknown value 'magic': give one of zero-copy, os-bypass");
  CHECK(device("capabilities = [\"os-bypass\"]").capabilities == capability_os_bypass);
  CHECK(device("capabilities = [\"zero-copy\", \"zero-copy\"]").capabilities == capability_zero_copy);
  CHECK(device("capabilities = []").capabilities == uint8_t{0});
  CHECK(in_router("metric = [\"speed\"]").rfind("c:2: router.metric: unknown value 'speed': give one of bandwidth, ", 0) == 0);
  CHECK(in_router("metric = [\"hops\", \"hops\"]") == "c:2: router.metric: named twice: name each once");
  CHECK(in_router("metric = [\"hops\", \"latency\"]").empty());
  CHECK(in_router("metric = []").rfind("c:2: router.metric: is empty: name some of bandwidth, ", 0) == 0);
  CHECK(in_router("colour = 1") == "c:2: router.colour: unknown key: metric, fragment, memory, workers and static are known");
  CHECK(in_router("workers = 2").empty());
  CHECK(in_router("workers = 0") == "c:2: router.workers: bad value: give a whole number from 1 to 64");
  CHECK(in_router("workers = 65") == "c:2: router.workers: bad value: give a whole number from 1 to 64");
}

TEST_CASE("config_lines__shm__has_a_name_and_no_interface") {
  CHECK(device("transport = \"shm\"\nname = \"site-a\"").shm_name == "site-a");
  CHECK(device("transport = \"shm\"").shm_name.empty());
  CHECK(in_device("transport = \"shm\"\nname = \"a/b\"") ==
        "c:3: device.x.name: 'a/b' is no name of shm: write shm://NAME, of at most 64 letters, digits, '.', '_' and '-'");
  CHECK(in_device("name = \"a\"") == "c:2: device.x.name: only shm has names: give interface or ip, and port");
  for (const char* key : {"ip = \"::1\"", "interface = \"lo\"", "port = 1"}) {
    const std::string name = std::string(key).substr(0, std::string_view(key).find(' '));
    CHECK(in_device(fmt::format("transport = \"shm\"\n{}", key)) ==
          fmt::format("c:3: device.x.{}: shm has none: give name, as in shm://NAME", name));
  }
}

TEST_CASE("config_lines__addresses_rates_and_sizes__as_people_write_them") {
  CHECK(device("ip = \"::1\"").ip == "::1");
  CHECK(device("ip = \"127.0.0.1\"").ip == "127.0.0.1");
  CHECK(in_device("ip = \"example.org\"") == "c:2: device.x.ip: 'example.org' is no IP address: give one of this host's");
  CHECK(in_device("ip = \"10.0.0.1\"\ntransport = \"eth\"") ==
        "c:2: device.x.ip: an endpoint of eth has no IP address: name an interface");
  CHECK(in_device("transport = \"eth\"\nrouter = [\"eth://02:00:00:00:00:01:7\"]\nas = 1\nsubnet = 1").empty());
  CHECK(in_device("ip = \"10.0.0.1\"\ninterface = \"eth0\"") == "c:2: device.x.ip: interface is given too: leave one of them out");
  const std::string rates = "c:2: device.x.rate: bad value: give a rate with its unit, such as \"10Gb/s\"";
  CHECK(in_device("rate = \"10\"") == rates);
  CHECK(in_device("rate = \"0b/s\"") == rates);
  CHECK(device("rate = \"1b/s\"").rate_bits_per_s == 1u);
  for (const char* key : {"fragment", "memory"}) {
    const std::string sizes = fmt::format("c:2: router.{}: bad value: give a size such as \"1MiB\"", key);
    CHECK(in_router(fmt::format("{} = \"0\"", key)) == sizes);
    CHECK(in_router(fmt::format("{} = \"much\"", key)) == sizes);
    CHECK(in_router(fmt::format("{} = \"1\"", key)).empty());
  }
  const std::string native = "is no native address: give addresses such as \"tcp://192.0.2.1:7000\"";
  CHECK(in_device("router = [\"tcp://h\"]") == "c:2: device.x.router: 'tcp://h' " + native);
  CHECK(in_device("router = [\"cci://1:2:h:7\"]") == "c:2: device.x.router: 'cci://1:2:h:7' " + native);
  CHECK(in_device("router = [\"tcp://h:7/path\"]") == "c:2: device.x.router: 'tcp://h:7/path' " + native);
  CHECK(in_device("router = [\"tcp://h:7\"]").empty());
  CHECK(in_device("transport = \"udp\"\nrouter = [\"tcp://h:7\"]") ==
        "c:3: device.x.router: 'tcp://h:7' is not of the transport udp: a subnet has exactly one transport");
}

TEST_CASE("config_lines__what_is_given_in_part__a_warning_where_it_stands") {
  const std::string part = "device.x: as, subnet and router are given only in part: no routing for this device";
  CHECK(warned("port = 1\nas = 1") == "c:3: " + part);
  CHECK(warned("port = 1\nsubnet = 1") == "c:3: " + part);
  CHECK(warned("port = 1\nrouter = []") == "c:3: " + part);
  CHECK(warned("as = 1\nsubnet = 1").find(part) != std::string::npos);
  CHECK(warned("as = 1\nrouter = []").find(part) != std::string::npos);
  CHECK(warned("subnet = 1\nrouter = []").find(part) != std::string::npos);
  CHECK(warned("as = 1\nsubnet = 1\nrouter = []").empty());
  CHECK(warned("flavour = 1") == "c:2: device.x.flavour: unknown key, not used");
  CHECK(in_device("wan_to = [1]") == "c:2: device.x.wan_to: the device is no wan: set wan = true or leave wan_to out");
  CHECK(in_device("wan = true\nwan_to = [1]").empty());
  CHECK(in_device("wan = true\nwan_to = []") ==
        "c:3: device.x.wan_to: is empty: name the AS that it serves, or leave it out for all");
  CHECK(in_device("wan = true\nwan_to = [4, 3]\nas = 3") == "c:3: device.x.wan_to: names the device's own AS: name others only");
}

TEST_CASE("config_lines__static_routes__whole_or_refused") {
  const std::string rest = "from = 1\nvia = [2]\n";
  const std::string bad = "c:4: router.static.to: bad value: give \"AS:SUBNET\" or a subnet of this AS";
  for (const char* to : {"\"x\"", "\"4:\"", "\":7\"", "\"4:7:1\"", "\"4:7x\"", "\"4x\"", "\"\"", "\"4: 7\"", "\"4294967296\""})
    CHECK(in_static(rest + "to = " + to) == bad);
  const auto to = [&](const std::string& text) {
    const auto config = parse_config("c", "[[router.static]]\n" + rest + "to = " + text + "\n");
    REQUIRE(config);
    return std::pair{config->router.static_routes.at(0).to_as, config->router.static_routes.at(0).to_subnet};
  };
  CHECK(to("\"4:7\"") == std::pair{std::optional<uint32_t>(4), 7u});
  CHECK(to("\"7\"") == std::pair{std::optional<uint32_t>(), 7u});
  CHECK(to("7") == std::pair{std::optional<uint32_t>(), 7u});
  CHECK(in_static(rest + "to = -7") == "c:4: router.static.to: bad value: give a whole number from 0 to 4294967295");
  CHECK(in_static("from = 1\nto = 7\nvia = []") == "c:4: router.static.via: is empty: name the subnets or AS on the way");
  CHECK(in_static("from = 1\nto = 7\nvia = [1]") == "c:4: router.static.via: names no other subnet than from: name the next one");
  CHECK(in_static("from = 1\nto = 7\nvia = [3, 1]") == "c:4: router.static.via: names subnet 1 twice: name each once");
  CHECK(in_static("from = 1\nto = 7\nvia = [3, 3]") == "c:4: router.static.via: names subnet 3 twice: name each once");
  for (const char* via : {"[3]", "[1, 3]"}) {  // the subnet on which it begins may be left out
    const auto config = parse_config("c", fmt::format("[[router.static]]\nfrom = 1\nto = 7\nvia = {}\n", via));
    REQUIRE(config);
    CHECK(config->router.static_routes.at(0).via == std::vector<uint32_t>{1, 3});
  }
  CHECK(in_static("cost = 1") == "c:2: router.static.cost: unknown key: from, to and via are known");
  const std::string missing = "is missing: a static route has from, to and via";
  CHECK(in_static("to = 1\nvia = [1]") == "c:1: router.static.from: " + missing);
  CHECK(in_static("from = 1\nvia = [1]") == "c:1: router.static.to: " + missing);
  CHECK(in_static("from = 1\nto = 1") == "c:1: router.static.via: " + missing);
}

TEST_CASE("config_lines__two_devices__what_they_may_not_share") {
  const auto both = [](const std::string& one, const std::string& other) {
    return said("[device.a]\n" + one + "\n[device.b]\n" + other + "\n");
  };
  CHECK(both("default = true", "default = true") == "c:4: device.b.default: device a is the default too: leave one");
  CHECK(both("default = true", "default = false").empty());
  const std::string listens = "c:4: device.b.port: device a listens there: give another port";
  CHECK(both("port = 7", "port = 7") == listens);
  CHECK(both("port = 0", "port = 0").empty());
  CHECK(both("port = 7", "port = 8").empty());
  CHECK(both("port = 7\nip = \"10.0.0.1\"", "port = 7\nip = \"10.0.0.2\"").empty());
  CHECK(both("port = 7\ninterface = \"a\"", "port = 7\ninterface = \"b\"").empty());
  CHECK(both("port = 7\ninterface = \"a\"", "port = 7\ninterface = \"a\"").find("device a listens there") != std::string::npos);
  CHECK(both("port = 7", "port = 7\ntransport = \"udp\"").empty());
  const std::string subnet = "as = 1\nrouter = []\nsubnet = 1";
  CHECK(both(subnet, subnet).empty());  // two ways into one network
  CHECK(both(subnet, subnet + "\ntransport = \"udp\"") ==
        "c:8: device.b.subnet: device a says that it is tcp: a subnet has exactly one transport: number the other one anew");
  CHECK(both(subnet, "as = 2\nrouter = []\nsubnet = 1\ntransport = \"udp\"").empty());
  CHECK(both(subnet, "transport = \"udp\"").empty());
}

TEST_CASE("config_lines__files__read_whole_or_refused") {
  char name[] = "/tmp/ccixfer-config-XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  close(fd);
  const auto write = [&](const std::string& text) { std::ofstream(name, std::ios::binary) << text; };
  write("[device.x]\nport = 5\n");
  const auto config = load_config(name);
  REQUIRE(config);
  CHECK(config->file == name);
  CHECK(config->devices.at(0).port == 5);
  write(std::string(config_bytes_max, '#'));
  CHECK(load_config(name));
  write(std::string(config_bytes_max + 1, '#'));
  REQUIRE_FALSE(load_config(name));
  CHECK(load_config(name).error().message ==
        fmt::format("the configuration is too long: {}: at most {} bytes", name, config_bytes_max));
  std::remove(name);
  REQUIRE_FALSE(load_config(name));
  CHECK(load_config(name).error().message ==
        fmt::format("cannot read the configuration: {}: give a file that exists and is readable", name));
  REQUIRE_FALSE(load_config("/"));
  CHECK(load_config("/").error().message == "cannot read the configuration: /: give a regular file");
}

TEST_CASE("config_text__of_a_pipe__waits_for_its_writer_and_not_for_ever") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const std::string name = fmt::format("/dev/fd/{}", ends[0]);  // as a shell's <(command) names it
  const auto silent = read_config_text(name, std::chrono::milliseconds(1));
  REQUIRE_FALSE(silent);
  CHECK(silent.error().kind == ErrorKind::usage);
  CHECK(silent.error().message.find("nothing came out of this pipe") != std::string::npos);
  const std::string text = "[device.x]\nport = 5\n" + std::string(100'000, '#');
  std::thread writer([&] {
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = ::write(ends[1], text.data() + at, text.size() - at);
      if (wrote < 0) break;
      at += static_cast<size_t>(wrote);
    }
    ::close(ends[1]);
  });
  const auto read = read_config_text(name);
  writer.join();
  ::close(ends[0]);
  REQUIRE(read);
  CHECK(*read == text);
}

TEST_CASE("config_lines__where_it_is_looked_for__homes_that_are_none_are_passed_over") {
  static const char* xdg = nullptr;
  static const char* user = nullptr;
  static const char* variable = nullptr;
  static std::string present;
  const auto environment = [](const char* name) -> const char* {
    const std::string wanted = name;
    return wanted == "CCI_CONFIG" ? variable : wanted == "XDG_CONFIG_HOME" ? xdg : wanted == "HOME" ? user : nullptr;
  };
  const auto exists = [](const std::string& path) { return path == present; };
  const auto found = [&] { return find_config(std::nullopt, environment, exists); };
  user = "/home/u";
  present = "/home/u/.config/ccixfer/ccixfer.toml";
  CHECK(found() == present);
  xdg = "";
  CHECK(found() == present);
  xdg = "not/absolute";
  CHECK(found() == present);
  variable = "";
  CHECK(found() == present);
  xdg = "/xdg";
  CHECK(found().empty());  // a home of its own, and nothing is there
  present = "/xdg/ccixfer/ccixfer.toml";
  CHECK(found() == present);
  variable = "/from/variable";
  CHECK(found() == "/from/variable");
  CHECK(find_config("", environment, exists).empty());  // asked for: none
  variable = xdg = nullptr;
  user = "relative";
  present = "relative/.config/ccixfer/ccixfer.toml";
  CHECK(found().empty());
  present = "/etc/ccixfer/ccixfer.toml";
  CHECK(found() == present);
}

}  // namespace ccixfer::program
