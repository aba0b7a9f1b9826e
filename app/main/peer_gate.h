// Who may begin a session at a listening side, asked by the Acceptor when the handshake has proved who the peer is and the peer has
// said what it wants. Without encryption nobody is asked.
#pragma once
#include <optional>
#include <string>

#include "app/session/link.h"
#include "app/session/open.h"
#include "app/trust/grants.h"

namespace ccixfer::program {

class PeerGate {
 public:
  virtual ~PeerGate() = default;
  // Whether it may wait for its turn: what admit() would refuse now for good is refused at once, and nothing is taken. Errors: as
  // of admit(); usage, file_io, no_space: our own files, with words for the operator.
  [[nodiscard]] virtual Result<void> may_wait(const session::Link& link, const session::Open& open, const std::string& path) = 0;
  // `path`: below the root, safe; "": the root. Errors: not_authorised, authentication (a ticket), with words for the peer.
  [[nodiscard]] virtual Result<policy::Grant> admit(const session::Link& link, const session::Open& open,
                                                    const std::string& path) = 0;
  // The name of its [peer.NAME]; "": nobody that the configuration names.
  [[nodiscard]] virtual std::string name_of(const trust::ProvedPeer& peer) const = 0;
  // A session that was admitted has ended. Gives what could not be noted of that, for the log.
  [[nodiscard]] virtual std::optional<Error> ended(const session::Link& link, const Error& result) = 0;
};

}  // namespace ccixfer::program
