// What a transport asks of its owner when connections are to be secured: who we are, whom we want to reach, and who may dial us.
// The transport proves identities (core/trust) and decides nothing; a HopTrust decides and does no cryptography. app/devices hands
// one to each transport that it makes. Without one, connections are plain and nothing is proved.
//
// Errors of the two admit functions: authentication: it is not whom we wanted, or nobody whom we know. not_authorised: it is known
// and may not do that. The message of admit_dialler() is sent to the peer, sealed, so it says what the peer's owner should know and
// nothing else.
// Ownership: shared by the transports of a process. Single-threaded. Source: README.md 'Who the peer is'.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/status.h"
#include "core/ports/transport.h"
#include "core/trust/handshake.h"

namespace ccixfer::connection {

class HopTrust {
 public:
  virtual ~HopTrust() = default;
  // Our identity, the authority that we believe, and the date, for one handshake.
  [[nodiscard]] virtual trust::HandshakeOptions handshake(trust::HandshakeSide side) = 0;
  // We dialled `uri`, and `peer` answers there.
  [[nodiscard]] virtual Result<void> admit_acceptor(const trust::ProvedPeer& peer, std::string_view uri) = 0;
  // `peer` has dialled us, to be this to us.
  [[nodiscard]] virtual Result<void> admit_dialler(const trust::ProvedPeer& peer, ports::Role role) = 0;
  // Who dialled us from `uri` is sent away before it is a request: it proved nothing, or nothing that we believe, or was not
  // admitted. For an audit log. `peer`: whom it proved; nullptr: nobody.
  virtual void sent_away(std::string_view uri, const trust::ProvedPeer* peer, const Error& error);
};

// ports::PeerIdentity::proved: the first name of a certificate that our authority vouches for, else the id of the key. No name of a
// certificate can be taken for the id of a key.
[[nodiscard]] std::string proved_name(const trust::ProvedPeer& peer);
[[nodiscard]] std::string_view to_string(trust::Cipher cipher);  // ports::HopInfo::protection
// How a dial or a request ends for this error of a HopTrust or of a handshake.
[[nodiscard]] Status status_of(const Error& error);

// One end proves who it is and the other does not. What each dialler is told.
inline constexpr std::string_view acceptor_is_insecure =
    "the peer runs with --insecure and this end does not: start both with or both without it";
inline constexpr std::string_view dialler_is_insecure =
    "this end runs with --insecure and the peer does not: start both with or both without it";

}  // namespace ccixfer::connection
