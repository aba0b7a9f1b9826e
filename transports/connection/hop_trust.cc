#include "transports/connection/hop_trust.h"

namespace ccixfer::connection {
namespace {

constexpr std::string_view id_prefix = "cx1";

}  // namespace

void HopTrust::sent_away(std::string_view /*uri*/, const trust::ProvedPeer* /*peer*/, const Error& /*error*/) {}

std::string proved_name(const trust::ProvedPeer& peer) {
  const bool has_name = peer.certified && !peer.names.empty() && !peer.names.front().empty();
  return has_name && !peer.names.front().starts_with(id_prefix) ? peer.names.front() : trust::to_string(peer.id);
}

std::string_view to_string(trust::Cipher cipher) {
  switch (cipher) {
    case trust::Cipher::aes_256_gcm:
      return "aes-256-gcm";
    case trust::Cipher::chacha20_poly1305:
      return "chacha20-poly1305";
  }
  return "";
}

Status status_of(const Error& error) {
  if (error.kind == ErrorKind::not_authorised) return Status::not_authorised;
  return error.kind == ErrorKind::authentication ? Status::not_authenticated : Status::version;
}

}  // namespace ccixfer::connection
