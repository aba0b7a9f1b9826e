#include "transports/connection/hop_keys.h"

#include <array>

#include "core/trust/derive.h"
#include "transports/connection/hop_trust.h"

namespace ccixfer::connection {
namespace {

constexpr std::string_view exporter_label = "EXPORTER-ccixfer-hop";

trust::Secret key_of(const trust::Secret& from, std::string_view label, trust::HandshakeSide sender) {
  const std::array<std::byte, 1> context = {static_cast<std::byte>(sender)};
  return trust::derive(from, label, context);
}

}  // namespace

HopKeys make_hop_keys(const trust::Handshake& handshake, trust::HandshakeSide side, std::string_view label) {
  using trust::HandshakeSide;
  const HandshakeSide other = side == HandshakeSide::dialler ? HandshakeSide::acceptor : HandshakeSide::dialler;
  const trust::Secret secret = handshake.exported(exporter_label);
  const trust::Cipher cipher = handshake.cipher();
  return {trust::SealKey(cipher, key_of(secret, label, side), trust::SealKey::Use::seal),
          trust::SealKey(cipher, key_of(secret, label, other), trust::SealKey::Use::open), cipher, handshake.peer(),
          proved_name(handshake.peer())};
}

}  // namespace ccixfer::connection
