#include "routing/router/peer_rights.h"

#include <fmt/format.h>

namespace ccixfer::routing {
namespace {

std::string lacks(const ports::PeerIdentity& peer, std::string_view what, std::string_view key) {
  return fmt::format("{}{} may not {} here: give its [peer.NAME] {} = true on this router", words_of_no_grant, peer.name(), what,
                     key);
}

std::string of_other_as(const ports::PeerIdentity& peer, uint32_t granted, uint32_t as) {
  return fmt::format("{}{} may bring AS {} only, and this is of AS {}: correct `as` of its [peer.NAME] on this router",
                     words_of_no_grant, peer.name(), granted, as);
}

}  // namespace

std::string PeerRights::why_not(const ports::PeerIdentity& peer, ports::Role role) const {
  if (grants_ == nullptr) return {};
  const PeerGrant grant = grants_->grant_of(peer);
  switch (role) {
    case ports::Role::hop:  // a router passes on what others began
      return grant.route || grant.router ? std::string() : lacks(peer, "route", "route");
    case ports::Role::router:
      return grant.router ? std::string() : lacks(peer, "be a router", "router");
    case ports::Role::admin:
      return grant.admin ? std::string() : lacks(peer, "ask for the map", "admin");
    case ports::Role::application:
      break;
  }
  return {};  // no router serves it, whoever it is
}

std::string PeerRights::why_no_link(const ports::PeerIdentity& peer, uint32_t as) const {
  if (grants_ == nullptr) return {};
  const PeerGrant grant = grants_->grant_of(peer);
  if (!grant.router) return lacks(peer, "be a router", "router");
  return grant.as && *grant.as != as ? of_other_as(peer, *grant.as, as) : std::string();
}

std::string PeerRights::why_no_claim(const ports::PeerIdentity& peer, const ConnectRequest& request,
                                     const RouterDevice& device) const {
  if (grants_ == nullptr) return {};
  const PeerGrant grant = grants_->grant_of(peer);
  if (request.crossed == 0) return grant.route ? std::string() : lacks(peer, "route", "route");
  if (!grant.router) {
    return fmt::format("{} says that it crossed {} routers and may not be one: give its [peer.NAME] router = true on this router",
                       peer.name(), request.crossed);
  }
  if (!grant.as) return {};
  // Inside our AS only its own routers pass connections on. One of another AS that reaches such a device would pose as one of them.
  if (!device.wan) return *grant.as == device.subnet.as ? std::string() : of_other_as(peer, *grant.as, device.subnet.as);
  // Over a WAN an AS brings its own connections and nobody else's.
  const bool brings_other = request.source != device.subnet && request.source.as != *grant.as;
  return brings_other ? of_other_as(peer, *grant.as, request.source.as) : std::string();
}

}  // namespace ccixfer::routing
