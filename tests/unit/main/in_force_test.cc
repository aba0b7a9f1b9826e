// Which keys of a changed configuration a running process does not take at SIGHUP.
#include "app/main/in_force.h"

#include <catch2/catch.hpp>

using namespace ccixfer::program;

namespace {

using Lines = std::vector<std::string>;

const std::string device =
    "[device.a]\ntransport = \"tcp\"\nip = \"192.0.2.1\"\nport = 7000\nas = 1\nsubnet = 1\nrouter = []\nrate = \"1Gb/s\"\n";
const std::string metrics = "[metrics]\nlisten = \"127.0.0.1:9464\"\n";
const std::string guard = "certificate = \"web.pem\"\nkey = \"web.key\"\ntoken = \"token\"\n";

Config of(const std::string& text) { return parse_config("f.toml", text).value(); }

Lines told(const std::string& before, const std::string& after, Reload kind = Reload::router) {
  InForce in_force(of(before), kind);
  Lines lines = in_force.left_of(of(after));
  for (std::string& line : lines) {
    const std::string file = "f.toml: ", words = ": another value takes a restart";
    REQUIRE(line.starts_with(file));
    if (line.ends_with(words)) line = line.substr(file.size(), line.size() - file.size() - words.size());
  }
  return lines;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("in_force__what_a_router_takes__is_no_news") {
  CHECK(told(device + metrics, device + metrics).empty());
  CHECK(told(device, with(device, "1Gb/s", "2Gb/s") + "[router]\nmetric = [\"hops\"]\n").empty());
  CHECK(told(device, with(device, "router = []", "router = [\"tcp://192.0.2.2:7000\"]")).empty());
  CHECK(told(metrics + guard, metrics + with(guard, "web.pem", "next.pem")).empty());
}

TEST_CASE("in_force__what_a_router_cannot_take__is_told_key_by_key") {
  CHECK(told(device, with(device, "192.0.2.1", "192.0.2.9")) == Lines{"device.a.ip"});
  CHECK(told(device, with(device, "port = 7000", "port = 7001")) == Lines{"device.a.port"});
  CHECK(told(device, with(device, "ip = \"192.0.2.1\"", "interface = \"eth0\"")) == Lines{"device.a.interface", "device.a.ip"});
  CHECK(told(device, device + "[router]\nfragment = \"1MiB\"\nmemory = \"1GiB\"\n") == Lines{"router.fragment", "router.memory"});
  const std::string shm = "[device.s]\ntransport = \"shm\"\nname = \"one\"\n";
  CHECK(told(shm, with(shm, "one", "two")) == Lines{"device.s.name"});
}

TEST_CASE("in_force__metrics__take_a_restart_but_for_other_files") {
  CHECK(told("", metrics) == Lines{"metrics.listen"});
  CHECK(told(metrics, "") == Lines{"metrics.listen"});
  CHECK(told(metrics, with(metrics, "9464", "9465")) == Lines{"metrics.listen"});
  CHECK(told(metrics, metrics + "names = true\n") == Lines{"metrics.names"});
  CHECK(told(metrics, metrics + guard) == Lines{"metrics.names", "metrics.token"});  // a page behind a token has them
}

TEST_CASE("in_force__of_a_listener__no_change_of_a_device_is_taken") {
  CHECK(told(device, with(device, "1Gb/s", "2Gb/s"), Reload::listener) == Lines{"device.a.rate"});
  CHECK(told(device, with(device, "subnet = 1", "subnet = 2"), Reload::listener) == Lines{"device.a.subnet"});
  CHECK(told("", device, Reload::listener) == Lines{"f.toml: device.a: a new device takes a restart"});
  CHECK(told(device, "", Reload::listener) == Lines{"f.toml: device.a: to do without this device takes a restart"});
  CHECK(told(device, with(device, "device.a", "device.b"), Reload::listener) ==
        Lines{"f.toml: device.b: a new device takes a restart", "f.toml: device.a: to do without this device takes a restart"});
  CHECK(told(device, device + "[router]\nmemory = \"1GiB\"\n", Reload::listener).empty());  // of routers only
}

TEST_CASE("in_force__a_device_that_a_reload_brought__is_where_that_said") {
  InForce in_force(of(""), Reload::router);
  CHECK(in_force.left_of(of(device)).empty());
  CHECK(in_force.left_of(of(with(device, "port = 7000", "port = 7001"))) ==
        Lines{"f.toml: device.a.port: another value takes a restart"});
}

// What it is confined to was fixed before, and a device that cannot work must not look as if it could.
TEST_CASE("in_force__the_first_device_of_shm_or_verbs__cannot_begin_in_a_router_that_runs") {
  const std::string of_shm = "[device.here]\ntransport = \"shm\"\nname = \"r\"\nas = 1\nsubnet = 2\nrouter = []\n";
  const Config next = of(device + of_shm);
  CHECK(cannot_begin(next, false, true).value() ==
        "f.toml: device.here: the first device of shm takes a restart: this process gave up what one needs");
  CHECK_FALSE(cannot_begin(next, true, false));
  const Config cards = of(device + with(with(device, "[device.a]\ntransport = \"tcp\"", "[device.b]\ntransport = \"verbs\""),
                                        "subnet = 1", "subnet = 2"));
  CHECK(cannot_begin(cards, true, false));
  CHECK_FALSE(cannot_begin(cards, false, true));
  CHECK_FALSE(cannot_begin(of(device + "[device.here]\ntransport = \"shm\"\n"), false, false));  // it is not routed
}
