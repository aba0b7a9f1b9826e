// What a process lets others be to it, connection by connection: the owner of its transports (HopTrust) and, of a router, of its
// grants (PeerGrants). It decides by the configuration, by known_peers, and by a ticket.
//
// - Whom we dial is judged as the peer of a transfer is (app/trust/dialled_peer_judge.h); a person at the terminal may be asked.
// - Who dials a receiver or server in the role of an application may be anybody who proves a key: what they may do is judged when
//   they say what they want. A connection that a router passes on is taken from peers with `router = true` only.
// - Who dials a router is judged by the router, by what grant_of() says.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/main/security.h"
#include "app/main/session_trust.h"
#include "app/trust/audit_record.h"
#include "routing/router/peer_grants.h"
#include "transports/connection/hop_trust.h"

namespace ccixfer::program {

enum class ListenerKind : uint8_t { transfers /* or nobody listens */, router, measurements /* of known peers */ };

class ProcessTrust final : public connection::HopTrust, public routing::PeerGrants {
 public:
  // `security` lives as long. What a certificate grants lasts as long as the certificate does.
  using WallClock = std::function<int64_t()>;  // seconds since 1970
  ProcessTrust(Security& security, ListenerKind listener, WallClock wall_clock_s = wall_time_s)
      : security_(security), listener_(listener), wall_clock_s_(std::move(wall_clock_s)) {}

  void ask_nobody() { asks_ = false; }  // a person at the terminal, about peers that we dial
  // Of a ticket: at these addresses only this peer is the right one.
  void expect(const std::vector<std::string>& addresses, const trust::PeerId& peer);

  trust::HandshakeOptions handshake(trust::HandshakeSide side) override;
  Result<void> admit_acceptor(const trust::ProvedPeer& peer, std::string_view uri) override;
  Result<void> admit_dialler(const trust::ProvedPeer& peer, ports::Role role) override;
  routing::PeerGrant grant_of(const ports::PeerIdentity& peer) const override;
  // Whether a certificate has lapsed since the last look: whoever gave its peer something for long is to ask for grants again.
  [[nodiscard]] bool look_for_lapsed();
  // Is called with the audit record of each dialler that is sent away before it is a request.
  using SentAway = std::function<void(policy::AuditRecord record)>;
  void tell_sent_away(SentAway tell) { tell_sent_away_ = std::move(tell); }
  void sent_away(std::string_view uri, const trust::ProvedPeer* peer, const Error& error) override;
  // Who that is, for an audit log: its id, and the name of its [peer.NAME] or of its certificate; "": not known.
  struct Named {
    std::string id, name;
  };
  [[nodiscard]] Named named(const ports::PeerIdentity& peer) const;
  [[nodiscard]] Named named(const trust::ProvedPeer& peer) const;

 private:
  // A peer of a table, as it was proved last.
  struct Known {
    trust::ProvedPeer peer;
    std::string lapsed;    // why its certificate counts no longer, as it was judged last
    bool is_told = false;  // that it has lapsed
    int64_t judged_s = 0;
    std::optional<trust::Authority> judged_by;
  };
  void remember(const trust::ProvedPeer& peer);
  const std::string& judge(Known& known) const;
  [[nodiscard]] const PeerConfig* table_of(const std::string& id) const;  // nullptr: none

  Security& security_;
  const ListenerKind listener_;
  const WallClock wall_clock_s_;
  bool asks_ = true;
  SentAway tell_sent_away_;
  std::map<std::string, trust::PeerId> expected_;  // by address
  mutable std::map<std::string, Known> proved_;    // by id: peers that have a [peer] table; later questions have the id alone
};

// Of a command; nullptr with --insecure.
[[nodiscard]] std::shared_ptr<ProcessTrust> process_trust(std::optional<Security>& security, ListenerKind listener);
// The same of a command that dials these.
[[nodiscard]] std::shared_ptr<ProcessTrust> trust_of_dialler(std::optional<Security>& security, const std::vector<Place>& places);

}  // namespace ccixfer::program
