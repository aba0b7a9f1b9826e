// The places of relayed connections, and which peer has how many of them: of all that there are, and
// of those that are being set up. Half of either are for whoever comes first. Once they are taken, a
// peer that has its part already gets no further one, so that one peer, whatever it does, leaves
// room for others. The part of a router before us is larger, as all of its peers come from there;
// but only what it asks for tells that it is one.
// Pure. Bounds: what it is made with, connections_setting_up_max, connections_setting_up_of_peer_max.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ccixfer::routing {

inline constexpr uint32_t connections_setting_up_max = 1024;
inline constexpr uint32_t connections_setting_up_of_peer_max = connections_setting_up_max / 4;

class ConnectionPlaces {
 public:
  struct Taken {
    uint32_t all = 0, setting_up = 0;
  };
  using Peer = std::map<std::string, Taken>::value_type;  // it stays where it is while it has a place

  explicit ConnectionPlaces(uint32_t connections_max) : connections_max_(connections_max) {}

  // Whether there is a place for one more connection of this peer, which is then set up.
  [[nodiscard]] bool has_room(const std::string& peer) const {
    if (taken_.all >= connections_max_) return false;
    if (taken_.setting_up < connections_setting_up_max / 2) return true;
    const auto known = peers_.find(peer);
    return taken_.setting_up < connections_setting_up_max &&
           (known == peers_.end() || known->second.setting_up < connections_setting_up_of_peer_max);
  }
  [[nodiscard]] Peer& take(const std::string& peer) {
    Peer& place = *peers_.try_emplace(peer).first;
    for (Taken* each : {&taken_, &place.second}) ++each->all, ++each->setting_up;
    return place;
  }
  // Whether the peer has more than its part, now that it has taken a place and its request has told whether
  // it is an end (`is_end`) or a router.
  [[nodiscard]] bool has_too_many(const Peer& peer, bool is_end) const {
    const uint32_t part = is_end ? connections_max_ / 4 : connections_max_ / 4 * 3;
    return taken_.all > connections_max_ / 2 && peer.second.all > part;
  }
  void is_set_up(Peer& peer) { --taken_.setting_up, --peer.second.setting_up; }
  void give(Peer& peer) {  // of one that is set up
    --taken_.all;
    if (--peer.second.all == 0) peers_.erase(peer.first);
  }

 private:
  const uint32_t connections_max_;
  Taken taken_;
  std::map<std::string, Taken> peers_;
};

}  // namespace ccixfer::routing
