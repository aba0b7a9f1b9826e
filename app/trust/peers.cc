#include "app/trust/peers.h"

#include <algorithm>

namespace ccixfer::policy {
namespace {

bool has(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

}  // namespace

bool is(const program::PeerConfig& peer, const trust::ProvedPeer& proved) {
  if (peer.id) return *peer.id == proved.id;
  return proved.certified && !peer.certified_name.empty() && has(proved.names, peer.certified_name);
}

const program::PeerConfig* Peers::find(const trust::ProvedPeer& proved) const {
  const program::PeerConfig* by_name = nullptr;
  for (const program::PeerConfig& peer : peers_) {
    if (!is(peer, proved)) continue;
    if (peer.id) return &peer;
    if (by_name == nullptr) by_name = &peer;
  }
  return by_name;
}

const program::PeerConfig* Peers::at(std::string_view address) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& peer) { return has(peer.addresses, address); });
  return found == peers_.end() ? nullptr : &*found;
}

}  // namespace ccixfer::policy
