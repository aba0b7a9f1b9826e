// What identities and authorities are made of, for the .cc files of this room.
#pragma once

#include "core/trust/identity.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

struct Identity::Impl {
  PkeyPtr key;
  X509Ptr certificate;
  X509StackPtr chain;  // what an authority signed between ours and its own certificate; may be null
  SslCtxPtr tls;       // making one costs as much as a handshake, so it is made once
  PeerId id;
  bool own_certificate = false;
};

struct Authority::Impl {
  StorePtr store;  // its certificates and lists
  bool has_lists = false;
};

// Of the key in a certificate, as it is encoded there.
[[nodiscard]] PeerId peer_id_of(const X509* certificate);

}  // namespace ccixfer::trust
