#include "routing/router/bad_records.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

bool BadRecordCount::add(Instant now) {
  if (now >= until_) {
    count_ = 0;
    until_ = after(now, link_offences_window);
  }
  return ++count_ <= link_offences_max;
}

bool BadRecordCount::first_to_log() { return !std::exchange(logged_, true); }

void CutOffPeers::add(const std::string& peer, Instant now) {
  std::erase_if(until_, [&](const auto& entry) { return entry.second <= now; });
  if (until_.size() >= cut_off_max) {
    const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
    until_.erase(std::min_element(until_.begin(), until_.end(), sooner));
  }
  until_[peer] = after(now, cut_off_time);
}

bool CutOffPeers::has(const std::string& peer, Instant now) const {
  const auto at = until_.find(peer);
  return at != until_.end() && now < at->second;
}

}  // namespace ccixfer::routing
