#include "core/trust/x509_words.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::trust {
namespace {

constexpr size_t shown_bytes_max = 80;

std::string shown(const unsigned char* text, int length) {
  const std::string_view all(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
  return fmt::format("'{}'", printable(all.substr(0, shown_bytes_max)));
}

}  // namespace

std::string name_of(const X509_NAME* name) {
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at >= 0) {
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    const std::unique_ptr<unsigned char, FreedMemory> owner(utf8);
    if (length > 0) return shown(utf8, length);
  }
  const std::unique_ptr<char, FreedMemory> line(X509_NAME_oneline(name, nullptr, 0));
  if (line == nullptr) return "''";
  return shown(reinterpret_cast<const unsigned char*>(line.get()), static_cast<int>(std::string_view(line.get()).size()));
}

std::string day_of(const ASN1_TIME* time) {
  const std::unique_ptr<ASN1_GENERALIZEDTIME, FreedBy<ASN1_GENERALIZEDTIME_free>> general(
      time == nullptr ? nullptr : ASN1_TIME_to_generalizedtime(time, nullptr));
  if (general == nullptr || ASN1_STRING_length(general.get()) < 8) return "no date";
  const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(general.get())), 8);  // YYYYMMDD
  return fmt::format("{}-{}-{}", text.substr(0, 4), text.substr(4, 2), text.substr(6, 2));
}

std::string why_refused(int error, const X509* at, int depth, std::string_view list_day) {
  const std::string whose = depth == 0 || at == nullptr
                                ? "the peer's certificate"
                                : fmt::format("the certificate of the authority {}", name_of(X509_get_subject_name(at)));
  const auto issuer = [&] { return at == nullptr ? "''" : name_of(X509_get_issuer_name(at)); };
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("{} has expired ({}): renew it", whose, day_of(at == nullptr ? nullptr : X509_get0_notAfter(at)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} is not valid before {}: check the clocks", whose,
                         day_of(at == nullptr ? nullptr : X509_get0_notBefore(at)));
    case X509_V_ERR_CERT_REVOKED:
      return fmt::format("{} is revoked: get a new one", whose);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_UNTRUSTED:
      return fmt::format("{} is signed by an authority that we do not know ({}): both sides need the same authority", whose,
                         issuer());
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("{} was not signed by {}, whose name it bears: get a new one", whose, issuer());
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_CERT_REJECTED:
      return depth == 0 ? "the peer's certificate is not for this purpose (extended key usage): get one for TLS servers and clients"
                        : fmt::format("{} may not sign others: get a chain from the authority", whose);
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
      return fmt::format("{} may not sign others: get a chain from the authority", whose);
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
      return fmt::format("the key of {} is too weak: use RSA of 2048 bits or more, EC or Ed25519", whose);
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return fmt::format("the signature of {} is too weak: have it signed with SHA-256", whose);
    case X509_V_ERR_UNABLE_TO_GET_CRL:
      return fmt::format("there is no revocation list of {}, which signed {}: add it to our lists", issuer(), whose);
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return fmt::format("our revocation list of {} has expired ({}): fetch a new one", issuer(), list_day);
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return fmt::format("our revocation list of {} is not valid before {}: check the clock", issuer(), list_day);
    default:
      return fmt::format("{} is not accepted: {}: get a new one", whose, X509_verify_cert_error_string(error));
  }
}

}  // namespace ccixfer::trust
