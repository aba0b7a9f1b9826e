// Peers that tell bad records, and peers whose faults were logged. A peer is named by who it is
// (Devices::peer_of) and not by a connection or by what it calls itself. So a peer that comes back
// is counted on, and nobody is cut off in the name of another.
// Single-threaded. Bounds: bad_peers_max, peers_logged_max.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr uint32_t peer_offences_max = 32;  // bad records in a window
inline constexpr Duration peer_offences_window = std::chrono::seconds(30);
inline constexpr Duration cut_off_time = std::chrono::seconds(60);
inline constexpr size_t bad_peers_max = 1024;
inline constexpr size_t peers_logged_max = 256;

// A peer with one bad record too many is cut off for a while, and begins anew after that.
class BadPeers {
 public:
  struct Verdict {
    bool to_log = false;   // its first one: a peer must not fill the log
    bool cut_off = false;  // from now on
  };
  Verdict add(const std::string& peer, Instant now);
  [[nodiscard]] bool is_cut_off(const std::string& peer, Instant now) const;

 private:
  struct Entry {
    uint32_t count = 0;
    Instant window_ends{};
    Instant cut_off_until = Instant::min();  // min: it is not
    [[nodiscard]] bool was_cut_off() const { return cut_off_until != Instant::min(); }
  };
  void make_room();
  std::map<std::string, Entry> peers_;
};

// Of many peers with faults each is logged once, and those beyond the bound not at all.
class PeersLogged {
 public:
  [[nodiscard]] bool first(const std::string& peer) { return logged_.size() < peers_logged_max && logged_.insert(peer).second; }

 private:
  std::set<std::string> logged_;
};

}  // namespace ccixfer::routing
