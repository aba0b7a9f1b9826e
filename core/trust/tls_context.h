// What all handshakes of one identity share: an SSL_CTX with our version, ciphers and rules, and the callbacks that OpenSSL calls.
// Source: RFC 8446. core/trust/README.md 'The handshake'.
#pragma once
#include <cstdint>
#include <optional>

#include "core/trust/handshake.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

// What the callbacks know of one handshake, and what they found out. It is the SSL's app data.
struct TlsPeer {
  HandshakeSide side = HandshakeSide::dialler;
  const Authority* authority = nullptr;
  int64_t wall_time_s = 0;
  std::optional<ProvedPeer> judged;  // its certificate was accepted
  std::optional<Error> refused;      // why a callback ended the handshake
};

// Null: OpenSSL refuses something of it, and its queue of errors says what. The objects are shared with it and stay the caller's;
// `chain` may be null. Thread: any number may make handshakes of it at the same time.
[[nodiscard]] SslCtxPtr make_tls_context(X509* certificate, STACK_OF(X509) * chain, EVP_PKEY* key);
[[nodiscard]] bool alpn_agreed(const SSL* ssl);
// The ciphers in the order of preference, for SSL_set_ciphersuites.
[[nodiscard]] const char* cipher_order(Cipher first);
// What this processor does best.
[[nodiscard]] Cipher fastest_cipher();

}  // namespace ccixfer::trust
