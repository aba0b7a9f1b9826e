// Whether a peer may do what it asks for, by its grant. Without grants (--insecure) nobody is known and everybody may do everything
// that the devices allow.
// Out: words for the peer and for the log, which begin with words_of_no_grant where there is no connection yet, and say what to
// change;
// "": it may.
// Single-threaded. Source: routing/router/README.md 'Grants'.
#pragma once
#include <memory>
#include <string>

#include "core/ports/transport.h"
#include "routing/router/peer_grants.h"
#include "routing/router/router.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

class PeerRights {
 public:
  explicit PeerRights(std::shared_ptr<const PeerGrants> grants) : grants_(std::move(grants)) {}
  void change(std::shared_ptr<const PeerGrants> grants) { grants_ = std::move(grants); }

  // It dials us to be this.
  [[nodiscard]] std::string why_not(const ports::PeerIdentity& peer, ports::Role role) const;
  // It is a router of that AS, on a link that either end dialled.
  [[nodiscard]] std::string why_no_link(const ports::PeerIdentity& peer, uint32_t as) const;
  // It passes on a connect request that says where it begins and what it crossed.
  [[nodiscard]] std::string why_no_claim(const ports::PeerIdentity& peer, const ConnectRequest& request,
                                         const RouterDevice& device) const;

 private:
  std::shared_ptr<const PeerGrants> grants_;  // nullptr: none
};

}  // namespace ccixfer::routing
