#include "app/devices/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/units.h"
#include "transports/eth/socket.h"
#include "transports/shm/segment.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::program {
namespace {

constexpr const char* soft_roce = "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev INTERFACE";

void ip_needs_an_address(const TransportFacts& facts, const std::string& transport, std::vector<Missing>& out) {
  const bool has_one = std::any_of(facts.interfaces.begin(), facts.interfaces.end(),
                                   [](const Interface& each) { return each.up && !each.addresses.empty(); });
  if (has_one) return;
  out.push_back({transport, false, "no interface that is up has an address",
                 "ip link set INTERFACE up; ip address add ADDRESS/LENGTH dev INTERFACE"});
}

// A small buffer overflows when data come in bursts, and what it has no room for goes out again.
void udp_needs_buffers(const TransportFacts& facts, std::vector<Missing>& out) {
  constexpr uint64_t wanted = udp::socket_buffer_bytes;
  for (const auto& [granted, what, limit] : {std::tuple{facts.receive_buffer_bytes, "receive", "net.core.rmem_max"},
                                             std::tuple{facts.send_buffer_bytes, "send", "net.core.wmem_max"}}) {
    if (granted >= wanted) continue;
    out.push_back({"udp", true, fmt::format("{} buffer of {} bytes instead of {}", what, granted, wanted),
                   fmt::format("sysctl -w {}={}", limit, wanted)});
  }
}

bool is_ready(const verbs::DeviceInfo& card) { return card.port_state == "active" && !card.addresses.empty(); }

void verbs_need_cards(const TransportFacts& facts, std::vector<Missing>& out) {
  if (!facts.has_verbs) {
    out.push_back(
        {"verbs", false, "this program was built without verbs", "install libibverbs-dev and librdmacm-dev and build it again"});
    return;
  }
  if (facts.cards.empty()) {
    out.push_back({"verbs", false, "no RDMA device",
                   fmt::format("load the driver of the card, or give an Ethernet interface Soft-RoCE: {}", soft_roce)});
    return;
  }
  const bool usable = std::any_of(facts.cards.begin(), facts.cards.end(), is_ready);
  for (const verbs::DeviceInfo& card : facts.cards) {
    if (card.port_state != "active") {
      const bool is_down = card.port_state == "down";
      out.push_back({"verbs", usable, fmt::format("RDMA device {}: {}", card.name, is_down ? "its port is down" : card.port_state),
                     is_down ? "connect it, and set its network interface up (rdma link shows which one it has)"
                             : "give this account the right to use /dev/infiniband"});
    } else if (card.addresses.empty()) {
      out.push_back({"verbs", usable, fmt::format("RDMA device {}: no address", card.name),
                     "give its network interface an address (rdma link shows which one it has)"});
    }
  }
}

void eth_needs_a_right(const TransportFacts& facts, std::vector<Missing>& out) {
  if (!facts.may_use_raw_ethernet) {
    out.push_back({"eth", false, "no right to raw Ethernet (CAP_NET_RAW)",
                   "run it as root, or give the program the capability: setcap cap_net_raw+ep FILE"});
  }
  const bool has_ethernet = std::any_of(facts.interfaces.begin(), facts.interfaces.end(),
                                        [](const Interface& each) { return each.up && !each.loopback && !each.mac.empty(); });
  if (!has_ethernet) out.push_back({"eth", false, "no Ethernet interface that is up", "ip link set INTERFACE up"});
}

}  // namespace

TransportFacts transport_facts(std::vector<Interface> interfaces) {
  TransportFacts facts;
  facts.interfaces = std::move(interfaces);
  facts.has_verbs = verbs::is_built_in();
  facts.cards = verbs::devices_of_host();
  facts.may_use_raw_ethernet = eth::may_use_raw_frames();
  if (const auto granted = udp::granted_buffers()) {
    facts.receive_buffer_bytes = granted->receive_bytes;
    facts.send_buffer_bytes = granted->send_bytes;
  }
  if (const auto memory = shm::Segment::create(shm::ring_bytes_min); !memory) facts.no_shared_memory = memory.error().message;
  return facts;
}

std::vector<Missing> missing_of(const TransportFacts& facts) {
  std::vector<Missing> missing;
  ip_needs_an_address(facts, "tcp", missing);
  ip_needs_an_address(facts, "udp", missing);
  udp_needs_buffers(facts, missing);
  verbs_need_cards(facts, missing);
  eth_needs_a_right(facts, missing);
  if (facts.no_shared_memory) {
    missing.push_back({"shm", false, printable(*facts.no_shared_memory),
                       "let this account make memory files (memfd_create): see its limits of memory and descriptors"});
  }
  return missing;
}

}  // namespace ccixfer::program
