// What a router lets its peers do, by who they are. Whoever makes the router says so (app/main/route.cc reads [peer.NAME]); the
// router asks for each connection, so that a changed configuration counts from the next one on. Links to routers end when theirs is
// withdrawn.
// Source: routing/router/README.md 'Grants'; transports/connection/README.md 'Who the peer is'.
#pragma once
#include <cstdint>
#include <optional>

#include "core/ports/peer_identity.h"

namespace ccixfer::routing {

struct PeerGrant {
  bool route = false;               // open routed connections through us
  bool router = false;              // be a router beside us: link, pass connections of others on to us, and bring records
  std::optional<uint32_t> as = {};  // which AS such a router is of; none: any that its device may lead to
  bool admin = false;               // ask for our map
  friend bool operator==(const PeerGrant&, const PeerGrant&) = default;
};

class PeerGrants {
 public:
  virtual ~PeerGrants() = default;
  // Nothing for a peer that is not known.
  [[nodiscard]] virtual PeerGrant grant_of(const ports::PeerIdentity& peer) const = 0;
};

}  // namespace ccixfer::routing
