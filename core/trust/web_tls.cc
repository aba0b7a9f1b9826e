#include "core/trust/web_tls.h"

#include <fmt/format.h>

#include <array>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/tls_context.h"

namespace ccixfer::trust {

struct WebIdentity::Impl {
  Identity identity;  // the owner of the certificates
  SslCtxPtr tls;
};

Result<WebIdentity> WebIdentity::from_pem(std::string_view certificate_pem, std::string_view certificate_what,
                                          std::string_view key_pem, std::string_view key_what) {
  auto identity = Identity::from_certificate(certificate_pem, certificate_what, key_pem, key_what);
  if (!identity) return tl::unexpected(identity.error());
  const CleanErrors clean;
  const Identity::Impl& ours = identity->impl();
  SslCtxPtr tls(SSL_CTX_new(TLS_server_method()));
  CHECK(tls != nullptr);
  SSL_CTX* ctx = tls.get();
  // All is said here: SSL_CTX_new has read what openssl.cnf wants of others.
  SSL_CTX_clear_options(ctx, SSL_CTX_get_options(ctx));
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  const bool good =
      SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_set_max_early_data(ctx, 0) == 1 &&
      SSL_CTX_set_recv_max_early_data(ctx, 0) == 1 && SSL_CTX_set_ciphersuites(ctx, cipher_order(fastest_cipher())) == 1 &&
      SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1 && SSL_CTX_use_certificate(ctx, ours.certificate.get()) == 1 &&
      SSL_CTX_use_PrivateKey(ctx, ours.key.get()) == 1 && SSL_CTX_set1_chain(ctx, ours.chain.get()) == 1;
  if (!good) {
    return fail(ErrorKind::usage,
                fmt::format("not taken for TLS 1.3: {}: look into openssl.cnf, or give another certificate", certificate_what));
  }
  return WebIdentity(std::make_shared<const Impl>(Impl{std::move(*identity), std::move(tls)}));
}

struct WebTls::Impl {
  SslPtr ssl;
  BIO* from_client = nullptr;  // both are the SSL's
  BIO* to_client = nullptr;
  size_t hello_bytes = 0;
  bool is_over = false;

  void take_output(std::string& to_send) const {
    char* text = nullptr;
    const long length = BIO_get_mem_data(to_client, &text);
    if (length > 0) to_send.append(text, static_cast<size_t>(length));
    static_cast<void>(BIO_reset(to_client));
  }
  // Of what a call of OpenSSL came to: it needs more bytes of the client.
  [[nodiscard]] bool waits(int result) const { return SSL_get_error(ssl.get(), result) == SSL_ERROR_WANT_READ; }

  void read(std::string& plain) {
    std::array<char, 4096> part;
    for (;;) {
      const int got = SSL_read(ssl.get(), part.data(), static_cast<int>(part.size()));
      if (got > 0) {
        plain.append(part.data(), static_cast<size_t>(got));
        continue;
      }
      is_over = !waits(got);
      return;
    }
  }
};

WebTls::WebTls(const WebIdentity& identity) : impl_(std::make_unique<Impl>()) {
  const CleanErrors clean;
  impl_->ssl.reset(SSL_new(identity.impl().tls.get()));  // it holds the context
  impl_->from_client = BIO_new(BIO_s_mem());
  impl_->to_client = BIO_new(BIO_s_mem());
  CHECK(impl_->ssl != nullptr && impl_->from_client != nullptr && impl_->to_client != nullptr);
  BIO_set_mem_eof_return(impl_->from_client, -1);  // an empty one waits for more
  SSL_set_bio(impl_->ssl.get(), impl_->from_client, impl_->to_client);
  SSL_set_accept_state(impl_->ssl.get());
}

WebTls::~WebTls() = default;
WebTls::WebTls(WebTls&&) noexcept = default;
WebTls& WebTls::operator=(WebTls&&) noexcept = default;

WebTls::State WebTls::received(std::string_view bytes, std::string& plain, std::string& to_send) {
  const CleanErrors clean;
  Impl& my = *impl_;
  SSL* ssl = my.ssl.get();
  if (my.is_over) return State::over;
  if (!bytes.empty()) {
    const int length = static_cast<int>(bytes.size());
    CHECK(bytes.size() <= web_hello_bytes_max && BIO_write(my.from_client, bytes.data(), length) == length);
  }
  if (SSL_is_init_finished(ssl) == 0) {
    my.hello_bytes += bytes.size();
    const int done = SSL_do_handshake(ssl);
    if (done != 1) my.is_over = !my.waits(done) || my.hello_bytes > web_hello_bytes_max;
  }
  if (!my.is_over && SSL_is_init_finished(ssl) == 1) my.read(plain);
  my.take_output(to_send);
  if (my.is_over) return State::over;
  return SSL_is_init_finished(ssl) == 1 ? State::open : State::handshake;
}

void WebTls::say(std::string_view plain, std::string& to_send) {
  const CleanErrors clean;
  if (impl_->is_over || plain.empty()) return;
  size_t written = 0;  // memory takes all of it at once
  impl_->is_over = SSL_write_ex(impl_->ssl.get(), plain.data(), plain.size(), &written) != 1;
  impl_->take_output(to_send);
}

void WebTls::end(std::string& to_send) {
  const CleanErrors clean;
  if (!impl_->is_over && SSL_is_init_finished(impl_->ssl.get()) == 1) static_cast<void>(SSL_shutdown(impl_->ssl.get()));
  impl_->take_output(to_send);
}

}  // namespace ccixfer::trust
