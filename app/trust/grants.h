// What a peer may do at a receiver or server, of what it asks: the paths and the limits of its [peer] table, or of its ticket.
// A prefix grants itself and what is below it, by whole components: `incoming/run` does not grant `incoming/run42`. Nothing is
// granted without a table or a ticket, and nothing beneath the root is looked at here: that is done on held descriptors.
// Errors: not_authorised (42): the peer's id, what it asked for, and the line to add to the receiver's configuration. The message
// goes to the peer too, so it has nothing of other peers in it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/peers.h"
#include "core/base/result.h"
#include "core/trust/handshake.h"

namespace ccixfer::policy {

enum class Direction : uint8_t { write /* a push to us */, read /* a pull from us */ };
[[nodiscard]] std::string_view name_of(Direction direction);  // "write", "read"

struct Grant {
  std::string name;  // of whom, for reports: NAME of [peer.NAME], or `ticket NUMBER`
  // none: no limit. Zero is a limit too: nothing.
  std::optional<uint64_t> quota_bytes, rate_bytes_per_s, entries_max;
  bool devices = false;
  bool setid = false;
  std::vector<std::string> prefixes;  // of this direction; "": all of the root
};

// Does the prefix grant the path? Both relative to the root, without slashes at the ends.
[[nodiscard]] bool covers(std::string_view prefix, std::string_view path);
[[nodiscard]] bool covers(const Grant& grant, std::string_view path);

// `table`: Peers::find of the peer; nullptr: there is none. `path`: relative and safe, as a Destination takes it; "": the root.
[[nodiscard]] Result<Grant> authorise(const trust::ProvedPeer& peer, const program::PeerConfig* table, Direction direction,
                                      std::string_view path);

}  // namespace ccixfer::policy
