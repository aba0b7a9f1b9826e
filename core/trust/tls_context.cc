#include "core/trust/tls_context.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/check.h"
#include "core/trust/peer_certificate.h"

namespace ccixfer::trust {
namespace {

constexpr std::string_view alpn = "\011ccixfer/1";  // with its length before it
constexpr int security_level = 2;                   // as for chains
constexpr const char* signatures =
    "ed25519:ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:"
    "rsa_pss_pss_sha256:rsa_pss_pss_sha384:rsa_pss_pss_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512";  // the last: in certificates only

TlsPeer& peer_of(const SSL* ssl) {
  auto* peer = static_cast<TlsPeer*>(SSL_get_app_data(ssl));
  CHECK(peer != nullptr);
  return *peer;
}

void refuse(TlsPeer& peer, ErrorKind kind, std::string why) {
  if (!peer.refused) peer.refused = Error{kind, std::move(why)};
}

constexpr const char* no_ccixfer = "the peer speaks TLS but not ccixfer: compare the address and the versions of both sides";

// Called on the acceptor, before all else. Without this a dialler that offers no ALPN would pass.
int at_client_hello(SSL* ssl, int* alert, void* /*unused*/) {
  const unsigned char* data = nullptr;
  size_t length = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &data, &length) == 1) {
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  refuse(peer_of(ssl), ErrorKind::protocol, no_ccixfer);
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return SSL_CLIENT_HELLO_ERROR;
}

// Called on the acceptor with what the dialler offers.
int select_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_length, const unsigned char* in, unsigned in_length,
                void* /*unused*/) {
  std::string_view offered(reinterpret_cast<const char*>(in), in_length);
  while (!offered.empty()) {
    const size_t whole = std::min<size_t>(1U + static_cast<unsigned char>(offered[0]), offered.size());
    if (offered.substr(0, whole) == alpn) {
      *out = reinterpret_cast<const unsigned char*>(offered.data()) + 1;
      *out_length = static_cast<unsigned char>(whole - 1);
      return SSL_TLSEXT_ERR_OK;
    }
    offered.remove_prefix(whole);
  }
  refuse(peer_of(ssl), ErrorKind::protocol, no_ccixfer);
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// In the place of OpenSSL's own check. 0 ends the handshake with the alert that belongs to the error of `context`.
int judge_peer(X509_STORE_CTX* context, void* /*unused*/) {
  const auto* ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  TlsPeer& peer = peer_of(ssl);
  const auto refused = [&](int error, ErrorKind kind, std::string why) {
    X509_STORE_CTX_set_error(context, error);
    refuse(peer, kind, std::move(why));
    return 0;
  };
  // A dialler knows by now what the acceptor chose, and it shows no certificate to somebody who is no ccixfer.
  if (!alpn_agreed(ssl)) return refused(X509_V_ERR_APPLICATION_VERIFICATION, ErrorKind::protocol, no_ccixfer);
  X509* certificate = X509_STORE_CTX_get0_cert(context);
  if (certificate == nullptr) {
    return refused(X509_V_ERR_UNSPECIFIED, ErrorKind::authentication, "the peer shows no certificate: give it an identity");
  }
  Verdict verdict =
      judge_certificate(certificate, X509_STORE_CTX_get0_untrusted(context), peer.side, peer.authority, peer.wall_time_s);
  if (!verdict.why.empty()) return refused(verdict.x509_error, ErrorKind::authentication, std::move(verdict.why));
  X509_STORE_CTX_set_error(context, X509_V_OK);
  peer.judged = std::move(verdict.peer);
  return 1;
}

// Whether the processor has instructions for AES, by what OpenSSL says of itself: OPENSSL_ia32cap=0x...: on x86,
// OPENSSL_armcap=0x... on ARM. True where it says nothing else.
bool processor_has_aes() {
  const char* info = OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS);
  const std::string_view text = info == nullptr ? "" : info;
  const size_t begin = text.find("cap=0x");
  if (begin == std::string_view::npos) return true;
  const std::string_view digits = text.substr(begin + 6);
  uint64_t bits = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16).ec != std::errc()) return true;
  constexpr uint64_t x86_aes = uint64_t{1} << 57;
  constexpr uint64_t arm_aes = uint64_t{1} << 2;
  return (bits & (text.starts_with("OPENSSL_armcap") ? arm_aes : x86_aes)) != 0;
}

}  // namespace

Cipher fastest_cipher() {
  static const Cipher fastest = processor_has_aes() ? Cipher::aes_256_gcm : Cipher::chacha20_poly1305;
  return fastest;
}

const char* cipher_order(Cipher first) {
  return first == Cipher::aes_256_gcm ? "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
                                      : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384";
}

bool alpn_agreed(const SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(ssl, &name, &length);
  return std::string_view(reinterpret_cast<const char*>(name), length) == alpn.substr(1);
}

SslCtxPtr make_tls_context(X509* certificate, STACK_OF(X509) * chain, EVP_PKEY* key) {
  SslCtxPtr tls(SSL_CTX_new(TLS_method()));
  if (tls == nullptr) return nullptr;
  SSL_CTX* ctx = tls.get();
  // All is said here: SSL_CTX_new has read what openssl.cnf wants of others.
  SSL_CTX_clear_options(ctx, SSL_CTX_get_options(ctx));  // the imitation of TLS 1.2 for middleboxes among others
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_security_level(ctx, security_level);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(ctx, judge_peer, nullptr);
  SSL_CTX_set_client_hello_cb(ctx, at_client_hello, nullptr);
  SSL_CTX_set_alpn_select_cb(ctx, select_alpn, nullptr);
  const bool good =
      SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_set_max_early_data(ctx, 0) == 1 &&
      SSL_CTX_set_recv_max_early_data(ctx, 0) == 1 && SSL_CTX_set_ciphersuites(ctx, cipher_order(fastest_cipher())) == 1 &&
      SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1 && SSL_CTX_set1_sigalgs_list(ctx, signatures) == 1 &&
      SSL_CTX_set1_client_sigalgs_list(ctx, signatures) == 1 &&
      SSL_CTX_set_alpn_protos(ctx, reinterpret_cast<const unsigned char*>(alpn.data()), static_cast<unsigned>(alpn.size())) == 0 &&
      SSL_CTX_use_certificate(ctx, certificate) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1 &&
      (chain == nullptr || SSL_CTX_set1_chain(ctx, chain) == 1);
  if (!good) return nullptr;
  return tls;
}

}  // namespace ccixfer::trust
