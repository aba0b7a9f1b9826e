#include "routing/router/network_flows.h"

#include <algorithm>

namespace ccixfer::routing {

void ProgressClock::note(uint64_t at, Duration passed, uint64_t least_bytes) {
  moved = std::min(moved, at);  // of what failed, nothing came
  const bool moves = at >= moved + least_bytes;
  if (moves) moved = at;
  stands = moves ? Duration{0} : stands + passed;
}

void NetworkFlows::begin_look() {
  for (auto& [device, flows] : flows_) {
    for (Flow& flow : flows) flow.waited_for = 0;
  }
}

void NetworkFlows::note(uint32_t device, Direction direction, LegFlow& leg, uint64_t at_bytes) {
  Flow& flow = flows_[device][static_cast<size_t>(direction)];
  flow.moved_bytes += at_bytes - std::min(at_bytes, leg.seen_bytes);
  leg.seen_bytes = at_bytes;
  if (leg.waited_for) ++flow.waited_for;
}

void NetworkFlows::end_look(Duration passed) {
  for (auto& [device, flows] : flows_) {
    for (Flow& flow : flows) {
      if (flow.waited_for == 0) flow.clock.stands = Duration{0};
      if (flow.waited_for > 0) flow.clock.note(flow.moved_bytes, passed, flow.waited_for * progress_bytes_min);
    }
  }
}

const NetworkFlows::Flow& NetworkFlows::flow(uint32_t device, Direction direction) const {
  static const Flow none;
  const auto at = flows_.find(device);
  return at == flows_.end() ? none : at->second[static_cast<size_t>(direction)];
}

}  // namespace ccixfer::routing
