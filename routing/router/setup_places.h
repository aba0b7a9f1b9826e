// The places of the connections that are being set up, and which peer has how many of them. Half of
// the places are for whoever comes first. Once they are taken, a peer that has its part already gets
// no further one, so that the connects of one peer, however slow, leave room for those of others.
// Pure. Bounds: connections_setting_up_max, connections_setting_up_of_peer_max.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ccixfer::routing {

inline constexpr uint32_t connections_setting_up_max = 1024;
inline constexpr uint32_t connections_setting_up_of_peer_max = connections_setting_up_max / 4;

class SetupPlaces {
 public:
  [[nodiscard]] bool has_room(const std::string& peer) const {
    if (taken_ < connections_setting_up_max / 2) return true;
    const auto known = peers_.find(peer);
    return taken_ < connections_setting_up_max && (known == peers_.end() || known->second < connections_setting_up_of_peer_max);
  }
  void take(const std::string& peer) {
    ++taken_;
    ++peers_[peer];
  }
  void give(const std::string& peer) {
    --taken_;
    const auto known = peers_.find(peer);
    if (--known->second == 0) peers_.erase(known);
  }

 private:
  uint32_t taken_ = 0;
  std::map<std::string, uint32_t> peers_;
};

}  // namespace ccixfer::routing
