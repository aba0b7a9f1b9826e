// What both ends of a hop have when their handshake is done: a key for each direction, and the peer that it has proved. Every
// transport that secures its connections derives them here, under a label of its own.
// Source: README.md 'Who the peer is'; core/trust/README.md 'Keys and seals'.
#pragma once
#include <string>
#include <string_view>

#include "core/trust/handshake.h"
#include "core/trust/seal_key.h"

namespace ccixfer::connection {

struct HopKeys {
  trust::SealKey seal;
  trust::SealKey open;
  trust::Cipher cipher;
  trust::ProvedPeer peer;
  std::string name;  // ports::PeerIdentity::proved
};

// Of a handshake that is done. `side`: ours. `label`: a constant of the transport; other transports get other keys of the same
// handshake.
[[nodiscard]] HopKeys make_hop_keys(const trust::Handshake& handshake, trust::HandshakeSide side, std::string_view label);

}  // namespace ccixfer::connection
