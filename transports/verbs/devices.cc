// Which RDMA devices this host has.
#include <algorithm>
#include <memory>

#include "transports/inet/address.h"
#include "transports/verbs/handles.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::verbs {
namespace {

std::string state_of(ibv_device* device) {
  const Device opened(ibv_open_device(device));
  ibv_port_attr port{};
  if (opened == nullptr || ibv_query_port(opened.get(), 1, &port) != 0) return "cannot be opened";
  return port.state == IBV_PORT_ACTIVE ? "active" : "down";
}

// The device that carries this address. "": none does.
std::string device_of(rdma_event_channel& channel, const std::string& host) {
  inet::Address address;
  rdma_cm_id* raw = nullptr;
  if (!inet::numeric_address(host, 0, address) || rdma_create_id(&channel, &raw, nullptr, RDMA_PS_TCP) != 0) return {};
  const ManagerId id(raw);
  const bool is_bound = rdma_bind_addr(raw, reinterpret_cast<sockaddr*>(&address.storage)) == 0 && raw->verbs != nullptr;
  return is_bound ? ibv_get_device_name(raw->verbs->device) : std::string();
}

}  // namespace

std::vector<DeviceInfo> devices_of_host() {
  std::vector<DeviceInfo> devices;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(nullptr), ibv_free_device_list);
  for (ibv_device** device = list.get(); device != nullptr && *device != nullptr; ++device)
    devices.push_back({ibv_get_device_name(*device), state_of(*device)});
  if (devices.empty()) return devices;
  const ManagerChannel channel(rdma_create_event_channel());
  if (channel == nullptr) return devices;
  for (const std::string& host : inet::interface_hosts(AF_INET6, "").value_or(std::vector<std::string>{})) {
    const std::string name = device_of(*channel, host);
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& device) { return device.name == name; });
    if (found != devices.end()) found->addresses.push_back(host);
  }
  return devices;
}

}  // namespace ccixfer::verbs
