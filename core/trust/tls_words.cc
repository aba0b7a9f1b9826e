#include "core/trust/tls_words.h"

#include <fmt/format.h>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {
namespace {

constexpr int alert_max = 255;

Error authentication(std::string message) { return Error{ErrorKind::authentication, std::move(message)}; }

// RFC 8446, section 6.2. The peer's own line has the details; an alert has no room for them.
const char* why_peer_refused(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
      return "it is damaged, not valid yet or wrongly signed";
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
      return "it is not for this purpose";
    case SSL_AD_CERTIFICATE_REVOKED:
      return "it is revoked";
    case SSL_AD_CERTIFICATE_EXPIRED:
      return "it has expired";
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_BAD_CERTIFICATE_STATUS_RESPONSE:
      return "it cannot be checked";
    case SSL_AD_UNKNOWN_CA:
      return "the peer does not know the authority that signed it";
    case SSL_AD_ACCESS_DENIED:
      return "access is denied";
    case SSL_AD_CERTIFICATE_REQUIRED:
      return "we showed none";
    default:
      return nullptr;
  }
}

Error error_of_alert(int alert) {
  if (const char* why = why_peer_refused(alert)) {
    return authentication(fmt::format("the peer refused our certificate: {}: the peer's own message says more", why));
  }
  if (alert == SSL_AD_DECRYPT_ERROR || alert == SSL_AD_BAD_RECORD_MAC) {
    return authentication("the peer says that the handshake was changed on the way: try again, and ask who forwards it");
  }
  return no_tls_of_ours(fmt::format("it ended the handshake with '{}'", SSL_alert_desc_string_long(alert)));
}

}  // namespace

Error no_tls_of_ours(std::string_view why) {
  return Error{ErrorKind::protocol,
               fmt::format("the peer speaks no TLS 1.3 of ccixfer: {}: compare the address and the versions", why)};
}

Error handshake_error() {
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return no_tls_of_ours("its bytes make no sense");
  if (reason >= SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + alert_max)
    return error_of_alert(reason - SSL_AD_REASON_OFFSET);
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return authentication("the peer shows no certificate: give it an identity");
    case SSL_R_BAD_SIGNATURE:
    case SSL_R_DIGEST_CHECK_FAILED:
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
      return authentication("the handshake was changed on the way, or the peer has not the key of its certificate: try again");
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_CERT_LENGTH_MISMATCH:
    case ERR_R_ASN1_LIB:
      return authentication("the peer's certificate is damaged: get a new one");
    case SSL_R_UNKNOWN_CERTIFICATE_TYPE:
    case SSL_R_UNABLE_TO_FIND_PUBLIC_KEY_PARAMETERS:
      return authentication("the peer's key is of a kind that is not taken: use Ed25519, RSA or EC on P-256");
    default:
      break;
  }
  const char* words = ERR_reason_error_string(error);
  return no_tls_of_ours(words == nullptr ? "its bytes make no sense" : words);
}

}  // namespace ccixfer::trust
