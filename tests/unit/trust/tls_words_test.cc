// Errors of OpenSSL that no peer made of OpenSSL can bring about, given to the words directly.
#include "core/trust/tls_words.h"

#include <catch2/catch.hpp>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {
namespace {

Error after(int library, int reason) {
  const CleanErrors clean;
  ERR_raise(library, reason);
  return handshake_error();
}

TEST_CASE("tls_words__what_is_wrong_with_a_certificate_or_a_proof__authentication") {
  for (const auto& [reason, part] : {std::pair(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "shows no certificate"),
                                     {SSL_R_BAD_SIGNATURE, "changed on the way"},
                                     {SSL_R_DIGEST_CHECK_FAILED, "changed on the way"},
                                     {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, "changed on the way"},
                                     {SSL_R_CERTIFICATE_VERIFY_FAILED, "certificate is damaged"},
                                     {SSL_R_CERT_LENGTH_MISMATCH, "certificate is damaged"},
                                     {ERR_R_ASN1_LIB, "certificate is damaged"},
                                     {SSL_R_UNKNOWN_CERTIFICATE_TYPE, "key is of a kind that is not taken"},
                                     {SSL_R_UNABLE_TO_FIND_PUBLIC_KEY_PARAMETERS, "key is of a kind that is not taken"}}) {
    const Error error = after(ERR_LIB_SSL, reason);
    INFO(error.message);
    CHECK(error.kind == ErrorKind::authentication);
    CHECK(error.message.find(part) != std::string::npos);
  }
}

TEST_CASE("tls_words__everything_else__protocol") {
  for (const Error& error : {after(ERR_LIB_SSL, SSL_R_UNSUPPORTED_PROTOCOL), after(ERR_LIB_SSL, SSL_R_UNEXPECTED_MESSAGE),
                             after(ERR_LIB_ASN1, 1), after(ERR_LIB_SSL, 999), handshake_error()}) {
    INFO(error.message);
    CHECK(error.kind == ErrorKind::protocol);
    CHECK(error.message.rfind("the peer speaks no TLS 1.3 of ccixfer: ", 0) == 0);
  }
}

TEST_CASE("tls_words__each_alert_of_rfc_8446__authentication_if_it_is_about_proofs") {
  for (int alert = 0; alert < 256; ++alert) {
    const Error error = after(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + alert);
    INFO(alert << " " << error.message);
    bool about_proofs = false;
    for (const int each : {20, 42, 43, 44, 45, 46, 48, 49, 51, 113, 116}) about_proofs = about_proofs || each == alert;
    CHECK((error.kind == ErrorKind::authentication) == about_proofs);
    CHECK((error.kind == ErrorKind::protocol) != about_proofs);
  }
  CHECK(after(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED).message.find("we showed none") != std::string::npos);
}

}  // namespace
}  // namespace ccixfer::trust
