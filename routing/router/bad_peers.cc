#include "routing/router/bad_peers.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

// Who is cut off stays in the table longest: others cannot push it out by being many.
void BadPeers::make_room() {
  const auto goes_first = [](const auto& a, const auto& b) {
    return std::pair(a.second.was_cut_off(), std::max(a.second.window_ends, a.second.cut_off_until)) <
           std::pair(b.second.was_cut_off(), std::max(b.second.window_ends, b.second.cut_off_until));
  };
  peers_.erase(std::min_element(peers_.begin(), peers_.end(), goes_first));
}

BadPeers::Verdict BadPeers::add(const std::string& peer, Instant now) {
  std::erase_if(peers_, [&](const auto& each) { return each.second.was_cut_off() && each.second.cut_off_until <= now; });
  const auto known = peers_.find(peer);
  if (known == peers_.end() && peers_.size() >= bad_peers_max) make_room();
  Entry& entry = peers_[peer];
  if (now >= entry.window_ends) {
    entry.count = 0;
    entry.window_ends = after(now, peer_offences_window);
  }
  const bool is_first = known == peers_.end();
  if (++entry.count > peer_offences_max) entry.cut_off_until = after(now, cut_off_time);
  return {is_first, entry.was_cut_off()};
}

bool BadPeers::is_cut_off(const std::string& peer, Instant now) const {
  const auto at = peers_.find(peer);
  return at != peers_.end() && now < at->second.cut_off_until;
}

}  // namespace ccixfer::routing
