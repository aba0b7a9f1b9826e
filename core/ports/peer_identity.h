// Who the peer of a connection is, by what we know ourselves. What a peer says of itself has no place here.
//
// A transport hands it up with each connect request and with the end of each dial. What is counted, cut off or logged about a peer
// goes by name(): a peer that comes back over another connection, from another port or under another name is still the same one.
// Transports prove their peers where an identity is configured (transports/connection/hop_trust.h). Where nothing is proved, all
// behind one address are one peer. The far end of a route is not known at all: only the routers that are next to it see who it is.
#pragma once
#include <string>
#include <string_view>

#include "core/base/units.h"

namespace ccixfer::ports {

struct PeerIdentity {
  std::string proved;   // The transport has proved it: the id of a key, or the name in a certificate. "": nothing is proved.
  std::string address;  // Not proved: the host that dialled us or that we dialled, without its port. "": not known.
  // The id of the key that was proved, where that is known. Rights go by it alone: certificates of several peers may have one name.
  std::string id = {};

  [[nodiscard]] bool is_known() const { return !proved.empty() || !address.empty(); }
  // The one name for counters, cut-offs and log lines. No address looks like a proved name.
  [[nodiscard]] std::string name() const {
    if (!proved.empty()) return printable(proved) + " (proved)";
    return address.empty() ? "somebody" : printable(address);
  }
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// The host of a native address SCHEME://HOST:PORT, without the brackets of an IPv6 address. "": it has none.
[[nodiscard]] inline std::string host_in(std::string_view uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string_view::npos) return {};
  uri.remove_prefix(scheme + 3);
  std::string_view host = uri.substr(0, uri.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return std::string(host);
}

}  // namespace ccixfer::ports
