// What a Link knows of keys: the handshake of its session, and the seal of its messages. It belongs to one Link and knows no
// connections.
//
// The dialler speaks first. Handshake parts travel as session messages without a seal; every message after them is sealed. An Abort
// without a seal is heard for as long as the peer has not shown that it has the keys, since a peer that refuses us never has them.
// Whoever is on the way can forge it, but could as well cut the connection; so of its kinds only those count that a refused
// handshake has.
//
// Whoever is on the way can make up handshake parts as well, or cut the real ones otherwise. One that takes the number of a sealed
// message would delete that message, as it then counts as a second copy. So messages without a seal come in order, none may stand
// between the handshake and a sealed message, and the keys of the messages depend on how many parts each end has sent.
// Errors: authentication and protocol, from the handshake; integrity: a sealed message was changed on its way.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "app/session/lane_admission.h"
#include "app/session/message_seal.h"
#include "app/session/messages.h"
#include "app/session/session_keys.h"
#include "core/trust/handshake.h"

namespace ccixfer::session {

// Who we are in a session, and whose certificates we believe.
struct SealSetup {
  trust::Identity identity;
  std::optional<trust::Authority> authority;
  std::function<int64_t()> wall_time_s;  // since 1970
};

// The seal of the lane messages of one connection.
class LaneSeal {
 public:
  LaneSeal(const SessionKeys& keys, uint16_t lane, uint64_t dial);
  [[nodiscard]] std::vector<std::byte> seal(Bytes encoded);
  [[nodiscard]] std::optional<std::vector<std::byte>> open(Bytes bytes);  // the next one; nullopt: it is not, or was changed

 private:
  trust::SealKey out_;
  trust::SealKey in_;
  uint64_t next_out_ = 0;
  uint64_t next_in_ = 0;
};

// Which connection it is, and its seal once the first lane message goes or comes.
struct LaneSealing {
  uint16_t lane = 0;
  uint64_t dial = 0;  // Hello::dial
  std::optional<LaneSeal> seal;
};

class ControlReceiver;

class LinkSeal {
 public:
  explicit LinkSeal(SealSetup setup) : setup_(std::move(setup)) {}

  // A connection is there. Does nothing after the first time. Says what to post.
  [[nodiscard]] std::vector<Message> start(bool dialled);
  // A handshake part of the peer. `out` gets what to post, also when it fails.
  [[nodiscard]] Result<void> step(const HandshakePart& part, std::vector<Message>& out);

  [[nodiscard]] bool is_done() const { return keys_ != nullptr; }
  // After is_done():
  [[nodiscard]] const trust::ProvedPeer& peer() const { return handshake_->peer(); }
  [[nodiscard]] const SessionKeys& keys() const { return *keys_; }
  [[nodiscard]] TransferId transfer_key(const TransferId& transfer) const;

  [[nodiscard]] std::vector<std::byte> seal(uint64_t sequence, Bytes encoded);  // of a session message
  [[nodiscard]] LaneSeal& of(LaneSealing& lane) const;
  // What the peer sent over that connection, out of its seal. `receiver` knows which session messages it has had.
  [[nodiscard]] Result<Decoded> take(Bytes bytes, LaneSealing& lane, const ControlReceiver& receiver);

  // The dialler's number for its next connection, and its proof.
  void prove(Hello& hello);
  // Judges a Hello with the session's number. It is repeated if its dial number is not above those of the lane before: a router may
  // ask twice for one connection, when the first way goes, and no two connections of a lane may have the same keys.
  [[nodiscard]] LaneAdmission admits(const Hello& hello);

 private:
  [[nodiscard]] std::vector<Message> flight();
  [[nodiscard]] Result<Decoded> take_plain(Bytes bytes, const ControlReceiver& receiver) const;
  [[nodiscard]] Result<Decoded> open_session_message(Bytes bytes, uint64_t number);
  [[nodiscard]] Result<Decoded> open_lane_message(Bytes bytes, LaneSealing& lane) const;

  SealSetup setup_;
  bool dialled_ = false;
  std::unique_ptr<trust::Handshake> handshake_;
  std::unique_ptr<SessionKeys> keys_;
  std::optional<trust::SealKey> out_;
  std::optional<trust::SealKey> in_;
  uint32_t parts_out_ = 0;        // handshake parts that we have sent
  uint32_t parts_in_ = 0;         // handshake parts of the peer
  bool peer_has_keys_ = false;    // the peer has sealed a message
  bool part_after_keys_ = false;  // a part came after we had the keys: a peer that refuses us sends one, and never has keys
  uint64_t dials_ = 0;
  std::vector<uint64_t> last_dials_;  // of each lane
};

}  // namespace ccixfer::session
