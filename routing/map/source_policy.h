// Whether a connect request may come from where it says, by the device on which it arrived. A request's source and its count of
// routers are the asker's own words; what passes through an AS is decided by them, so they are held against what that device can
// bring. Pure. Source: routing §IV.C.3, Table II; routing/map/README.md.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "routing/map/router_map.h"

namespace ccixfer::routing {

struct Claim {
  SubnetId source;      // where it says that it begins
  uint8_t crossed = 0;  // routers, as it says; 0: it comes from where it begins
  SubnetId to;
};

struct ClaimFault {
  Status status = Status::success;  // success: nothing is wrong. no_route: another router may see it otherwise
  std::string reason;
};

// `in` is the device of the router `own` on which it arrived; both as the router's own record has them.
[[nodiscard]] ClaimFault check_claim(const Claim& claim, const DeviceRecord& in, uint64_t own, const RouterMap& map);

}  // namespace ccixfer::routing
