#include "routing/router/conduit_stock.h"

#include <utility>

namespace ccixfer::routing {

std::unique_ptr<ports::Conduit> ConduitStock::lend(cci::Endpoint& in, const cci::Endpoint& out) {
  if (free_.empty() && lent_ < conduits_max) {
    if (auto made = in.make_conduit()) free_.push_back(std::move(made));
  }
  if (free_.empty() || !in.takes(*free_.back()) || !out.takes(*free_.back())) return nullptr;
  std::unique_ptr<ports::Conduit> conduit = std::move(free_.back());
  free_.pop_back();
  ++lent_;
  return conduit;
}

void ConduitStock::give(std::unique_ptr<ports::Conduit> conduit) {
  --lent_;
  if (conduit->held_bytes() == 0) free_.push_back(std::move(conduit));
}

}  // namespace ccixfer::routing
