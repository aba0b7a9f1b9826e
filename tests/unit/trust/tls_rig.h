// Two ends of a handshake in one process: both ours, or ours and a peer made of OpenSSL alone that does what ours never does.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trust/handshake.h"
#include "core/trust/openssl_objects.h"
#include "tests/unit/trust/facility.h"

namespace ccixfer::trust {

[[nodiscard]] Identity identity_of(const std::string& certificate_pem, const std::string& key_pem);
[[nodiscard]] Identity identity_of(const Issued& issued);
[[nodiscard]] Authority authority_of(const std::string& ca_pem, const std::string& crl_pem = "");

// One of our sides and what became of it.
struct Side {
  Side(HandshakeSide side, Identity identity, std::optional<Authority> authority = std::nullopt);
  Side(HandshakeSide side, Identity identity, std::optional<Authority> authority, int64_t wall_time_s,
       std::optional<Cipher> prefers = std::nullopt);
  // Keeps the error, if there is one, and gives what the peer gets.
  std::vector<std::byte> step(Bytes from_peer);
  [[nodiscard]] bool refused_with(ErrorKind kind, std::string_view part_of_message) const;

  Handshake handshake;
  std::optional<Error> error;
};

// Flights of one run: 0 from the dialler, 1 from the acceptor, 2 from the dialler, and so on.
using Flights = std::vector<std::vector<std::byte>>;
// Until neither has anything to say. `changed` may change a flight on its way.
Flights run(Side& dialler, Side& acceptor,
            const std::function<void(size_t number, std::vector<std::byte>& flight)>& changed = nullptr);

// A peer that is not ours.
class RawPeer {
 public:
  explicit RawPeer(HandshakeSide side, int version = TLS1_3_VERSION);
  RawPeer& certificate(X509* certificate, EVP_PKEY* key);
  RawPeer& alpn(std::string_view with_lengths);  // offered by a client, chosen by a server; empty: none
  [[nodiscard]] SSL_CTX* context() { return context_.get(); }
  [[nodiscard]] SSL* ssl();
  // What goes to the other side. Errors of OpenSSL are not ours to judge.
  std::vector<std::byte> step(Bytes from_peer);
  [[nodiscard]] bool done() { return SSL_is_init_finished(ssl()) == 1; }
  [[nodiscard]] X509Ptr shown() { return X509Ptr(SSL_get1_peer_certificate(ssl())); }
  // The last alert that it got; 0: none.
  [[nodiscard]] int alert_heard();
  // Sends application data, which ours does not take.
  std::vector<std::byte> say(std::string_view text);

 private:
  std::vector<std::byte> output();
  void keep_alert();
  HandshakeSide side_;
  SslCtxPtr context_;
  SslPtr ssl_;
  std::string alpn_;
  int alert_ = 0;
};
void run(Side& ours, RawPeer& peer);

}  // namespace ccixfer::trust
