// The HopTrust of tests: an identity of its own, and whoever is not in a list of strangers is let in.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/connection/hop_trust.h"

namespace ccixfer::testing {

class OwnTrust final : public connection::HopTrust {
 public:
  explicit OwnTrust(trust::Identity who = trust::Identity::generate().value()) : identity(std::move(who)) {}

  [[nodiscard]] trust::HandshakeOptions handshake(trust::HandshakeSide side) override {
    ++handshakes;
    return {side, identity, authority, wall_time_s, {}};
  }
  [[nodiscard]] Result<void> admit_acceptor(const trust::ProvedPeer& peer, std::string_view uri) override {
    dialled = std::string(uri);
    if (!wanted || *wanted == peer.id) return {};
    return fail(ErrorKind::authentication, "another identity than the one that was wanted");
  }
  [[nodiscard]] Result<void> admit_dialler(const trust::ProvedPeer& peer, ports::Role role) override {
    asked.push_back(role);
    if (stranger && *stranger == peer.id) return fail(ErrorKind::authentication, "an unknown peer");
    if (role == denied) return fail(ErrorKind::not_authorised, "a role that it may not have");
    return {};
  }
  void sent_away(std::string_view /*uri*/, const trust::ProvedPeer* peer, const Error& error) override {
    away.push_back({peer == nullptr ? std::nullopt : std::optional(peer->id), error});
  }
  [[nodiscard]] std::string name() const { return trust::to_string(identity.id()); }

  trust::Identity identity;
  std::optional<trust::Authority> authority;
  int64_t wall_time_s = 1'700'000'000;
  std::optional<trust::PeerId> wanted;    // who must answer; none: anybody
  std::optional<trust::PeerId> stranger;  // who may not dial
  std::optional<ports::Role> denied;      // what nobody may be
  size_t handshakes = 0;
  std::string dialled;
  std::vector<ports::Role> asked;
  struct Away {
    std::optional<trust::PeerId> peer;
    Error error;
  };
  std::vector<Away> away;
};

}  // namespace ccixfer::testing
