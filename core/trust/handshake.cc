#include "core/trust/handshake.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/openssl_objects.h"
#include "core/trust/tls_context.h"
#include "core/trust/tls_words.h"

namespace ccixfer::trust {
namespace {

constexpr size_t record_header_bytes = 5;
constexpr size_t late_record_bytes_max = 64;  // an alert is shorter, and nothing else is heard after the end
constexpr size_t label_bytes_max = 249;       // RFC 8446, section 7.1

}  // namespace

struct Handshake::Impl {
  explicit Impl(HandshakeOptions all);

  [[nodiscard]] Result<void> failed_with(Error error);
  [[nodiscard]] Result<void> drive();
  [[nodiscard]] Result<void> finish();
  [[nodiscard]] Result<void> take_late(Bytes bytes);
  void feed(Bytes bytes);

  HandshakeOptions options;
  TlsPeer peer;
  SslPtr ssl;
  BIO* in = nullptr;   // of ssl: what the peer sent
  BIO* out = nullptr;  // of ssl: what the peer gets
  size_t received_bytes = 0;
  bool done = false;
  std::vector<std::byte> late;  // after the end, until it is a whole record
  std::optional<Error> failed;
};

Handshake::Impl::Impl(HandshakeOptions all) : options(std::move(all)), ssl(SSL_new(options.identity.impl().tls.get())) {
  CHECK(ssl != nullptr);
  peer.side = options.side;
  peer.authority = options.authority ? &*options.authority : nullptr;
  peer.wall_time_s = options.wall_time_s;
  SSL_set_app_data(ssl.get(), &peer);
  in = BIO_new(BIO_s_mem());
  out = BIO_new(BIO_s_mem());
  CHECK(in != nullptr && out != nullptr);
  SSL_set_bio(ssl.get(), in, out);  // owns both
  if (options.prefers) CHECK(SSL_set_ciphersuites(ssl.get(), cipher_order(*options.prefers)) == 1);
  if (options.side == HandshakeSide::dialler) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
}

Result<void> Handshake::Impl::failed_with(Error error) {
  failed = std::move(error);
  return tl::unexpected(*failed);
}

void Handshake::Impl::feed(Bytes bytes) {
  if (!bytes.empty()) CHECK(BIO_write(in, bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()));
}

Result<void> Handshake::Impl::drive() {
  const int answer = SSL_do_handshake(ssl.get());
  if (answer == 1) return finish();
  if (SSL_get_error(ssl.get(), answer) == SSL_ERROR_WANT_READ) return {};
  return failed_with(peer.refused ? *peer.refused : handshake_error());
}

Result<void> Handshake::Impl::finish() {
  // Each of these has been seen to by now. An error of ours here would let a stranger in, so each is asked for again.
  if (SSL_version(ssl.get()) != TLS1_3_VERSION || SSL_session_reused(ssl.get()) != 0)
    return failed_with(no_tls_of_ours("it is another version"));
  if (!alpn_agreed(ssl.get())) return failed_with(no_tls_of_ours("it is another protocol"));
  if (!peer.judged || SSL_get0_peer_certificate(ssl.get()) == nullptr) {
    return failed_with({ErrorKind::authentication, "the peer shows no certificate: give it an identity"});
  }
  done = true;
  std::vector<std::byte> rest(BIO_ctrl_pending(in));
  if (rest.empty()) return {};
  CHECK(BIO_read(in, rest.data(), static_cast<int>(rest.size())) == static_cast<int>(rest.size()));
  return take_late(rest);
}

// A dialler is done before the acceptor has judged it, so an alert may follow. Whatever else does is an error, once it is whole.
Result<void> Handshake::Impl::take_late(Bytes bytes) {
  late.insert(late.end(), bytes.begin(), bytes.end());
  if (late.size() < record_header_bytes) return {};
  const size_t length = std::to_integer<size_t>(late[3]) << 8 | std::to_integer<size_t>(late[4]);
  if (length <= late_record_bytes_max) {
    if (late.size() < record_header_bytes + length) return {};
    feed(late);
    std::array<std::byte, 1> nothing{};
    const int answer = SSL_read(ssl.get(), nothing.data(), static_cast<int>(nothing.size()));
    if (answer <= 0 && SSL_get_error(ssl.get(), answer) == SSL_ERROR_SSL) return failed_with(handshake_error());
  }
  return failed_with(no_tls_of_ours("it sends more than a handshake"));
}

Handshake::Handshake(HandshakeOptions options) {
  const CleanErrors clean;
  impl_ = std::make_unique<Impl>(std::move(options));
}

Handshake::~Handshake() = default;

Result<void> Handshake::step(Bytes from_peer) {
  const CleanErrors clean;
  if (impl_->failed) return tl::unexpected(*impl_->failed);
  if (from_peer.size() > handshake_bytes_max - impl_->received_bytes) {
    return impl_->failed_with(no_tls_of_ours("its handshake is too long"));
  }
  impl_->received_bytes += from_peer.size();
  if (impl_->done) return from_peer.empty() ? Result<void>() : impl_->take_late(from_peer);
  impl_->feed(from_peer);
  return impl_->drive();
}

std::vector<std::byte> Handshake::take_output() {
  const CleanErrors clean;
  std::vector<std::byte> output(BIO_ctrl_pending(impl_->out));
  if (!output.empty()) {
    CHECK(BIO_read(impl_->out, output.data(), static_cast<int>(output.size())) == static_cast<int>(output.size()));
  }
  return output;
}

bool Handshake::done() const { return impl_->done && !impl_->failed; }

const ProvedPeer& Handshake::peer() const {
  CHECK(done());
  return *impl_->peer.judged;
}

Cipher Handshake::cipher() const {
  CHECK(done());
  const SSL_CIPHER* cipher = SSL_get_current_cipher(impl_->ssl.get());
  return SSL_CIPHER_get_id(cipher) == TLS1_3_CK_CHACHA20_POLY1305_SHA256 ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm;
}

Secret Handshake::exported(std::string_view label) const {
  const CleanErrors clean;
  CHECK(done() && !label.empty() && label.size() <= label_bytes_max);
  Secret secret;
  CHECK(SSL_export_keying_material(impl_->ssl.get(), secret.writable().data(), secret_bytes, label.data(), label.size(), nullptr, 0,
                                   0) == 1);
  return secret;
}

}  // namespace ccixfer::trust
