// The keys of one session. Both ends derive the same ones from the exporter of the session's handshake; nobody between them can.
// Each key seals in one direction and for one purpose, and its owner counts what it seals:
//
//   messages       session messages: their sequence numbers
//   lane messages  those of one connection of a lane: their place in that connection
//   puts           the trailers of the puts of one lane session: n
//   data           the data of segments: a number of its own for each filled segment
//   lane proof     no key for sealing: it proves in a Hello that a connection belongs to the session
//   ticket         no key for sealing: a ticket's secret is bound to it (core/trust/ticket.h)
//
// A connection of a lane is named by the lane and its dial number, which the dialler never uses twice in a session and the acceptor
// takes only in ascending order. So no connection ever has the keys of another one.
// Source: RFC 5869 (HKDF); app/session/README.md 'The seal'.
#pragma once
#include <cstdint>

#include "app/session/messages.h"
#include "core/trust/derive.h"
#include "core/trust/handshake.h"
#include "core/trust/seal_key.h"

namespace ccixfer::session {

class SessionKeys {
 public:
  using Use = trust::SealKey::Use;
  // `dialled`: this end dialled. The handshake is done.
  SessionKeys(const trust::Handshake& handshake, bool dialled);

  // `parts`: how many handshake parts the end has sent that seals with this key.
  [[nodiscard]] trust::SealKey messages(uint32_t parts, Use use) const;
  [[nodiscard]] trust::SealKey lane_messages(uint16_t lane, uint64_t dial, Use use) const;
  [[nodiscard]] trust::SealKey puts(uint64_t lane_session, Use use) const;
  [[nodiscard]] trust::SealKey data(Use use) const;
  // Of a Hello with the session's number, whichever end asks.
  [[nodiscard]] trust::Mac lane_proof(const Hello& hello) const;
  [[nodiscard]] const trust::Secret& ticket() const { return ticket_; }

 private:
  [[nodiscard]] trust::SealKey key(std::string_view purpose, Bytes what, Use use) const;

  trust::Cipher cipher_;
  bool dialled_;
  trust::Secret sealing_;
  trust::Secret proving_;
  trust::Secret ticket_;
};

}  // namespace ccixfer::session
