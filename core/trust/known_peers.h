// The file known_peers: which identity each address had, as ssh's known_hosts. One line a peer: the address (tcp://HOST:PORT or
// cci://AS:SUBNET:NODE:EP, in letters of either case), one space, the id. Lines that are empty or begin with # are kept as they
// are. Text in, text out; files are the caller's (app/config). Errors: usage, `FILE:LINE: what is wrong`. Bounds:
// known_peers_bytes_max.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/trust/peer_id.h"

namespace ccixfer::trust {

inline constexpr size_t known_peers_bytes_max = 4u << 20;

class KnownPeers {
 public:
  // `what` names the file in messages.
  [[nodiscard]] static Result<KnownPeers> parse(std::string_view text, std::string_view what);
  // `address` in lower case. Of the last line with this address, so that a file that was appended to by two processes is fine.
  [[nodiscard]] std::optional<PeerId> find(std::string_view address) const;
  // The line to append for a new peer, with its newline.
  [[nodiscard]] static std::string line(std::string_view address, const PeerId& id);

 private:
  struct Peer {
    std::string address;
    PeerId id;
  };
  std::vector<Peer> peers_;
};

}  // namespace ccixfer::trust
