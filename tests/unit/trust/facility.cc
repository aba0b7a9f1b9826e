#include "tests/unit/trust/facility.h"

#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <catch2/catch.hpp>

namespace ccixfer::trust {
namespace {

template <typename Write>
std::string pem_by(Write write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  REQUIRE(write(bio.get()) == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(length)};
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context{};
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  REQUIRE(extension != nullptr);
  REQUIRE(X509_add_ext(certificate, extension.get(), -1) == 1);
}

void add_names(X509* certificate, const IssueOptions& options) {
  NamesPtr names(GENERAL_NAMES_new());
  X509V3_CTX context{};
  X509V3_set_ctx_nodb(&context);
  if (!options.alt_names.empty()) {
    const std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, options.alt_names.c_str()));
    REQUIRE(extension != nullptr);
    names.reset(static_cast<GENERAL_NAMES*>(X509V3_EXT_d2i(extension.get())));
  }
  if (!options.raw_dns_name.empty()) {
    GENERAL_NAME* name = GENERAL_NAME_new();
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    REQUIRE(ASN1_STRING_set(text, options.raw_dns_name.data(), static_cast<int>(options.raw_dns_name.size())) == 1);
    GENERAL_NAME_set0_value(name, GEN_DNS, text);
    sk_GENERAL_NAME_push(names.get(), name);
  }
  if (sk_GENERAL_NAME_num(names.get()) == 0) return;
  REQUIRE(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_APPEND) == 1);
}

void sign(X509* certificate, EVP_PKEY* key, const EVP_MD* digest) {
  REQUIRE(X509_sign(certificate, key, EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : digest) > 0);
}

// All but the signature.
Issued unsigned_certificate(const IssueOptions& options, X509* issuer) {
  static long serial = 1000;
  Issued issued;
  issued.key = make_key(options.key);
  issued.certificate.reset(X509_new());
  X509* certificate = issued.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  const TimePtr before(ASN1_TIME_set(nullptr, options.not_before_s)), after(ASN1_TIME_set(nullptr, options.not_after_s));
  X509_set1_notBefore(certificate, before.get());
  X509_set1_notAfter(certificate, after.get());
  X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.name.data()), static_cast<int>(options.name.size()), -1,
                             0);
  X509* from = issuer == nullptr ? certificate : issuer;
  X509_set_issuer_name(certificate, X509_get_subject_name(from));
  X509_set_pubkey(certificate, issued.key.get());
  add_extension(certificate, from, NID_basic_constraints, options.constraints);
  add_extension(certificate, from, NID_ext_key_usage, options.purposes);
  add_names(certificate, options);
  return issued;
}

IssueOptions of_authority(const std::string& name, IssueOptions options) {
  options.name = name;
  options.alt_names.clear();
  options.purposes.clear();
  if (options.constraints == IssueOptions().constraints) options.constraints = "critical,CA:TRUE";
  return options;
}

}  // namespace

PkeyPtr make_key(const std::string& kind) {
  PkeyPtr key;
  if (kind.starts_with("RSA:"))
    key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<size_t>(std::stoul(kind.substr(4)))));
  if (kind.starts_with("EC:")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", kind.substr(3).c_str()));
  if (kind == "ED25519" || kind == "ED448") key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, kind.c_str()));
  REQUIRE(key != nullptr);
  return key;
}

std::string pem_of(EVP_PKEY* key) {
  return pem_by([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}
std::string pem_of(X509* certificate) {
  return pem_by([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}
std::string der_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate, &der);
  REQUIRE(length > 0);
  const std::unique_ptr<unsigned char, FreedMemory> owner(der);
  return {reinterpret_cast<const char*>(der), static_cast<size_t>(length)};
}

std::string Issued::certificate_pem() const { return pem_of(certificate.get()) + chain_pem; }
std::string Issued::key_pem() const { return pem_of(key.get()); }

Facility::Facility(const std::string& name, const Facility* above, IssueOptions options) : root_(above == nullptr) {
  options = of_authority(name, std::move(options));
  own_ = above == nullptr ? self_signed(options) : above->issue(options);
}

Issued Facility::issue(const IssueOptions& options) const {
  Issued issued = unsigned_certificate(options, own_.certificate.get());
  sign(issued.certificate.get(), own_.key.get(), options.digest);
  if (!root_) issued.chain_pem = own_.certificate_pem();
  return issued;
}

std::string Facility::revocation_list(std::initializer_list<const Issued*> revoked, int64_t this_update_s,
                                      int64_t next_update_s) const {
  const CrlPtr list(X509_CRL_new());
  X509_CRL_set_version(list.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(own_.certificate.get()));
  const TimePtr from(ASN1_TIME_set(nullptr, this_update_s)), until(ASN1_TIME_set(nullptr, next_update_s));
  X509_CRL_set1_lastUpdate(list.get(), from.get());
  X509_CRL_set1_nextUpdate(list.get(), until.get());
  for (const Issued* each : revoked) {
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(each->certificate.get()));
    X509_REVOKED_set_revocationDate(entry, from.get());
    X509_CRL_add0_revoked(list.get(), entry);
  }
  REQUIRE(X509_CRL_sign(list.get(), own_.key.get(), EVP_sha256()) > 0);
  return pem_by([&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, list.get()); });
}

Issued self_signed(const IssueOptions& options) {
  Issued issued = unsigned_certificate(options, nullptr);
  sign(issued.certificate.get(), issued.key.get(), options.digest);
  return issued;
}

}  // namespace ccixfer::trust
