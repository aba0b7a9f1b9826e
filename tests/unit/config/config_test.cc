// The configuration file: every key, and each mistake by file, line and key.
#include "app/config/config.h"

#include <catch2/catch.hpp>

namespace ccixfer::program {
namespace {

std::string complaint(const std::string& text) {
  const auto config = parse_config("bad.toml", text);
  if (config) return "";
  CHECK(config.error().kind == ErrorKind::usage);
  CHECK(config.error().message.find('\n') == std::string::npos);
  return config.error().message;
}
bool starts(const std::string& text, const std::string& with) {
  INFO(text);
  const bool yes = text.rfind(with, 0) == 0;
  CHECK(yes);
  return yes;
}

const char* whole = R"(
[device.campus]
transport = "tcp"
ip = "192.0.2.10"
port = 7000
as = 3
subnet = 1
router = ["tcp://192.0.2.1:7000", "tcp://192.0.2.2:7000"]
rate = "10Gb/s"
capabilities = ["zero-copy", "os-bypass"]
priority = 60
default = true
transit = false
wan = true
wan_to = [4]

[device.second]
interface = "eth0"

[router]
metric = ["latency", "hops"]
fragment = "1MiB"
memory = "1GiB"
[[router.static]]
from = 3
to = "4:7"
via = [3, 1]
)";

}  // namespace

TEST_CASE("config__every_key__is_read") {
  const auto config = parse_config("f.toml", whole);
  REQUIRE(config);
  CHECK(config->warnings.empty());
  REQUIRE(config->devices.size() == 2);
  const DeviceConfig& device = config->devices[0];
  CHECK(device.name == "campus");
  CHECK(device.ip == "192.0.2.10");
  CHECK(device.port == 7000);
  CHECK(device.subnet == routing::SubnetId{3, 1});
  CHECK(device.routers == std::vector<std::string>{"tcp://192.0.2.1:7000", "tcp://192.0.2.2:7000"});
  CHECK(device.rate_bits_per_s == 10'000'000'000u);
  CHECK(device.capabilities == 3);
  CHECK(device.priority == 60);
  CHECK(device.is_default);
  CHECK_FALSE(device.transit);
  CHECK(device.wan);
  CHECK(device.wan_to == std::vector<uint32_t>{4});
  CHECK(config->devices[1].interface == "eth0");
  CHECK_FALSE(config->devices[1].subnet);
  CHECK(config->router.metric == std::vector<std::string>{"latency", "hops"});
  CHECK(config->router.fragment_bytes == 1u << 20);
  CHECK(config->router.memory_bytes == 1u << 30);
  REQUIRE(config->router.static_routes.size() == 1);
  CHECK(config->router.static_routes[0].to_as == 4u);
  CHECK(config->router.static_routes[0].to_subnet == 7);
  CHECK(config->router.static_routes[0].via == std::vector<uint32_t>{3, 1});
}

TEST_CASE("config__bad_values__name_file_line_and_key") {
  starts(complaint("[device.x]\ntransport = \"tcp\"\nport = \"many\"\n"), "bad.toml:3: device.x.port: ");
  starts(complaint("[device.x]\ntransport = \"carrier pigeon\"\n"), "bad.toml:2: device.x.transport: ");
  starts(complaint("\n[divice.x]\ntransport = \"tcp\"\n"), "bad.toml:2: divice: ");
  starts(complaint("colour = 3\n"), "bad.toml:1: colour: ");
  starts(complaint("[router]\nmetrics = []\n"), "bad.toml:2: router.metrics: ");
  starts(complaint("[router]\nmetric = [\"speed\"]\n"), "bad.toml:2: router.metric: ");
  starts(complaint("[device.x]\nport = 65536\n"), "bad.toml:2: device.x.port: ");
  starts(complaint("[device.x]\npriority = -1\n"), "bad.toml:2: device.x.priority: ");
  starts(complaint("[device.x]\nrate = \"10\"\n"), "bad.toml:2: device.x.rate: ");
  starts(complaint("[device.x]\nip = \"example.org\"\n"), "bad.toml:2: device.x.ip: ");
  starts(complaint("[device.x]\nrouter = [\"tcp://h\"]\n"), "bad.toml:2: device.x.router: ");
  starts(complaint("[device.x]\ncapabilities = [\"magic\"]\n"), "bad.toml:2: device.x.capabilities: ");
  starts(complaint("[device.x]\nwan_to = [1]\n"), "bad.toml:2: device.x.wan_to: ");
  starts(complaint("[[router.static]]\nfrom = 1\nto = \"x\"\nvia = [1]\n"), "bad.toml:3: router.static.to: ");
  starts(complaint("[[router.static]]\nfrom = 1\nvia = [1]\n"), "bad.toml:1: router.static.to: ");
  starts(complaint("[device]\nx = 3\n"), "bad.toml:2: device.x: ");
}

TEST_CASE("config__no_toml__names_file_and_line") {
  starts(complaint("[device.x]\nport = = 3\n"), "bad.toml:2: port: ");
  starts(complaint("[device.x]\nport = 3\nport = 4\n"), "bad.toml:");
  CHECK_FALSE(complaint(std::string("\x00\x01\xff", 3)).empty());
}

// The first line of what the parser says may have no words, or no colon.
TEST_CASE("config__no_toml__the_parsers_reason_is_said") {
  const std::string after = ": correct the TOML";
  CHECK(complaint("[device.x]\ntransport = tcp\n") == "bad.toml:2: transport: this is no value, and text stands in quotes" + after);
  CHECK(complaint("[device.x]\nport = 0x\n") == "bad.toml:2: port: this is no value, and text stands in quotes" + after);
  CHECK(complaint("[device.x]\nport = 1 as = 2\n") == "bad.toml:2: port: expected newline, but got 'a'." + after);
  CHECK(complaint("[device.x]\nport = \n") == "bad.toml:2: port: missing value after key-value separator '='" + after);
}

// A configuration may come from elsewhere, and a terminal obeys bytes. Found by fuzzing.
TEST_CASE("config__keys_and_names_with_control_characters__are_told_in_printable_words") {
  const std::string odd = "\"\\u001b[2J\\n\"";  // in TOML: a quoted key with an escape sequence and a new line
  const std::string shown = "%1B[2J%0A";
  starts(complaint(odd + " = 1\n"), "bad.toml:1: " + shown + ": ");
  starts(complaint("[router]\n" + odd + " = 1\n"), "bad.toml:2: router." + shown + ": ");
  starts(complaint("[[router.static]]\n" + odd + " = 1\n"), "bad.toml:2: router.static." + shown + ": ");
  starts(complaint("[device]\n" + odd + " = 1\n"), "bad.toml:2: device." + shown + ": ");
  starts(complaint("[device." + odd + "]\nport = -1\n"), "bad.toml:2: device." + shown + ".port: ");
  const std::string two = complaint("[device." + odd + "]\nip=\"10.0.0.1\"\nport=7\n[device.z]\nip=\"10.0.0.1\"\nport=7\n");
  CHECK(two.find("device " + shown + " listens there") != std::string::npos);
  const auto config = parse_config("f.toml", "[device.x]\n" + odd + " = 1\n");
  REQUIRE(config);
  REQUIRE(config->warnings.size() == 1);
  starts(config->warnings[0], "f.toml:2: device.x." + shown + ": ");
}

// The parser calls itself once a level: such a file must not end the program.
// toml11 reads beyond its memory for some of these (ASan tells); also in a scenario: the tree is read in one place.
TEST_CASE("config__not_utf8__names_file_and_line") {
  for (const std::string bad :
       {"'\xed\xed' = 1\n", "'\xff\n\xff' = 1", "[\"\xff\"]\n", "a = \"\xc3\"", "a = '\xf4\x90\x80\x80'", "# \xc0\xaf\n"}) {
    const auto config = parse_config("x.toml", "[device.d]\n" + bad);
    REQUIRE(!config);
    CHECK(config.error().kind == ErrorKind::usage);
    CHECK(config.error().message.rfind("x.toml:2: ", 0) == 0);
    CHECK(config.error().message.find("is not UTF-8") != std::string::npos);
  }
  CHECK(parse_config("x.toml", "# \xc3\xa9t\xc3\xa9\n[device.d]\ntransport = \"tcp\"\nip = \"127.0.0.1\"\n"));
}

TEST_CASE("config__nested_without_end__is_refused_and_honest_nesting_is_not") {
  const auto deep = [](const std::string& level) {
    std::string text = "\n[router]\nmetric = ";
    while (text.size() < 1'000'000) text += level;
    return text;
  };
  starts(complaint(deep("[")), "bad.toml:3: nested ");
  starts(complaint(deep("{a=")), "bad.toml:3: nested ");
  starts(complaint(deep("[\n")), "bad.toml:35: nested ");
  std::string dotted = "a";
  while (dotted.size() < 1'000'000) dotted += " . a";
  starts(complaint(dotted + " = 1"), "bad.toml:1: nested ");
  starts(complaint("[" + dotted + "]"), "bad.toml:1: nested ");
  const std::string quoted(1000, '[');
  for (const std::string& text :
       {"# " + quoted, "# it's\n# " + quoted, "\"" + quoted + "\\\"" + quoted + "\" = 1", "'" + quoted + "' = 1",
        "a = \"\"\"\n\"" + quoted + "\"\"\"", "a = \'\'\'\n" + quoted + "\'\'\'"}) {
    INFO(text);
    const auto config = parse_config("f.toml", text);
    CHECK((config || config.error().message.find("nested") == std::string::npos));
  }
}

TEST_CASE("config__clashes_between_devices__are_errors") {
  starts(
      complaint(
          "[device.a]\nas=1\nsubnet=1\nrouter=[]\ntransport=\"tcp\"\n[device.b]\nas=1\nsubnet=1\nrouter=[]\ntransport=\"udp\"\n"),
      "bad.toml:8: device.b.subnet: ");
  starts(complaint("[device.a]\ndefault = true\n[device.b]\ndefault = true\n"), "bad.toml:4: device.b.default: ");
  starts(complaint("[device.a]\nip=\"10.0.0.1\"\nport=7\n[device.b]\nip=\"10.0.0.1\"\nport=7\n"), "bad.toml:6: device.b.port: ");
  starts(complaint("[device.a]\nip=\"10.0.0.1\"\ninterface=\"eth0\"\n"), "bad.toml:2: device.a.ip: ");
  starts(complaint("[device.a]\ntransport=\"udp\"\nrouter=[\"tcp://10.0.0.1:7\"]\n"), "bad.toml:3: device.a.router: ");
}

TEST_CASE("config__devices_that_differ_in_one_thing__do_not_clash") {
  const auto both = [](const std::string& a, const std::string& b) {
    return parse_config("f.toml", "[device.a]\n" + a + "[device.b]\n" + b).has_value();
  };
  const std::string there = "ip=\"10.0.0.1\"\nport=7\n";
  CHECK_FALSE(both(there, there));
  CHECK(both(there, "ip=\"10.0.0.2\"\nport=7\n"));
  CHECK(both(there, "ip=\"10.0.0.1\"\nport=8\n"));
  CHECK(both(there, there + "transport=\"udp\"\n"));
  CHECK(both("ip=\"10.0.0.1\"\n", "ip=\"10.0.0.1\"\n"));  // each has a port that is free
  CHECK_FALSE(both("interface=\"x\"\nport=7\n", "interface=\"x\"\nport=7\n"));
  CHECK(both("interface=\"x\"\nport=7\n", "interface=\"y\"\nport=7\n"));
  const std::string subnet = "as=1\nsubnet=1\nrouter=[]\n", udp = "transport=\"udp\"\n";
  CHECK_FALSE(both(subnet, subnet + udp));
  CHECK(both(subnet + udp, subnet + udp));
  CHECK(both(subnet, "as=2\nsubnet=1\nrouter=[]\n" + udp));
  CHECK(both(subnet, "as=1\nsubnet=2\nrouter=[]\n" + udp));
  CHECK(both("", udp));  // of no subnet
  CHECK(both("default=true\n", "default=false\n"));
}

TEST_CASE("config__unknown_key_of_a_device__is_a_warning_with_file_line_and_key") {
  const auto config = parse_config("f.toml", "[device.x]\nport = 1\nflavour = \"mint\"\n");
  REQUIRE(config);
  REQUIRE(config->warnings.size() == 1);
  starts(config->warnings[0], "f.toml:3: device.x.flavour: ");
}

TEST_CASE("config__routing_keys_in_part__no_routing_and_a_warning") {
  const auto config = parse_config("f.toml", "[device.x]\nas = 1\nsubnet = 2\n");
  REQUIRE(config);
  CHECK_FALSE(config->devices[0].subnet);
  REQUIRE(config->warnings.size() == 1);
  CHECK(config->warnings[0].find("no routing") != std::string::npos);
  const auto empty_list = parse_config("f.toml", "[device.x]\nas = 1\nsubnet = 2\nrouter = []\n");
  REQUIRE(empty_list);
  CHECK(empty_list->devices[0].subnet == routing::SubnetId{1, 2});
  CHECK(empty_list->warnings.empty());
}

TEST_CASE("config__search_order__option_then_environment_then_home_then_system") {
  static std::string present;
  static bool with_variable = false;
  const auto environment = [](const char* name) -> const char* {
    const std::string wanted = name;
    if (wanted == "CCI_CONFIG") return with_variable ? "/env.toml" : nullptr;
    if (wanted == "XDG_CONFIG_HOME") return "/xdg";
    return nullptr;
  };
  const auto exists = [](const std::string& path) { return path == present; };
  with_variable = true;
  CHECK(find_config("/option.toml", environment, exists) == "/option.toml");
  CHECK(find_config(std::nullopt, environment, exists) == "/env.toml");
  with_variable = false;
  present = "/xdg/ccixfer/ccixfer.toml";
  CHECK(find_config(std::nullopt, environment, exists) == present);
  present = "/etc/ccixfer/ccixfer.toml";
  CHECK(find_config(std::nullopt, environment, exists) == present);
  present.clear();
  CHECK(find_config(std::nullopt, environment, exists).empty());
}

TEST_CASE("config__file_that_is_not_there__usage") {
  const auto config = load_config("/nowhere/at/all.toml");
  REQUIRE_FALSE(config);
  CHECK(config.error().kind == ErrorKind::usage);
  CHECK(config.error().message.find("/nowhere/at/all.toml") != std::string::npos);
}

}  // namespace ccixfer::program
