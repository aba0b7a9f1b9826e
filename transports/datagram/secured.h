// What a connection with proved ends has beside a plain one: what TLS says in both directions, and then the keys of its packets.
// Datagrams get lost, so what TLS says is a stream of bytes with offsets in each direction, of which all that has not arrived is
// sent again when it is due. The first sealed packet that opens shows that the peer has everything.
// Guarantees: a packet opens if the peer sealed it, unchanged, header included; whether it came before is the receive ledger's
// question. The caller never seals two packets with one number.
// Errors: arrived(): of connection::HopHandshake. open(): false. Bounds: trust::handshake_bytes_max from the peer; of ours, what
// one handshake says. Private to this room; single-threaded. Source: README.md 'Secured connections'.
#pragma once
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/trust/handshake.h"
#include "transports/connection/hop_handshake.h"

namespace ccixfer::datagram {

class Secured {
 public:
  explicit Secured(trust::HandshakeOptions options);

  // The dialler's first words.
  [[nodiscard]] Result<void> begin();
  // A piece of what the peer says. What has come before is passed over, and so is what leaves a gap: it comes again.
  [[nodiscard]] Result<void> arrived(uint32_t offset_bytes, Bytes bytes);
  [[nodiscard]] uint32_t arrived_bytes() const { return arrived_bytes_; }
  // So much of ours has arrived there. false: more than we have said.
  [[nodiscard]] bool told(uint32_t bytes);

  // What we have said and the peer may not have.
  [[nodiscard]] Bytes unheard() const { return Bytes(said_).subspan(heard_bytes_); }
  [[nodiscard]] uint32_t heard_bytes() const { return heard_bytes_; }
  void sent(Instant now);  // unheard(), whole
  [[nodiscard]] Instant resend_at() const { return unheard().empty() ? never : resend_at_; }

  [[nodiscard]] bool has_keys() const { return hop_.has_keys(); }
  // A packet of the peer's has opened, so it has all that we said, and the handshake is over.
  [[nodiscard]] bool is_confirmed() const { return hop_.is_confirmed(); }

  // With keys only.
  [[nodiscard]] const std::string& peer_name() const { return hop_.keys().name; }
  [[nodiscard]] const trust::ProvedPeer& peer() const { return hop_.keys().peer; }
  [[nodiscard]] trust::Cipher cipher() const { return hop_.keys().cipher; }
  // Encrypts `text` in its place. `header` is authenticated with it.
  [[nodiscard]] trust::Tag seal(uint64_t number, Bytes header, MutableBytes text);
  [[nodiscard]] bool open(uint64_t number, Bytes header, MutableBytes text, const trust::Tag& tag);

  // Nothing is under way: the keys take less memory until the next packet. is_confirmed() only.
  void rest();

 private:
  [[nodiscard]] Result<void> step(Bytes bytes);

  connection::HopHandshake hop_;
  std::vector<std::byte> said_;
  uint32_t heard_bytes_ = 0;
  uint32_t arrived_bytes_ = 0;
  Instant resend_at_ = never;
  Duration pause_;
};

}  // namespace ccixfer::datagram
