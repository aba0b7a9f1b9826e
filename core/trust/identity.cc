#include "core/trust/identity.h"

#include <fmt/format.h>
#include <openssl/pem.h>

#include <vector>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/key_kinds.h"
#include "core/trust/pem.h"
#include "core/trust/tls_context.h"
#include "core/trust/x509_words.h"

namespace ccixfer::trust {
namespace {

tl::unexpected<Error> wrong(std::string_view problem, std::string_view what, std::string_view to_do) {
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", problem, what, to_do));
}

TimePtr time_of(const char* text) {
  TimePtr time(ASN1_TIME_new());
  CHECK(time != nullptr && ASN1_TIME_set_string_X509(time.get(), text) == 1);
  return time;
}

// The same bytes for the same key, always: nothing in it is chosen, and signatures of Ed25519 have no chance in them. Its dates say
// 'always' (RFC 5280, section 4.1.2.5).
X509Ptr certificate_of(EVP_PKEY* key) {
  X509Ptr certificate(X509_new());
  CHECK(certificate != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  CHECK(ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1);
  CHECK(X509_set1_notBefore(certificate.get(), time_of("19700101000000Z").get()) == 1);
  CHECK(X509_set1_notAfter(certificate.get(), time_of("99991231235959Z").get()) == 1);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  CHECK(X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, reinterpret_cast<const unsigned char*>("ccixfer"), -1, -1,
                                   0) == 1);
  CHECK(X509_set_issuer_name(certificate.get(), name) == 1);
  CHECK(X509_set_pubkey(certificate.get(), key) == 1);
  CHECK(X509_sign(certificate.get(), key, nullptr) > 0);
  return certificate;
}

// Null: OpenSSL does not take the certificate, or cannot do on this host what we need.
std::shared_ptr<const Identity::Impl> finished(std::shared_ptr<Identity::Impl> impl) {
  impl->id = peer_id_of(impl->certificate.get());
  impl->tls = make_tls_context(impl->certificate.get(), impl->chain.get(), impl->key.get());
  if (impl->tls == nullptr) return nullptr;
  return impl;
}

Result<std::shared_ptr<const Identity::Impl>> finished(std::shared_ptr<Identity::Impl> impl, std::string_view what) {
  auto done = finished(std::move(impl));
  if (done != nullptr) return done;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());  // 'ca md too weak': signed with SHA-1
  return wrong(fmt::format("not taken for TLS 1.3 ({})", reason == nullptr ? "no reason given" : reason), what,
               "have it signed with SHA-256, or look into openssl.cnf");
}

Result<PkeyPtr> read_good_key(std::string_view key_pem, std::string_view what) {
  Result<PkeyPtr> key = read_key(key_pem, what);
  if (!key) return key;
  if (const std::string kind = why_key_is_refused(key->get()); !kind.empty()) {
    return wrong(fmt::format("a key that is not taken ({})", kind), what, "use Ed25519, RSA of 2048 bits or more, or EC on P-256");
  }
  return key;
}

}  // namespace

PeerId peer_id_of(const X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  CHECK(length > 0);
  const std::unique_ptr<unsigned char, FreedMemory> owner(der);
  return peer_id_of(std::as_bytes(std::span(der, static_cast<size_t>(length))));
}

Result<Identity> Identity::generate() {
  const CleanErrors clean;
  auto impl = std::make_shared<Impl>();
  impl->key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (impl->key == nullptr) {
    return wrong("no key can be made", "this OpenSSL offers no Ed25519 (FIPS mode?)",
                 "give a key and a certificate of another kind in [identity], or look into openssl.cnf");
  }
  impl->certificate = certificate_of(impl->key.get());
  auto done = finished(std::move(impl), "a new key");
  if (!done) return tl::unexpected(done.error());
  return Identity(*std::move(done));
}

Result<Identity> Identity::from_key(std::string_view key_pem, std::string_view what) {
  const CleanErrors clean;
  Result<PkeyPtr> key = read_good_key(key_pem, what);
  if (!key) return tl::unexpected(key.error());
  if (EVP_PKEY_get_base_id(key->get()) != EVP_PKEY_ED25519) {
    return wrong("a key that needs a certificate (it is not Ed25519)", what,
                 "give its certificate too, or make a key with ccixfer keygen");
  }
  auto impl = std::make_shared<Impl>();
  impl->key = *std::move(key);
  impl->certificate = certificate_of(impl->key.get());
  auto done = finished(std::move(impl), what);
  if (!done) return tl::unexpected(done.error());
  return Identity(*std::move(done));
}

Result<Identity> Identity::from_certificate(std::string_view certificate_pem, std::string_view certificate_what,
                                            std::string_view key_pem, std::string_view key_what) {
  const CleanErrors clean;
  Result<std::vector<X509Ptr>> certificates = read_certificates(certificate_pem, certificate_what);
  if (!certificates) return tl::unexpected(certificates.error());
  Result<PkeyPtr> key = read_good_key(key_pem, key_what);
  if (!key) return tl::unexpected(key.error());

  auto impl = std::make_shared<Impl>();
  impl->key = *std::move(key);
  impl->own_certificate = true;
  impl->certificate = std::move(certificates->front());
  if (X509_check_private_key(impl->certificate.get(), impl->key.get()) != 1) {
    return wrong("the first certificate is not that of the key", certificate_what, fmt::format("the key is in {}", key_what));
  }
  impl->chain.reset(sk_X509_new_null());
  for (size_t i = 1; i < certificates->size(); ++i) {
    CHECK(sk_X509_push(impl->chain.get(), (*certificates)[i].get()) > 0);
    static_cast<void>((*certificates)[i].release());
  }
  auto done = finished(std::move(impl), certificate_what);
  if (!done) return tl::unexpected(done.error());
  return Identity(*std::move(done));
}

const PeerId& Identity::id() const { return impl_->id; }

bool Identity::has_own_certificate() const { return impl_->own_certificate; }

std::string Identity::out_of_date(int64_t wall_time_s) const {
  const CleanErrors clean;
  if (!impl_->own_certificate || X509_self_signed(impl_->certificate.get(), 1) == 1) return {};
  const auto words_of = [wall_time_s](const X509* certificate) -> std::string {
    if (ASN1_TIME_cmp_time_t(X509_get0_notAfter(certificate), wall_time_s) < 0)
      return fmt::format("has expired ({})", day_of(X509_get0_notAfter(certificate)));
    if (ASN1_TIME_cmp_time_t(X509_get0_notBefore(certificate), wall_time_s) > 0)
      return fmt::format("is not valid before {}", day_of(X509_get0_notBefore(certificate)));
    return {};
  };
  std::string words = words_of(impl_->certificate.get());
  for (int i = 0; words.empty() && i < sk_X509_num(impl_->chain.get()); ++i) words = words_of(sk_X509_value(impl_->chain.get(), i));
  return words;
}

std::string Identity::key_pem() const {
  const CleanErrors clean;
  const BioPtr bio(BIO_new(BIO_s_mem()));  // wipes its memory when it is freed
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), impl_->key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(length)};
}

}  // namespace ccixfer::trust
