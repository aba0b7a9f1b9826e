#include "transports/connection/hop_handshake.h"

#include <utility>

namespace ccixfer::connection {

HopHandshake::HopHandshake(trust::HandshakeOptions options, std::string_view key_label)
    : side_(options.side), key_label_(key_label), handshake_(std::make_unique<trust::Handshake>(std::move(options))) {}

Result<void> HopHandshake::step(Bytes records) {
  if (is_confirmed()) return fail(ErrorKind::protocol, "a handshake that is over goes on");
  Result<void> stepped = handshake_->step(records);
  if (stepped && !keys_ && handshake_->done()) keys_.emplace(make_hop_keys(*handshake_, side_, key_label_));
  return stepped;
}

std::vector<std::byte> HopHandshake::take_output() { return is_confirmed() ? std::vector<std::byte>{} : handshake_->take_output(); }

}  // namespace ccixfer::connection
