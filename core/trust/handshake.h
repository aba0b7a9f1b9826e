// One mutual TLS 1.3 handshake whose records travel in whatever the caller likes (memory BIOs): session messages end to end, frames
// hop by hop. Only the handshake is TLS; afterwards both ends derive keys from its exporter and TLS is over.
//
// TLS 1.3 only, ALPN `ccixfer/1`, no resumption, no early data, no session tickets, X25519 or P-256. Each side must show a
// certificate. This object proves that the peer has the key of its certificate, and it checks a certificate that an authority
// signed against ours. It decides nothing else: who is allowed is the caller's question, about peer().
//
// The certificate of a peer is judged so:
// - signed by its own key: the peer is known by the key. Its dates mean nothing.
// - otherwise, and we have an authority: the chain, the dates (at wall_time_s), the revocation list and the purpose are checked; a
//   failure ends the handshake with authentication and says why (expired, not yet valid, revoked, unknown authority).
// - otherwise, without an authority: the peer is known by the key.
// Errors: protocol: it is no TLS 1.3 of this kind. authentication: a certificate or a proof failed. A peer's bytes never do more.
// Bounds: handshake_bytes_max from the peer.
// Source: RFC 8446; exporters: section 7.5. core/trust/README.md 'The handshake'.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/trust/identity.h"
#include "core/trust/peer_id.h"
#include "core/trust/secret.h"

namespace ccixfer::trust {

inline constexpr size_t handshake_bytes_max = 64u << 10;

enum class HandshakeSide : uint8_t { dialler /* the TLS client */, acceptor };

// The cipher that seals what follows the handshake. TLS negotiates it by what both processors do well.
enum class Cipher : uint8_t { aes_256_gcm = 0, chacha20_poly1305 = 1 };

// What a certified peer showed. Immutable.
struct ShownCertificate;

struct ProvedPeer {
  PeerId id;
  bool certified = false;          // our authority vouches for the certificate
  std::vector<std::string> names;  // of a certified peer: its DNS names and addresses (subjectAltName), lower case
  std::shared_ptr<const ShownCertificate> shown = {};  // of a certified peer
};

// Judges a certified peer anew, long after its handshake: its certificate may have expired, and there may be other lists by now.
// "": our authority vouches for it still, or the peer is known by its key alone. Else the words why not. It takes about as long as
// a handshake. Thread: any.
[[nodiscard]] std::string why_no_longer(const ProvedPeer& peer, const std::optional<Authority>& authority, int64_t wall_time_s);

struct HandshakeOptions {
  HandshakeSide side = HandshakeSide::dialler;
  Identity identity;
  std::optional<Authority> authority;
  int64_t wall_time_s = 0;        // since 1970, for the dates of certificates
  std::optional<Cipher> prefers;  // nothing: what this processor does best
};

class Handshake {
 public:
  explicit Handshake(HandshakeOptions options);
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Takes what the peer sent, any pieces of it (nothing: the dialler's first step). take_output() has what to send then, also after
  // an error (the alert that tells the peer). An error is for good.
  // A dialler is done before the acceptor has judged it. An acceptor that refuses says so in an alert: step() takes it after done()
  // too, and tells why. Anything else after done() is a protocol error.
  [[nodiscard]] Result<void> step(Bytes from_peer);
  [[nodiscard]] std::vector<std::byte> take_output();
  [[nodiscard]] bool done() const;  // this side needs nothing more from the peer

  // After done():
  [[nodiscard]] const ProvedPeer& peer() const;
  [[nodiscard]] Cipher cipher() const;
  // Both sides get the same secret, and nobody else does. `label` is a constant of ours.
  [[nodiscard]] Secret exported(std::string_view label) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::trust
