#include "routing/router/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "routing/router/device_settings.h"

namespace ccixfer::routing {

Devices::Devices(std::vector<RouterDevice> devices) {
  for (RouterDevice& device : devices) add(std::move(device));
}

void Devices::add(RouterDevice device) {
  if (device.endpoint) device.endpoint->set_send_share(leg_send_share);
  devices_.push_back(std::move(device));
}

std::vector<ToldDevice> Devices::told() const {
  std::vector<ToldDevice> all;
  for (uint32_t i = 0; i < count(); ++i) {
    if (devices_[i].told) all.push_back({i, described(devices_[i], uri(i))});
  }
  return all;
}

bool Devices::is_own(const Address& address) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const RouterDevice& device) {
    const auto own = address_of(device.subnet, uri_of(device));
    return own && is_same(*own, address);
  });
}

std::string Devices::node_of(uint32_t device, cci::Connection connection) const {
  return endpoint(device).peer(connection).address;
}

std::string Devices::peer_of(uint32_t device, cci::Connection connection) const {
  return name_of(device, endpoint(device).peer(connection));
}

std::string Devices::name_of(uint32_t device, const ports::PeerIdentity& peer) const {
  return peer.proved.empty() ? fmt::format("{} on device {}", peer.name(), devices_[device].name) : peer.name();
}

bool Devices::set_works(std::string_view name, bool works) {
  bool changed = false;
  for (RouterDevice& each : devices_) {
    if (each.name != name || each.works == works) continue;
    each.works = works;
    changed = true;
  }
  return changed;
}

Instant Devices::settles_at(const RouterDevice& device) {
  return device.differs_since == never ? never : after(device.differs_since, device.works ? device_back_after : device_lost_after);
}

// The record goes on without a lost device, so that the other routers find ways around it, and
// nobody waits for connections to fail one by one.
bool Devices::follow(Instant now) {
  bool changed = false;
  for (RouterDevice& device : devices_) {
    if (device.works == device.told) {
      device.differs_since = never;
      continue;
    }
    if (device.differs_since == never) device.differs_since = now;
    if (now < settles_at(device)) continue;
    device.told = device.works;
    device.differs_since = never;
    changed = true;
    log(LogLevel::warning, "routing: device {}: {}", device.name,
        device.told ? "it works again: our record has it" : "it is gone from this host: our record goes without it");
  }
  return changed;
}

Instant Devices::next_deadline() const {
  Instant when = never;
  for (const RouterDevice& device : devices_) {
    when = std::min(when, settles_at(device));
    if (device.endpoint) when = std::min(when, device.endpoint->next_deadline());
  }
  return when;
}

void Devices::forget_latencies() {
  for (RouterDevice& device : devices_) device.latency_ns = 0;
}

void Devices::change(uint32_t index, RouterDevice settings) {
  RouterDevice& device = devices_[index];
  device.rate_bits_per_s = settings.rate_bits_per_s;
  device.capabilities = settings.capabilities;
  device.transit = settings.transit;
  device.wan = settings.wan;
  device.wan_to = std::move(settings.wan_to);
}

}  // namespace ccixfer::routing
