// Who we are: a private key and the certificate that carries its public key in handshakes.
// `ccixfer keygen` makes an Ed25519 key, whose certificate is made anew from the key each time: it is signed by the key itself,
// always the same bytes, and valid for all times, since the key is what peers know. A facility can use a certificate of its own
// authority instead (RSA, EC or Ed25519), with the chain behind it.
// Errors: usage, in one line that names `what` (the file), for a PEM of the wrong kind, a damaged one, a key that needs a
// passphrase, a certificate that is not the key's. Messages never contain key material.
// Thread: immutable after construction; shared freely.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/trust/peer_id.h"

namespace ccixfer::trust {

class Identity {
 public:
  [[nodiscard]] static Result<Identity> generate();  // usage: OpenSSL, as this host has set it up, offers no Ed25519
  // `what` names the file in messages.
  [[nodiscard]] static Result<Identity> from_key(std::string_view key_pem, std::string_view what);
  [[nodiscard]] static Result<Identity> from_certificate(std::string_view certificate_pem, std::string_view certificate_what,
                                                         std::string_view key_pem, std::string_view key_what);

  [[nodiscard]] const PeerId& id() const;
  [[nodiscard]] std::string key_pem() const;       // PKCS #8, for keygen only
  [[nodiscard]] bool has_own_certificate() const;  // of a facility, and not made from the key
  // Words if peers of the same facility would refuse its certificates for their dates: 'has expired (2026-11-01)'; "": they hold.
  // Of one that is signed by its own key the dates mean nothing.
  [[nodiscard]] std::string out_of_date(int64_t wall_time_s) const;  // since 1970

  struct Impl;  // OpenSSL's objects, for handshake.cc
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit Identity(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// The authority whose certificates we believe, and its revocation list.
class Authority {
 public:
  // `crl_what` is empty: there is no list. A list that is empty is a mistake.
  [[nodiscard]] static Result<Authority> from_pem(std::string_view ca_pem, std::string_view ca_what, std::string_view crl_pem,
                                                  std::string_view crl_what);
  struct Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit Authority(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ccixfer::trust
