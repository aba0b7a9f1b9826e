// A planned stop. Source: README.md 'A planned stop': a routed connection pinned to one router ends with it, and the layer above
// moves on.
#include <fmt/core.h>

#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {

std::string Router::Impl::draining_reason(uint32_t device) { return fmt::format("router {} stops", endpoint(device).uri()); }

// The record first: who hears of a connection that must move looks for another way at once.
void Router::Impl::begin_drain() {
  drain_until = after(now, drain_timeout);
  ++instance;
  make_own_record(true);
  flood(own, own_raw, nullptr);
  log(LogLevel::info, "routing: draining, {} connections", pairs.size());
  pairs.for_each([&](Pair& pair) {
    if (pair.phase == PairPhase::dialling || pair.phase == PairPhase::requesting)
      return refuse(pair, Status::no_route, draining_reason(pair.side[0].device));
    for (uint8_t which = 0; which < 2 && pair.phase == PairPhase::open; ++which) {
      std::vector<std::byte> message;
      encode_plain(MessageKind::draining, message);
      post(pair, which, std::move(message));
    }
  });
}

void Router::Impl::drain_turn() {
  if (drain_until == never) begin_drain();
  if (drain_cut || now < drain_until) return;
  drain_cut = true;
  pairs.for_each([&](Pair& pair) {
    if (pair.phase == PairPhase::closing) return set_timer(pair, after(now, drain_flush_timeout));
    close_pair(pair, Status::disconnected, draining_reason(pair.side[0].device), nobody);
  });
}

bool Router::Impl::drained() const {
  if (drain_until == never) return false;
  if (now >= after(drain_until, drain_flush_timeout)) return true;
  if (pairs.size() > 0 || fragments.size() > 0) return false;
  bool told = true;
  links.for_each([&](const Link& link) { told = told && link.out.empty(); });
  return told;
}

}  // namespace ccixfer::routing
