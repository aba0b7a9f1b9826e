#include "app/session/session_keys.h"

#include <vector>

#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

constexpr std::string_view sealing_label = "EXPORTER-ccixfer-session-sealing";
constexpr std::string_view proving_label = "EXPORTER-ccixfer-session-lanes";
constexpr std::string_view ticket_label = "EXPORTER-ccixfer-session-ticket";

}  // namespace

SessionKeys::SessionKeys(const trust::Handshake& handshake, bool dialled)
    : cipher_(handshake.cipher()),
      dialled_(dialled),
      sealing_(handshake.exported(sealing_label)),
      proving_(handshake.exported(proving_label)),
      ticket_(handshake.exported(ticket_label)) {}

// What this end seals the dialler's key is for if this end dialled, and what it opens is the other direction.
trust::SealKey SessionKeys::key(std::string_view purpose, Bytes what, Use use) const {
  const bool from_dialler = dialled_ == (use == Use::seal);
  std::vector<std::byte> context;
  wire::Writer out(context);
  out.u8(from_dialler ? 0 : 1);
  out.bytes(what);
  return {cipher_, trust::derive(sealing_, purpose, context), use};
}

trust::SealKey SessionKeys::messages(uint32_t parts, Use use) const {
  std::vector<std::byte> what;
  wire::Writer out(what);
  out.u32(parts);
  return key("messages", what, use);
}

trust::SealKey SessionKeys::lane_messages(uint16_t lane, uint64_t dial, Use use) const {
  std::vector<std::byte> what;
  wire::Writer out(what);
  out.u16(lane);
  out.u64(dial);
  return key("lane messages", what, use);
}

trust::SealKey SessionKeys::puts(uint64_t lane_session, Use use) const {
  std::vector<std::byte> what;
  wire::Writer out(what);
  out.u64(lane_session);
  return key("puts", what, use);
}

trust::SealKey SessionKeys::data(Use use) const { return key("data", {}, use); }

trust::Mac SessionKeys::lane_proof(const Hello& hello) const {
  std::vector<std::byte> what;
  wire::Writer out(what);
  out.bytes(std::as_bytes(std::span(hello.transfer)));
  out.u64(hello.session);
  out.u16(hello.lane);
  out.u64(hello.dial);
  out.u8(static_cast<uint8_t>(hello.direction));
  out.u8(hello.moves ? 1 : 0);
  return trust::mac(proving_, what);
}

}  // namespace ccixfer::session
