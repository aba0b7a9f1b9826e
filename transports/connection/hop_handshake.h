// The handshake of one hop: both ends prove who they are, and then have a key for each direction. How the bytes of TLS travel, and
// what is sealed how, is the transport's.
// Errors: step(): of trust::Handshake; protocol: a handshake that is over goes on. Bounds: trust::handshake_bytes_max from the
// peer. Private to the transports; single-threaded. Source: README.md 'Who the peer is'; core/trust/README.md.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/trust/handshake.h"
#include "transports/connection/hop_keys.h"

namespace ccixfer::connection {

class HopHandshake {
 public:
  // `key_label`: a constant of the transport.
  HopHandshake(trust::HandshakeOptions options, std::string_view key_label);

  // Takes what TLS on the other side said (the dialler's first step: nothing). take_output() has the answer, also after an error.
  [[nodiscard]] Result<void> step(Bytes records);
  [[nodiscard]] std::vector<std::byte> take_output();

  // From now on both directions are sealed.
  [[nodiscard]] bool has_keys() const { return keys_.has_value(); }
  [[nodiscard]] HopKeys& keys() { return *keys_; }  // has_keys() only
  [[nodiscard]] const HopKeys& keys() const { return *keys_; }

  // Something that the peer sealed has opened: it has the keys too, and the handshake is over. Before, it may still refuse our
  // proof.
  void confirm() { handshake_.reset(); }
  [[nodiscard]] bool is_confirmed() const { return handshake_ == nullptr; }

 private:
  const trust::HandshakeSide side_;
  const std::string_view key_label_;
  std::unique_ptr<trust::Handshake> handshake_;
  std::optional<HopKeys> keys_;
};

}  // namespace ccixfer::connection
