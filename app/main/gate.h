// Who may begin a session at this process: what the configuration grants to the peer, or the ticket that the peer proves.
// Thread: the protocol thread. A ticket may wait for the disk.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "app/main/peer_gate.h"
#include "app/trust/peers.h"
#include "app/trust/ticket_store.h"

namespace ccixfer::program {

class Gate final : public PeerGate {
 public:
  // Why the certificate that a peer showed counts no longer; "": it does, or it has none.
  using WhyNoLonger = std::function<std::string(const trust::ProvedPeer& peer)>;
  // `root`: absolute, as tickets name it. `tickets` lives as long.
  Gate(policy::Peers peers, policy::Direction direction, std::string root, policy::TicketStore& tickets, WhyNoLonger why_no_longer)
      : peers_(std::move(peers)),
        direction_(direction),
        root_(std::move(root)),
        tickets_(tickets),
        why_no_longer_(std::move(why_no_longer)) {}

  Result<void> may_wait(const session::Link& link, const session::Open& open, const std::string& path) override;
  Result<policy::Grant> admit(const session::Link& link, const session::Open& open, const std::string& path) override;
  std::string name_of(const trust::ProvedPeer& peer) const override;
  std::optional<Error> ended(const session::Link& link, const Error& result) override;
  // From now on; sessions that run keep what they were granted.
  void set_peers(policy::Peers peers) { peers_ = std::move(peers); }

 private:
  [[nodiscard]] Result<void> check_certificate(const trust::ProvedPeer& peer) const;

  policy::Peers peers_;
  const policy::Direction direction_;
  const std::string root_;
  policy::TicketStore& tickets_;
  const WhyNoLonger why_no_longer_;
  struct Use {
    policy::TicketUse use;
    bool is_dry = false;
  };
  std::map<const session::Link*, Use> uses_;  // of sessions that run
};

}  // namespace ccixfer::program
