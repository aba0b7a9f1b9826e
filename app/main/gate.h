// Who may begin a session at this process: what the configuration grants to the peer, or the ticket that the peer proves.
// Thread: the protocol thread. A ticket may wait for the disk.
#pragma once
#include <map>
#include <string>

#include "app/main/peer_gate.h"
#include "app/trust/peers.h"
#include "app/trust/ticket_store.h"

namespace ccixfer::program {

class Gate final : public PeerGate {
 public:
  // `root`: absolute, as tickets name it. `tickets` lives as long.
  Gate(policy::Peers peers, policy::Direction direction, std::string root, policy::TicketStore& tickets)
      : peers_(std::move(peers)), direction_(direction), root_(std::move(root)), tickets_(tickets) {}

  Result<void> may_wait(const session::Link& link, const session::Open& open, const std::string& path) override;
  Result<policy::Grant> admit(const session::Link& link, const session::Open& open, const std::string& path) override;
  std::string name_of(const trust::ProvedPeer& peer) const override;
  std::optional<Error> ended(const session::Link& link, const Error& result) override;
  // From now on; sessions that run keep what they were granted.
  void set_peers(policy::Peers peers) { peers_ = std::move(peers); }

 private:
  policy::Peers peers_;
  const policy::Direction direction_;
  const std::string root_;
  policy::TicketStore& tickets_;
  struct Use {
    policy::TicketUse use;
    bool is_dry = false;
  };
  std::map<const session::Link*, Use> uses_;  // of sessions that run
};

}  // namespace ccixfer::program
