// A facility's authority for tests: certificates and revocation lists, good ones and bad ones, made by OpenSSL and not by the
// product.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

inline constexpr int64_t test_now_s = 1'800'000'000;  // 2027-01-15
inline constexpr int64_t day_s = 86'400;

struct IssueOptions {
  std::string key = "EC:P-256";  // or EC:CURVE, RSA:BITS, ED25519
  std::string name = "host";
  int64_t not_before_s = test_now_s - 365 * day_s;
  int64_t not_after_s = test_now_s + 365 * day_s;
  std::string alt_names = "DNS:DTN1.lab.example,IP:192.0.2.7,IP:2001:db8::7";  // of X509V3_EXT_conf; empty: none
  std::string purposes = "serverAuth,clientAuth";                              // extended key usage; empty: none
  std::string constraints = "critical,CA:FALSE";                               // basic; empty: none
  std::string raw_dns_name = {};                                               // one more name, any bytes
  const EVP_MD* digest = EVP_sha256();
};

struct Issued {
  X509Ptr certificate;
  PkeyPtr key;
  std::string chain_pem;                              // of the authorities between, the root not
  [[nodiscard]] std::string certificate_pem() const;  // with the chain
  [[nodiscard]] std::string key_pem() const;
};

[[nodiscard]] PkeyPtr make_key(const std::string& kind);
[[nodiscard]] std::string pem_of(EVP_PKEY* key);
[[nodiscard]] std::string pem_of(X509* certificate);
[[nodiscard]] std::string der_of(X509* certificate);

class Facility {
 public:
  // A root, or below `above`.
  explicit Facility(const std::string& name, const Facility* above = nullptr, IssueOptions options = {});
  [[nodiscard]] std::string pem() const { return pem_of(own_.certificate.get()); }
  [[nodiscard]] Issued issue(const IssueOptions& options = {}) const;
  // PEM; the certificates that it names are revoked.
  [[nodiscard]] std::string revocation_list(std::initializer_list<const Issued*> revoked,
                                            int64_t this_update_s = test_now_s - day_s,
                                            int64_t next_update_s = test_now_s + day_s) const;
  [[nodiscard]] const Issued& own() const { return own_; }

 private:
  Issued own_;
  bool root_;
};

// Signed by its own key, as `openssl req -x509` does.
[[nodiscard]] Issued self_signed(const IssueOptions& options);

}  // namespace ccixfer::trust
