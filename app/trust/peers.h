// The peers that the configuration names, found by what a handshake proved.
// A table with an id is the peer with that key. A table with a name is whoever shows a certificate of our authority with exactly
// that name in it (a wildcard in a certificate stands for itself only). If both kinds fit, the id counts. Copies the tables, so
// that a configuration that is read again changes nothing behind anybody's back. Pointers into it hold as long as it does.
#pragma once
#include <string_view>
#include <vector>

#include "app/config/peers.h"
#include "core/trust/handshake.h"

namespace ccixfer::policy {

// Does the table mean this peer?
[[nodiscard]] bool is(const program::PeerConfig& peer, const trust::ProvedPeer& proved);

class Peers {
 public:
  explicit Peers(std::vector<program::PeerConfig> peers = {}) : peers_(std::move(peers)) {}

  [[nodiscard]] const program::PeerConfig* find(const trust::ProvedPeer& proved) const;  // nullptr: nobody that we know
  // The peer that says it is dialled there. `address` in lower case, without a path.
  [[nodiscard]] const program::PeerConfig* at(std::string_view address) const;
  [[nodiscard]] const std::vector<program::PeerConfig>& all() const { return peers_; }

 private:
  std::vector<program::PeerConfig> peers_;
};

}  // namespace ccixfer::policy
