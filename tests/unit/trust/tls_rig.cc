#include "tests/unit/trust/tls_rig.h"

#include <catch2/catch.hpp>

#include "tests/unit/trust/facility.h"

namespace ccixfer::trust {

Identity identity_of(const std::string& certificate_pem, const std::string& key_pem) {
  auto identity = Identity::from_certificate(certificate_pem, "host.pem", key_pem, "host.key");
  if (!identity) FAIL(identity.error().message);
  return *std::move(identity);
}

Identity identity_of(const Issued& issued) { return identity_of(issued.certificate_pem(), issued.key_pem()); }

Authority authority_of(const std::string& ca_pem, const std::string& crl_pem) {
  auto authority = Authority::from_pem(ca_pem, "ca.pem", crl_pem, crl_pem.empty() ? "" : "crl.pem");
  if (!authority) FAIL(authority.error().message);
  return *std::move(authority);
}

Side::Side(HandshakeSide side, Identity identity, std::optional<Authority> authority)
    : Side(side, std::move(identity), std::move(authority), test_now_s) {}

Side::Side(HandshakeSide side, Identity identity, std::optional<Authority> authority, int64_t wall_time_s,
           std::optional<Cipher> prefers)
    : handshake({side, std::move(identity), std::move(authority), wall_time_s, prefers}) {}

std::vector<std::byte> Side::step(Bytes from_peer) {
  const Result<void> answer = handshake.step(from_peer);
  if (!answer) {
    error = answer.error();
    REQUIRE((error->kind == ErrorKind::protocol || error->kind == ErrorKind::authentication));
    REQUIRE_FALSE(error->message.empty());
    for (const char c : error->message) REQUIRE((c >= ' ' && c <= '~'));
    REQUIRE_FALSE(handshake.done());
  }
  REQUIRE(ERR_peek_error() == 0);
  return handshake.take_output();
}

bool Side::refused_with(ErrorKind kind, std::string_view part_of_message) const {
  UNSCOPED_INFO(handshake.done());
  if (!error) return false;
  UNSCOPED_INFO(error->message);
  return error->kind == kind && error->message.find(part_of_message) != std::string::npos;
}

Flights run(Side& dialler, Side& acceptor, const std::function<void(size_t, std::vector<std::byte>&)>& changed) {
  Flights flights;
  std::vector<std::byte> flight = dialler.step({});
  while (!flight.empty()) {
    flights.push_back(flight);
    if (changed) changed(flights.size() - 1, flight);
    flight = (flights.size() % 2 == 1 ? acceptor : dialler).step(flight);
    REQUIRE(flights.size() < 10);
  }
  return flights;
}

RawPeer::RawPeer(HandshakeSide side, int version) : side_(side), context_(SSL_CTX_new(TLS_method())) {
  SSL_CTX_set_min_proto_version(context_.get(), version);
  SSL_CTX_set_max_proto_version(context_.get(), version);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(
      context_.get(), [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
  SSL_CTX_set_num_tickets(context_.get(), 0);
  alpn("\011ccixfer/1");
}

RawPeer& RawPeer::certificate(X509* certificate, EVP_PKEY* key) {
  REQUIRE(SSL_CTX_use_certificate(context_.get(), certificate) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey(context_.get(), key) == 1);
  return *this;
}

RawPeer& RawPeer::alpn(std::string_view with_lengths) {
  alpn_ = with_lengths;
  SSL_CTX_set_alpn_protos(context_.get(), reinterpret_cast<const unsigned char*>(alpn_.data()),
                          static_cast<unsigned>(alpn_.size()));
  SSL_CTX_set_alpn_select_cb(
      context_.get(),
      [](SSL*, const unsigned char** out, unsigned char* length, const unsigned char*, unsigned, void* own) {
        const std::string& name = *static_cast<const std::string*>(own);
        if (name.empty()) return SSL_TLSEXT_ERR_NOACK;
        *out = reinterpret_cast<const unsigned char*>(name.data()) + 1;
        *length = static_cast<unsigned char>(name.size() - 1);
        return SSL_TLSEXT_ERR_OK;
      },
      &alpn_);
  return *this;
}

SSL* RawPeer::ssl() {
  if (ssl_ == nullptr) {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (side_ == HandshakeSide::dialler) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }
  return ssl_.get();
}

std::vector<std::byte> RawPeer::output() {
  std::vector<std::byte> bytes(BIO_ctrl_pending(SSL_get_wbio(ssl())));
  if (!bytes.empty()) BIO_read(SSL_get_wbio(ssl()), bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

std::vector<std::byte> RawPeer::step(Bytes from_peer) {
  const CleanErrors clean;
  if (!from_peer.empty()) BIO_write(SSL_get_rbio(ssl()), from_peer.data(), static_cast<int>(from_peer.size()));
  SSL_do_handshake(ssl());
  keep_alert();
  return output();
}

int RawPeer::alert_heard() {
  const CleanErrors clean;
  char nothing = 0;
  if (SSL_read(ssl(), &nothing, 1) > 0 || alert_ != 0) return alert_;
  keep_alert();
  return alert_;
}

void RawPeer::keep_alert() {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) alert_ = reason - SSL_AD_REASON_OFFSET;
}

std::vector<std::byte> RawPeer::say(std::string_view text) {
  SSL_write(ssl(), text.data(), static_cast<int>(text.size()));
  return output();
}

void run(Side& ours, RawPeer& peer) {
  std::vector<std::byte> to_peer = ours.step({});
  std::vector<std::byte> to_us = peer.step(to_peer);
  for (int i = 0; i < 10 && (!to_peer.empty() || !to_us.empty()); ++i) {
    to_peer = to_us.empty() ? std::vector<std::byte>() : ours.step(to_us);
    to_us = to_peer.empty() ? std::vector<std::byte>() : peer.step(to_peer);
  }
}

}  // namespace ccixfer::trust
