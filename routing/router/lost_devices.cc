// A router that loses one of its subnets: its record goes on without it, so that the others find ways around; nobody waits for
// connections to fail one by one. What is known of a device comes from outside (Router::set_works).
#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {

void Router::set_works(std::string_view device, bool works) {
  for (RouterDevice& each : impl_->devices) {
    if (each.name != device || each.works == works) continue;
    each.works = works;
    impl_->work = true;
  }
}

Instant Router::Impl::settles_at(const RouterDevice& device) {
  return device.differs_since == never ? never : after(device.differs_since, device.works ? device_back_after : device_lost_after);
}

void Router::Impl::follow_devices() {
  bool changed = false;
  for (RouterDevice& device : devices) {
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
  if (changed && !draining) tell_anew();
}

}  // namespace ccixfer::routing
