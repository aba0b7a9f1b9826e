// Judges the certificate that a peer shows, by the rules of handshake.h. That the peer has the key is TLS's to prove.
// Thread: any; it changes nothing.
#pragma once
#include <cstdint>
#include <string>

#include "core/trust/handshake.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

struct ShownCertificate {
  X509Ptr certificate;
  X509StackPtr intermediates;  // that came with it; may be null
  HandshakeSide judge = HandshakeSide::dialler;
};

struct Verdict {
  int x509_error = X509_V_OK;  // chooses the alert that tells the peer
  std::string why;             // empty: accepted
  ProvedPeer peer;
};

// `intermediates` came with it and may be null. `judge` is our side: the peer of a dialler must be a server.
[[nodiscard]] Verdict judge_certificate(X509* certificate, STACK_OF(X509) * intermediates, HandshakeSide judge,
                                        const Authority* authority, int64_t wall_time_s);

}  // namespace ccixfer::trust
