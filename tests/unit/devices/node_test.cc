// A process without a command line: a configuration file, a node of each of its devices, and a message between them. This
// program is linked with the room and what it stands on, and with nothing of app/main.
#include "app/devices/node.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "tests/unit/eth/own_lan.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::program {
namespace {

const char* two_devices =
    "[device.campus]\nip = \"127.0.0.1\"\nas = 1\nsubnet = 1\nrouter = []\n"
    "[device.lab]\nip = \"127.0.0.1\"\ndefault = true\n";

struct File {
  explicit File(const char* text) {
    const int fd = mkstemp(name.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(name) << text;
  }
  ~File() { ::unlink(name.c_str()); }
  std::string name = "/tmp/ccixfer-node-XXXXXX";
};

struct Program {
  Node node(const std::string& device, bool listening) {
    NodeOptions options;
    options.listening = listening;
    options.waker = waker;
    auto made = make_node(chosen_device(config, device).value(), options, entropy, counters);
    REQUIRE(made);
    return std::move(*made);
  }
  // Turns both until `wanted` comes to `node`, and waits for both at once.
  cci::Event until(Node& node, Node& other, cci::EventType wanted) {
    for (;;) {
      const Instant now = clock.now();
      other.endpoint->turn(now);
      node.endpoint->turn(now);
      while (auto event = node.endpoint->get_event()) {
        if (event->type == wanted) return std::move(*event);
      }
      waker->wait(clock.now(), std::min(node.endpoint->next_deadline(), other.endpoint->next_deadline()));
    }
  }
  const File file{two_devices};
  const Config config = load_config(file.name).value();
  host::SystemClock clock;
  host::SystemEntropy entropy;
  Counters counters;
  const std::shared_ptr<host::Waker> waker = host::Waker::create(host::Waits::inside).value();
};

}  // namespace

TEST_CASE("node__two_of_a_configuration_file__a_message_crosses_without_a_command") {
  Program program;
  // The second one routes: its own subnet is reached without a router.
  const bool routed = GENERATE(false, true);
  Node listener = program.node(routed ? "campus" : "lab", true);
  Node dialler = program.node(routed ? "campus" : "lab", false);
  REQUIRE(listener.uris.size() == (routed ? 2u : 1u));
  CHECK(dialler.uris.empty());
  REQUIRE(dialler.endpoint->connect(listener.uris.front(), {}));
  cci::Event request = program.until(listener, dialler, cci::EventType::connect_request);
  REQUIRE(listener.endpoint->accept(request, 1) == Status::success);
  const cci::Event connected = program.until(dialler, listener, cci::EventType::connect);
  REQUIRE(connected.status == Status::success);
  REQUIRE(dialler.endpoint->send(connected.connection, as_bytes("hello"), 1) == Status::success);
  CHECK(as_text(program.until(listener, dialler, cci::EventType::receive).data()) == "hello");
}

TEST_CASE("node__of_a_device_with_a_subnet__is_named_by_its_routed_address_first") {
  Program program;
  const DeviceConfig device = chosen_device(program.config, "campus").value();
  NodeOptions options;
  options.listening = true;
  for (const bool bare : {false, true}) {
    options.bare = bare;
    const auto node = make_node(device, options, program.entropy, program.counters).value();
    REQUIRE(node.uris.size() == (bare ? 1u : 2u));
    CHECK(node.uris.back().rfind("tcp://127.0.0.1:", 0) == 0);
    if (!bare) CHECK(node.uris.front().rfind("cci://1:1:127.0.0.1:", 0) == 0);
  }
  options.bare = options.listening = false;
  CHECK(make_node(device, options, program.entropy, program.counters).value().uris.empty());  // nobody can dial it
}

TEST_CASE("node__with_a_passed_listener__is_found_there_and_routed_by_its_address") {
  Program program;
  NodeOptions options;
  options.listening = true;
  const host::Descriptor passed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::listen(passed.get(), 16) == 0);  // at a port that the kernel chooses, of every address
  options.passed_listener = passed.get();
  DeviceConfig device = chosen_device(program.config, "campus").value();
  device.ip = "192.0.2.1";  // nobody's: it is not looked at
  const Node node = make_node(device, options, program.entropy, program.counters).value();
  REQUIRE(node.uris.size() >= 2);
  sockaddr_in at{};
  socklen_t size = sizeof at;
  REQUIRE(::getsockname(passed.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  const std::string port = ":" + std::to_string(ntohs(at.sin_port));
  CHECK(node.uris.front().rfind("cci://1:1:", 0) == 0);
  for (const std::string& uri : node.uris) CHECK(uri.ends_with(port));

  options.listen = "127.0.0.1:0";
  const auto both = make_node(device, options, program.entropy, program.counters);
  REQUIRE_FALSE(both);
  CHECK(both.error().kind == ErrorKind::usage);
  options.listen.reset();
  device.transport = "udp";
  const auto other = make_node(device, options, program.entropy, program.counters);
  REQUIRE_FALSE(other);
  CHECK(other.error().kind == ErrorKind::usage);
  CHECK(other.error().message.find("device campus is of udp") != std::string::npos);
}

TEST_CASE("node__of_udp__two_of_them_talk_and_prove_themselves_where_that_is_wanted") {
  Program program;
  DeviceConfig device;
  device.name = "wan";
  device.transport = "udp";
  device.ip = "127.0.0.1";
  NodeOptions options;
  options.waker = program.waker;
  Node dialler = make_node(device, options, program.entropy, program.counters).value();
  options.listening = true;
  Node listener = make_node(device, options, program.entropy, program.counters).value();
  REQUIRE(listener.uris.size() == 1);
  CHECK(listener.uris.front().rfind("udp://127.0.0.1:", 0) == 0);
  REQUIRE(dialler.endpoint->connect(listener.uris.front(), {}));
  cci::Event request = program.until(listener, dialler, cci::EventType::connect_request);
  REQUIRE(listener.endpoint->accept(request, 1) == Status::success);
  CHECK(program.until(dialler, listener, cci::EventType::connect).status == Status::success);

  // With a HopTrust both ends are proved.
  const auto trust = std::make_shared<ccixfer::testing::OwnTrust>();
  options.trust = trust;
  Node proved = make_node(device, options, program.entropy, program.counters).value();
  options.listening = false;
  Node proving = make_node(device, options, program.entropy, program.counters).value();
  REQUIRE(proving.endpoint->connect(proved.uris.front(), {}));
  cci::Event of_proved = program.until(proved, proving, cci::EventType::connect_request);
  CHECK(of_proved.peer().proved == trust->name());
  options.listening = true;
  options.trust = nullptr;
  options.listen = "tcp://127.0.0.1:0";
  const auto other = make_node(device, options, program.entropy, program.counters);
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "--listen tcp://127.0.0.1:0: device wan is of udp: name one of tcp (--device)");
}

TEST_CASE("node__of_shm__two_of_them_talk__and_a_name_that_is_taken_is_said") {
  Program program;
  DeviceConfig device;
  device.name = "near";
  device.transport = "shm";
  NodeOptions options;
  options.waker = program.waker;
  Node dialler = make_node(device, options, program.entropy, program.counters).value();
  CHECK(dialler.uris.empty());
  CHECK(shares_memory());
  options.listening = true;
  Node listener = make_node(device, options, program.entropy, program.counters).value();
  REQUIRE(listener.uris.size() == 1);
  REQUIRE(dialler.endpoint->connect(listener.uris.front(), {}));
  cci::Event request = program.until(listener, dialler, cci::EventType::connect_request);
  REQUIRE(listener.endpoint->accept(request, 1) == Status::success);
  CHECK(program.until(dialler, listener, cci::EventType::connect).status == Status::success);
  options.listen = listener.uris.front();
  const auto taken = make_node(device, options, program.entropy, program.counters);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().kind == ErrorKind::network);
  CHECK(taken.error().message == "cannot listen on " + listener.uris.front() +
                                     ": the name is in use: listen at another name (--listen, or the device's name)");
  device.shm_name = listener.uris.front().substr(6);
  options.listen.reset();
  CHECK_FALSE(make_node(device, options, program.entropy, program.counters));  // the device's name counts too
}

// On an Ethernet of this test's own, of which each node has a port.
TEST_CASE("node__of_eth__two_of_them_talk__where_its_interface_or_the_address_says") {
  Program program;
  DeviceConfig device;
  device.name = "lan";
  device.transport = "eth";
  device.interface = testing::lan_port(0);
  NodeOptions options;
  options.waker = program.waker;
  Node dialler = make_node(device, options, program.entropy, program.counters).value();
  CHECK(dialler.uris.empty());
  const std::string place = "eth://" + testing::lan_mac(1) + ":7";
  options.listening = true;
  options.listen = place;
  const auto elsewhere = make_node(device, options, program.entropy, program.counters);
  REQUIRE_FALSE(elsewhere);
  CHECK(elsewhere.error().message == "port0 has the MAC address " + testing::lan_mac(0) + ", not " + testing::lan_mac(1));
  device.interface.clear();  // the MAC address says which
  Node listener = make_node(device, options, program.entropy, program.counters).value();
  CHECK(listener.uris == std::vector<std::string>{place});
  REQUIRE(dialler.endpoint->connect(listener.uris.front(), {}));
  cci::Event request = program.until(listener, dialler, cci::EventType::connect_request);
  REQUIRE(listener.endpoint->accept(request, 1) == Status::success);
  CHECK(program.until(dialler, listener, cci::EventType::connect).status == Status::success);

  options.listen = "0.0.0.0:7";
  CHECK(make_node(device, options, program.entropy, program.counters).error().message ==
        "--listen 0.0.0.0:7: device lan is of eth: write eth://MAC:ID");
  options.listen = std::nullopt;
  device.interface = testing::lan_port(2);
  device.port = 9;
  device.subnet = routing::SubnetId{1, 4};
  const Node of_file = make_node(device, options, program.entropy, program.counters).value();
  CHECK(of_file.uris ==
        std::vector<std::string>{"cci://1:4:[" + testing::lan_mac(2) + "]:9", "eth://" + testing::lan_mac(2) + ":9"});
}

TEST_CASE("node__which_device__by_the_transport_of_what_is_dialled_or_listened_on") {
  const Config none;
  CHECK(chosen_device(none, std::nullopt).value().transport == "tcp");
  CHECK(chosen_device(none, std::nullopt, "udp").value().transport == "udp");
  const Config both =
      parse_config("f.toml",
                   "[device.a]\nip = \"127.0.0.1\"\ndefault = true\n[device.b]\ntransport = \"udp\"\nip = \"127.0.0.1\"\n")
          .value();
  CHECK(chosen_device(both, std::nullopt).value().name == "a");
  CHECK(chosen_device(both, std::nullopt, "tcp").value().name == "a");
  CHECK(chosen_device(both, std::nullopt, "udp").value().name == "b");
  CHECK(chosen_device(both, "a", "udp").value().name == "a");  // whoever names one means it
  CHECK(check_target(chosen_device(both, "a", "udp").value(), split_target("udp://h:1").value()).error().message ==
        "address of another transport: udp://h:1: device a is of tcp: name one of udp (--device)");
  const Config tcp = parse_config("f.toml", "[device.a]\nip = \"127.0.0.1\"\n").value();
  const DeviceConfig any = chosen_device(tcp, std::nullopt, "udp").value();
  CHECK(any.name == "any");
  CHECK(any.transport == "udp");
  CHECK(transport_of(split_target("udp://h:1").value()) == "udp");
  CHECK(transport_of(split_target("cci://1:1:h:1").value()).empty());
  CHECK(transport_of(std::optional<std::string>("udp://h:1")) == "udp");
  CHECK(transport_of(std::optional<std::string>("h:1")).empty());
  CHECK(transport_of(std::optional<std::string>()).empty());
}

// Endpoints of verbs are made in a machine that has a card: tests/rdma.
TEST_CASE("node__of_verbs__with_and_without_trust__needs_a_card") {
  Program program;
  DeviceConfig device;
  device.name = "lan";
  device.transport = "verbs";
  device.ip = "203.0.113.77";  // of no host
  NodeOptions options;
  const auto said = [&] {
    const auto node = make_node(device, options, program.entropy, program.counters);
    REQUIRE_FALSE(node);
    return std::string(node.error().kind == ErrorKind::usage ? "usage" : "network") + ": " + node.error().message;
  };
  for (const auto& [listens, proves] : {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
    options.listening = listens;
    options.trust = proves ? std::make_shared<testing::OwnTrust>() : nullptr;
    if (!verbs::is_built_in()) {
      CHECK(said().rfind("usage: device lan: this program was built without verbs: ", 0) == 0);
      continue;
    }
    const std::string without_card = said();
    CAPTURE(without_card);
    CHECK((without_card.rfind("network: device lan: no RDMA device (InfiniBand or RoCE) has 203.0.113.77: ", 0) == 0 ||
           without_card.rfind("network: device lan: verbs cannot be used here: ", 0) == 0));
  }
  CHECK_FALSE(uses_cards());
}

TEST_CASE("node__that_cannot_be_made__why_and_what_to_do") {
  Program program;
  const auto problem = [&](const DeviceConfig& device, const std::optional<std::string>& listen) {
    NodeOptions options;
    options.listening = true;
    options.listen = listen;
    const auto node = make_node(device, options, program.entropy, program.counters);
    REQUIRE_FALSE(node);
    return std::string(node.error().kind == ErrorKind::usage ? "usage" : "network") + ": " + node.error().message;
  };
  DeviceConfig device = chosen_device(program.config, std::nullopt).value();
  CHECK(device.name == "lab");
  CHECK(problem(device, "nonsense").rfind("usage: ", 0) == 0);
  CHECK(problem(device, "203.0.113.77:1").rfind("network: ", 0) == 0);
  CHECK(chosen_device(program.config, "none").error().message == "no such device: none: see ccixfer devices");
  const Target target = split_target("cci://1:1:h:1").value();
  CHECK_FALSE(check_target(chosen_device(program.config, "lab").value(), target));
  CHECK(check_target(chosen_device(program.config, "campus").value(), target));
}

}  // namespace ccixfer::program
