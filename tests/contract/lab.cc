#include "tests/contract/lab.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/contract/datagram_lab.h"
#include "tests/contract/rdma_lab.h"
#include "tests/contract/routed_lab.h"
#include "tests/contract/sim_lab.h"
#include "tests/contract/socket_lab.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::contract {

uint64_t SeededEntropy::next_u64() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void Node::collect() {
  if (endpoint == nullptr) return;
  while (std::optional<Event> event = endpoint->get_event()) events.push_back(std::move(*event));
}

std::optional<Event> Node::take(EventType type) {
  for (auto it = events.begin(); it != events.end(); ++it) {
    if (it->type != type) continue;
    std::optional<Event> event{std::move(*it)};
    events.erase(it);
    return event;
  }
  return std::nullopt;
}

size_t Node::count(EventType type) const {
  size_t count = 0;
  for (const Event& event : events) count += event.type == type ? 1u : 0u;
  return count;
}

ViolationWatch::~ViolationWatch() {
  for (const std::string& violation : lab_.violations()) FAIL_CHECK(violation);
}

std::shared_ptr<connection::HopTrust> lab_trust(bool secured) {
  return secured ? std::make_shared<ccixfer::testing::OwnTrust>() : nullptr;
}

namespace {
std::vector<std::string> every_lab(bool routed) {
  std::vector<std::string> names = {
      "tcp",      "sim",         "sim 2",    "sim 3",       "tcp-secured",      "sim-secured",        "sim-secured 2",    "rdma",
      "sim-rdma", "sim-rdma 2",  "datagram", "datagram 2",  "datagram 3",       "rdma-secured",       "sim-rdma-secured", "udp",
      "shm",      "shm-secured", "eth",      "eth-secured", "datagram-secured", "datagram-secured 2", "udp-secured"};
  if (routed)
    names.insert(names.end(), {"direct",
                               "routed",
                               "routed 2",
                               "routed3",
                               "routed-tcp",
                               "routed3-tcp",
                               "mixed",
                               "direct-datagram",
                               "routed-datagram",
                               "routed-datagram 2",
                               "routed3-datagram",
                               "mixed-datagram",
                               "routed-rdma",
                               "mixed-rdma",
                               "direct-sim-rdma",
                               "routed-sim-rdma",
                               "mixed-sim-rdma",
                               "routed-sim-rdma-secured",
                               "direct-secured",
                               "routed-secured",
                               "routed-secured 2",
                               "routed-tcp-secured",
                               "direct-udp",
                               "routed-udp",
                               "mixed-udp",
                               "direct-shm",
                               "routed-shm",
                               "mixed-shm",
                               "direct-eth",
                               "routed-eth",
                               "mixed-eth",
                               "routed-datagram-secured",
                               "routed-shm-secured",
                               "mixed-eth-secured",
                               "mixed-secured"});
  return names;
}

// The third of the suite that runs in this lab.
std::string_view part_of(const std::string& name) {
  constexpr std::array sockets{"tcp", "udp", "shm", "eth"};
  const std::string network = name.substr(0, name.find('-'));
  if (std::ranges::find(sockets, network) != sockets.end()) return "sockets";
  const std::vector<std::string> native = every_lab(false);
  return std::ranges::find(native, name) == native.end() ? "routed" : "native";
}

}  // namespace

std::vector<std::string> lab_names(bool routed) {
  std::vector<std::string> names = every_lab(routed);
  const char* chosen = std::getenv("CCIXFER_LABS");
  if (chosen == nullptr) return names;
  const std::string_view wanted = chosen;
  const std::string list = fmt::format(",{},", wanted);
  const bool is_part = wanted == "native" || wanted == "sockets" || wanted == "routed";
  if (!is_part) {  // where there is an RDMA card, and so only when asked for
    names.insert(names.end(), {"verbs", "verbs-secured"});
    if (routed) names.insert(names.end(), {"direct-verbs", "routed-verbs", "mixed-verbs"});
  }
  std::erase_if(names, [&](const std::string& name) {
    return is_part ? part_of(name) != wanted : list.find(fmt::format(",{},", name)) == std::string::npos;
  });
  if (names.empty()) names.emplace_back();
  return names;
}

std::unique_ptr<Lab> make_lab(const std::string& name) {
  if (name == "tcp") return make_socket_lab(Sockets::tcp);
  if (name == "udp-secured") return make_socket_lab(Sockets::udp_secured);
  if (name == "udp") return make_socket_lab(Sockets::udp);
  if (name == "shm") return make_socket_lab(Sockets::shm);
  if (name == "shm-secured") return make_socket_lab(Sockets::shm_secured);
  if (name == "eth") return make_socket_lab(Sockets::eth);
  if (name == "eth-secured") return make_socket_lab(Sockets::eth_secured);
  if (name == "verbs") return make_socket_lab(Sockets::verbs);
  if (name == "verbs-secured") return make_socket_lab(Sockets::verbs_secured);
  const size_t space = name.find(' ');
  const uint64_t seed = space == std::string::npos ? 1 : std::stoull(name.substr(space));
  const std::string kind = name.substr(0, space);
  if (kind == "rdma") return make_sim_lab(seed, true);
  if (kind == "tcp-secured") return make_socket_lab(Sockets::tcp_secured);
  if (kind == "sim-secured") return make_sim_lab(seed, false, true);
  if (kind == "rdma-secured") return make_sim_lab(seed, true, true);
  if (kind == "direct-secured") return make_routed_lab(seed, {Subnet::sim}, {}, true);
  if (kind == "routed-secured") return make_routed_lab(seed, {Subnet::sim, Subnet::sim}, {}, true);
  if (kind == "routed-tcp-secured") return make_routed_lab(seed, {Subnet::tcp, Subnet::tcp}, {}, true);
  if (kind == "datagram-secured") return make_datagram_lab(seed, true);
  if (kind == "datagram") return make_datagram_lab(seed);
  if (kind == "direct") return make_routed_lab(seed, {Subnet::sim});
  if (kind == "routed") return make_routed_lab(seed, {Subnet::sim, Subnet::sim});
  if (kind == "bulk") return make_routed_lab(seed, {Subnet::sim, Subnet::sim}, {4u << 20, 4});
  if (kind == "routed3") return make_routed_lab(seed, {Subnet::sim, Subnet::sim, Subnet::sim, Subnet::sim});
  if (kind == "routed-tcp") return make_routed_lab(seed, {Subnet::tcp, Subnet::tcp});
  if (kind == "routed3-tcp") return make_routed_lab(seed, {Subnet::tcp, Subnet::tcp, Subnet::tcp, Subnet::tcp});
  if (kind == "mixed") return make_routed_lab(seed, {Subnet::sim, Subnet::tcp, Subnet::sim});
  if (kind == "direct-udp") return make_routed_lab(seed, {Subnet::udp});
  if (kind == "routed-udp") return make_routed_lab(seed, {Subnet::udp, Subnet::udp});
  if (kind == "mixed-udp") return make_routed_lab(seed, {Subnet::sim, Subnet::udp, Subnet::tcp, Subnet::udp});
  if (kind == "direct-shm") return make_routed_lab(seed, {Subnet::shm});
  if (kind == "routed-shm") return make_routed_lab(seed, {Subnet::shm, Subnet::shm});
  if (kind == "mixed-shm") return make_routed_lab(seed, {Subnet::shm, Subnet::tcp, Subnet::udp});
  if (kind == "direct-eth") return make_routed_lab(seed, {Subnet::eth});
  if (kind == "routed-eth") return make_routed_lab(seed, {Subnet::eth, Subnet::eth});
  if (kind == "mixed-eth") return make_routed_lab(seed, {Subnet::shm, Subnet::eth, Subnet::tcp});
  if (kind == "direct-verbs") return make_routed_lab(seed, {Subnet::verbs});
  if (kind == "routed-verbs") return make_routed_lab(seed, {Subnet::verbs, Subnet::verbs});
  if (kind == "mixed-verbs") return make_routed_lab(seed, {Subnet::verbs, Subnet::tcp, Subnet::udp});
  const Subnet lossy = Subnet::datagram;
  if (kind == "routed-datagram-secured") return make_routed_lab(seed, {lossy, lossy}, {}, true);
  if (kind == "routed-shm-secured") return make_routed_lab(seed, {Subnet::shm, Subnet::shm}, {}, true);
  if (kind == "mixed-eth-secured") return make_routed_lab(seed, {Subnet::shm, Subnet::eth, Subnet::tcp}, {}, true);
  if (kind == "mixed-secured") return make_routed_lab(seed, {lossy, Subnet::tcp, Subnet::udp}, {}, true);
  if (kind == "direct-datagram") return make_routed_lab(seed, {lossy});
  if (kind == "routed-datagram") return make_routed_lab(seed, {lossy, lossy});
  if (kind == "routed3-datagram") return make_routed_lab(seed, {lossy, lossy, lossy, lossy});
  if (kind == "mixed-datagram") return make_routed_lab(seed, {lossy, Subnet::sim, lossy, Subnet::sim});
  if (kind == "routed-rdma") return make_routed_lab(seed, {Subnet::rdma, Subnet::rdma});
  if (kind == "sim-rdma") return make_rdma_lab(seed);
  if (kind == "sim-rdma-secured") return make_rdma_lab(seed, true);
  if (kind == "routed-sim-rdma-secured") return make_routed_lab(seed, {Subnet::sim_rdma, Subnet::sim_rdma}, {}, true);
  if (kind == "direct-sim-rdma") return make_routed_lab(seed, {Subnet::sim_rdma});
  if (kind == "routed-sim-rdma") return make_routed_lab(seed, {Subnet::sim_rdma, Subnet::sim_rdma});
  if (kind == "mixed-sim-rdma") return make_routed_lab(seed, {Subnet::sim_rdma, Subnet::sim, Subnet::sim_rdma, Subnet::datagram});
  if (kind == "mixed-rdma") return make_routed_lab(seed, {Subnet::rdma, Subnet::sim, Subnet::rdma});
  REQUIRE(kind == "sim");
  return make_sim_lab(seed);
}

Pair connect(Lab& lab, Node& dialler, Node& acceptor, const cci::ConnectOptions& options) {
  const Result<Connection> dialled = dialler.endpoint->connect(acceptor.endpoint->uri(), options);
  REQUIRE(dialled);
  std::optional<Event> request = wait_event(lab, acceptor, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(acceptor.endpoint->accept(*request, 7) == Status::success);
  request.reset();
  std::optional<Event> connected = wait_event(lab, dialler, EventType::connect);
  REQUIRE(connected);
  INFO(connected->reason);
  REQUIRE(connected->status == Status::success);
  std::optional<Event> accepted = wait_event(lab, acceptor, EventType::accept);
  REQUIRE(accepted);
  REQUIRE(accepted->status == Status::success);
  REQUIRE(accepted->context == 7);
  return {dialler, acceptor, connected->connection, accepted->connection};
}

ports::OperationResult wait_ending(Lab& lab, Node& node, uint64_t context) {
  ports::OperationResult ending;
  const bool ended = lab.run([&] {
    for (auto it = node.events.begin(); it != node.events.end(); ++it) {
      if (it->type != EventType::send || it->context != context) continue;
      ending = it->ending();
      node.events.erase(it);
      return true;
    }
    return false;
  });
  REQUIRE(ended);
  return ending;
}

Status wait_send(Lab& lab, Node& node, uint64_t context) { return wait_ending(lab, node, context).status; }

std::optional<Event> wait_event(Lab& lab, Node& node, EventType type) {
  static_cast<void>(lab.run([&] { return node.has(type); }));
  return node.take(type);
}

bool readable(const Node& node, int timeout_ms) {
  pollfd handle{node.endpoint->os_handle(), POLLIN, 0};
  return ::poll(&handle, 1, timeout_ms) == 1;
}

uint32_t number_of(const Event& event) {
  uint32_t value = 0;
  REQUIRE(event.data().size() == sizeof value);
  std::memcpy(&value, event.data().data(), sizeof value);
  return value;
}

std::vector<std::byte> pattern(size_t size, uint32_t seed) {
  std::vector<std::byte> bytes(size);
  SeededEntropy entropy(seed);
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) word = entropy.next_u64();
    bytes[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
  }
  return bytes;
}

}  // namespace ccixfer::contract
