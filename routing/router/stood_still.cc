#include "routing/router/stood_still.h"

#include <algorithm>

namespace ccixfer::routing {
namespace {

// What merely stands still is remembered for two looks, so who is remembered for longer was cut
// off.
bool is_cut_off(Duration remembered_for) { return remembered_for > 2 * look_interval; }

}  // namespace

void StoodStill::remember(const std::string& end, Duration for_how_long, Instant now) {
  if (end.empty()) return;
  std::erase_if(ends_, [&](const auto& entry) { return entry.second.until <= now; });
  if (ends_.size() >= stood_still_max) {
    const auto sooner = [](const auto& a, const auto& b) { return a.second.until < b.second.until; };
    ends_.erase(std::min_element(ends_.begin(), ends_.end(), sooner));
  }
  Standstill& entry = ends_.try_emplace(end, Standstill{now, now}).first->second;
  entry.until = std::max(entry.until, after(now, for_how_long));
  if (is_cut_off(for_how_long)) entry.moved = false;
}

void StoodStill::moves(const std::string& end) {
  const auto known = ends_.find(end);
  if (known != ends_.end()) known->second.moved = true;
}

bool StoodStill::was_cut_off(const std::string& end, Instant now) const {
  const auto known = ends_.find(end);
  return known != ends_.end() && is_cut_off(known->second.until - now) && !known->second.moved;
}

Share StoodStill::share_of(const EndNames& ends, Instant proven_at, Instant now) const {
  const bool proven = proven_at != never;
  for (const std::string& end : ends) {
    const auto found = end.empty() ? ends_.end() : ends_.find(end);
    if (found == ends_.end() || now >= found->second.until) continue;
    if (!proven || proven_at < found->second.since) return Share::penalty;
  }
  return proven ? Share::full : Share::trial;
}

}  // namespace ccixfer::routing
