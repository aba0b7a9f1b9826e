// The TLS handshake of two ends: who proves what, refusals, alerts and bounds.
#include "core/trust/handshake.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/trust/ticket.h"
#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/hex.h"
#include "tests/unit/trust/tls_rig.h"

namespace ccixfer::trust {
namespace {

using enum HandshakeSide;

// Made once: they stand for any identities that are known by their keys.
const Identity& first() {
  static const Identity identity = Identity::generate().value();
  return identity;
}
const Identity& second() {
  static const Identity identity = Identity::generate().value();
  return identity;
}
const Issued& any_certificate() {
  static const Issued issued = self_signed({});
  return issued;
}

struct Ends {
  Side dialler_side{dialler, first()};
  Side acceptor_side{acceptor, second()};
};

void require_agreed(const Side& dialler_side, const Side& acceptor_side) {
  if (dialler_side.error) FAIL(dialler_side.error->message);
  if (acceptor_side.error) FAIL(acceptor_side.error->message);
  REQUIRE(dialler_side.handshake.done());
  REQUIRE(acceptor_side.handshake.done());
  CHECK(dialler_side.handshake.exported("a").equals(acceptor_side.handshake.exported("a").bytes()));
  CHECK(dialler_side.handshake.cipher() == acceptor_side.handshake.cipher());
}

TEST_CASE("handshake__two_keys__each_knows_the_other_by_its_id") {
  Ends ends;
  const Flights flights = run(ends.dialler_side, ends.acceptor_side);
  require_agreed(ends.dialler_side, ends.acceptor_side);
  CHECK(ends.dialler_side.handshake.peer().id == second().id());
  CHECK(ends.acceptor_side.handshake.peer().id == first().id());
  CHECK_FALSE(ends.dialler_side.handshake.peer().certified);
  CHECK(ends.dialler_side.handshake.peer().names.empty());
  CHECK(flights.size() == 3);  // one round trip for the dialler, and the acceptor says no more: no tickets
}

TEST_CASE("handshake__secrets__one_for_each_label_and_each_handshake") {
  std::set<std::string> secrets;
  for (int i = 0; i < 3; ++i) {
    Ends ends;
    static_cast<void>(run(ends.dialler_side, ends.acceptor_side));
    require_agreed(ends.dialler_side, ends.acceptor_side);
    for (const char* label : {"a", "b", "ab"}) {
      const Secret secret = ends.dialler_side.handshake.exported(label);
      CHECK(secret.equals(ends.acceptor_side.handshake.exported(label).bytes()));
      CHECK(secret.equals(ends.dialler_side.handshake.exported(label).bytes()));
      secrets.insert(hex(secret.bytes()));
    }
  }
  CHECK(secrets.size() == 9);
}

TEST_CASE("handshake__the_ciphers_that_both_prefer__the_acceptor_decides_unless_chacha_is_wanted") {
  // A side that does ChaCha20 best has no AES in its processor: then both use ChaCha20.
  for (const auto& [dials, accepts, agreed] : {std::tuple(Cipher::aes_256_gcm, Cipher::aes_256_gcm, Cipher::aes_256_gcm),
                                               {Cipher::aes_256_gcm, Cipher::chacha20_poly1305, Cipher::chacha20_poly1305},
                                               {Cipher::chacha20_poly1305, Cipher::aes_256_gcm, Cipher::chacha20_poly1305},
                                               {Cipher::chacha20_poly1305, Cipher::chacha20_poly1305, Cipher::chacha20_poly1305}}) {
    Side dialler_side(dialler, first(), std::nullopt, test_now_s, dials);
    Side acceptor_side(acceptor, second(), std::nullopt, test_now_s, accepts);
    static_cast<void>(run(dialler_side, acceptor_side));
    require_agreed(dialler_side, acceptor_side);
    CHECK(dialler_side.handshake.cipher() == agreed);
  }
}

TEST_CASE("handshake__bytes_one_by_one__done_with_the_last_of_each_flight_only") {
  Ends whole;
  const auto one_by_one = [](Side& side, const std::vector<std::byte>& flight) {
    std::vector<std::byte> answer;
    for (size_t at = 0; at < flight.size(); ++at) {
      REQUIRE_FALSE(side.handshake.done());
      REQUIRE(answer.empty());
      answer = side.step(Bytes(flight).subspan(at, 1));
      REQUIRE_FALSE(side.error);
      REQUIRE(side.step({}).empty());
    }
    return answer;
  };
  const auto hello = whole.dialler_side.step({});
  const auto reply = one_by_one(whole.acceptor_side, hello);
  const auto finished = one_by_one(whole.dialler_side, reply);
  REQUIRE(whole.dialler_side.handshake.done());
  CHECK(one_by_one(whole.acceptor_side, finished).empty());
  require_agreed(whole.dialler_side, whole.acceptor_side);
}

TEST_CASE("handshake__a_recorded_dialler__does_not_complete_with_a_new_acceptor") {
  Ends ends;
  const Flights recorded = run(ends.dialler_side, ends.acceptor_side);
  require_agreed(ends.dialler_side, ends.acceptor_side);
  Side again(acceptor, second());
  CHECK_FALSE(again.step(recorded[0]).empty());
  static_cast<void>(again.step(recorded[2]));
  CHECK(again.refused_with(ErrorKind::authentication, "changed on the way"));
  CHECK_FALSE(again.handshake.done());
  Side dials_again(dialler, first());
  static_cast<void>(dials_again.step({}));
  static_cast<void>(dials_again.step(recorded[1]));
  CHECK(dials_again.refused_with(ErrorKind::authentication, "changed on the way"));
}

TEST_CASE("handshake__its_own_bytes_back__refused") {
  Side alone(dialler, first());
  const auto hello = alone.step({});
  static_cast<void>(alone.step(hello));
  CHECK(alone.refused_with(ErrorKind::protocol, "no TLS 1.3 of ccixfer"));
  Side listens(acceptor, first());
  const auto reply = listens.step(hello);
  static_cast<void>(listens.step(reply));
  CHECK(listens.error);
}

TEST_CASE("handshake__two_diallers_or_two_acceptors__an_error_or_silence") {
  Side one(dialler, first()), other(dialler, second());
  const auto hello = one.step({}), other_hello = other.step({});
  static_cast<void>(one.step(other_hello));
  CHECK(one.refused_with(ErrorKind::protocol, "no TLS 1.3 of ccixfer"));
  Side silent(acceptor, first());
  CHECK(silent.step({}).empty());
}

TEST_CASE("handshake__an_error__stays_and_tells_the_peer_once") {
  Side side(acceptor, first());
  RawPeer old(dialler, TLS1_2_VERSION);
  CHECK_FALSE(side.step(old.step({})).empty());
  REQUIRE(side.refused_with(ErrorKind::protocol, "no TLS 1.3 of ccixfer"));
  const std::string message = side.error->message;
  side.error.reset();
  Ends ends;
  CHECK(side.step(ends.dialler_side.step({})).empty());
  REQUIRE(side.error);
  CHECK(side.error->message == message);
}

TEST_CASE("handshake__another_service_or_client_at_the_port__refused") {
  for (const char* text : {"GET / HTTP/1.0\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail ESMTP\r\n", "@RSYNCD: 31.0\n"}) {
    for (const HandshakeSide side : {dialler, acceptor}) {
      Side ours(side, first());
      static_cast<void>(ours.step({}));
      static_cast<void>(ours.step(as_bytes(text)));
      CHECK(ours.refused_with(ErrorKind::protocol, "no TLS 1.3 of ccixfer"));
    }
  }
}

TEST_CASE("handshake__more_bytes_than_the_bound__ended") {
  // A record of handshake type that never becomes a whole message.
  const auto endless = bytes_of_hex("1603014000010fff00");
  std::vector<std::byte> flood = endless;
  flood.resize(handshake_bytes_max);
  Side at_once(acceptor, first());
  static_cast<void>(at_once.step(flood));
  CHECK(at_once.error);
  Side side(acceptor, first());
  const auto hello = Side(dialler, second()).step({});
  size_t sent = 0;
  std::vector<std::byte> slow = bytes_of_hex("16030140000100ffff");  // a ClientHello of 64 KiB in records of 16 KiB
  slow.resize(5 + 0x4000);
  while (!side.error && sent <= handshake_bytes_max) {
    static_cast<void>(side.step(slow));
    sent += slow.size();
  }
  CHECK(side.error);
  flood.push_back({});
  Side over(dialler, first());
  static_cast<void>(over.step({}));
  static_cast<void>(over.step(flood));
  CHECK(over.refused_with(ErrorKind::protocol, "its handshake is too long"));
}

TEST_CASE("handshake__bytes_after_the_end__a_protocol_error") {
  RawPeer peer(dialler);
  peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
  Side ours(acceptor, first());
  run(ours, peer);
  REQUIRE(ours.handshake.done());
  static_cast<void>(ours.step(peer.say("application data")));
  CHECK(ours.refused_with(ErrorKind::protocol, "it sends more than a handshake"));
  CHECK_FALSE(ours.handshake.done());
}

TEST_CASE("handshake__application_data_with_the_last_flight__a_protocol_error") {
  RawPeer peer(dialler);
  peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
  Side ours(acceptor, first());
  auto last = peer.step(ours.step(peer.step({})));
  REQUIRE(peer.done());
  const auto more = peer.say("too early");
  last.insert(last.end(), more.begin(), more.end());
  static_cast<void>(ours.step(last));
  CHECK(ours.refused_with(ErrorKind::protocol, "it sends more than a handshake"));
}

TEST_CASE("handshake__a_peer_that_closes_or_renews_keys_after_the_end__a_protocol_error") {
  for (const bool closes : {true, false}) {
    RawPeer peer(dialler);
    peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
    Side ours(acceptor, first());
    run(ours, peer);
    REQUIRE(ours.handshake.done());
    if (closes) {
      SSL_shutdown(peer.ssl());
    } else {
      SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    }
    static_cast<void>(ours.step(peer.step({})));
    CHECK(ours.refused_with(ErrorKind::protocol, "it sends more than a handshake"));
  }
}

TEST_CASE("handshake__session_tickets_of_an_acceptor__not_taken") {
  RawPeer peer(acceptor);
  peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
  SSL_CTX_set_num_tickets(peer.context(), 2);
  Side ours(dialler, first());
  const auto last = ours.step(peer.step(ours.step({})));
  REQUIRE(ours.handshake.done());
  static_cast<void>(ours.step(peer.step(last)));
  CHECK(ours.refused_with(ErrorKind::protocol, "it sends more than a handshake"));
}

TEST_CASE("handshake__a_peer_with_tls_1_2_only__refused_by_both_sides") {
  for (const HandshakeSide side : {dialler, acceptor}) {
    RawPeer peer(side, TLS1_2_VERSION);
    peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
    Side ours(side == dialler ? acceptor : dialler, first());
    run(ours, peer);
    CHECK(ours.refused_with(ErrorKind::protocol, "the peer speaks no TLS 1.3 of ccixfer"));
    CHECK_FALSE(peer.done());
  }
}

TEST_CASE("handshake__another_alpn_or_none__refused_by_both_sides") {
  for (const std::string& names :
       {std::string(), std::string("\002h2"), std::string("\012ccixfer/10"), std::string("\011ccixfer/2")}) {
    for (const HandshakeSide side : {dialler, acceptor}) {
      INFO(names << " " << static_cast<int>(side));
      RawPeer peer(side);
      peer.certificate(any_certificate().certificate.get(), any_certificate().key.get()).alpn(names);
      Side ours(side == dialler ? acceptor : dialler, first());
      run(ours, peer);
      CHECK_FALSE(ours.handshake.done());
      REQUIRE(ours.error);
      CHECK(ours.error->kind == ErrorKind::protocol);
      CHECK(ours.error->message.find("ccixfer") != std::string::npos);
      CHECK_FALSE(peer.done());
      CHECK(peer.alert_heard() != 0);
      if (side == dialler) CHECK(peer.alert_heard() == SSL_AD_NO_APPLICATION_PROTOCOL);
      CHECK((peer.shown() == nullptr || side == dialler));  // our dialler shows no certificate to another service
    }
  }
}

TEST_CASE("handshake__ccixfer_among_other_alpn_names__taken") {
  RawPeer peer(dialler);
  peer.certificate(any_certificate().certificate.get(), any_certificate().key.get()).alpn("\002h2\011ccixfer/1\010http/1.1");
  Side ours(acceptor, first());
  run(ours, peer);
  CHECK(ours.handshake.done());
  CHECK(peer.done());
}

TEST_CASE("handshake__other_groups__p256_is_taken_and_the_rest_refused") {
  for (const auto& [group, good] : {std::pair("P-256", true), {"X25519", true}, {"P-384", false}, {"X448", false}}) {
    for (const HandshakeSide side : {dialler, acceptor}) {
      INFO(group);
      RawPeer peer(side);
      peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
      REQUIRE(SSL_CTX_set1_groups_list(peer.context(), group) == 1);
      Side ours(side == dialler ? acceptor : dialler, first());
      run(ours, peer);
      if (good && ours.error) FAIL_CHECK(ours.error->message);
      CHECK(ours.handshake.done() == good);
      if (!good) CHECK(ours.refused_with(ErrorKind::protocol, "no TLS 1.3 of ccixfer"));
    }
  }
}

TEST_CASE("handshake__aes_128_only__refused") {
  RawPeer peer(dialler);
  peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
  REQUIRE(SSL_CTX_set_ciphersuites(peer.context(), "TLS_AES_128_GCM_SHA256") == 1);
  Side ours(acceptor, first());
  run(ours, peer);
  CHECK(ours.refused_with(ErrorKind::protocol, "no shared cipher"));
}

TEST_CASE("handshake__a_dialler_without_a_certificate__refused_and_told_why") {
  RawPeer peer(dialler);
  Side ours(acceptor, first());
  run(ours, peer);
  CHECK(ours.refused_with(ErrorKind::authentication, "the peer shows no certificate"));
  CHECK(peer.alert_heard() == SSL_AD_CERTIFICATE_REQUIRED);
}

TEST_CASE("handshake__random_bytes__an_error_and_never_the_end") {
  for (uint32_t seed = 1; seed < 200; ++seed) {
    std::vector<std::byte> noise(seed * 3);
    uint32_t state = seed;
    for (std::byte& byte : noise) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    for (const HandshakeSide side : {dialler, acceptor}) {
      Side ours(side, first());
      static_cast<void>(ours.step({}));
      static_cast<void>(ours.step(noise));
      CHECK_FALSE(ours.handshake.done());
    }
  }
}

TEST_CASE("handshake__a_dialler_with_a_key_agreed_before__must_show_its_certificate_all_the_same") {
  for (const bool shows : {true, false}) {
    RawPeer peer(dialler);
    if (shows) peer.certificate(any_certificate().certificate.get(), any_certificate().key.get());
    SSL_CTX_set_psk_use_session_callback(
        peer.context(), [](SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* id_length, SSL_SESSION** session) {
          static const std::array<unsigned char, 32> key{1, 2, 3};
          *session = SSL_SESSION_new();
          const unsigned char aes_256[] = {0x13, 0x02};
          SSL_SESSION_set1_master_key(*session, key.data(), key.size());
          SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, aes_256));
          SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
          *id = key.data();
          *id_length = key.size();
          return 1;
        });
    Side ours(acceptor, first());
    run(ours, peer);
    CHECK(ours.handshake.done() == shows);
    CHECK(SSL_session_reused(peer.ssl()) == 0);
  }
}

TEST_CASE("handshake__a_proof_of_a_ticket__both_sides_compute_the_same") {
  Ends ends;
  static_cast<void>(run(ends.dialler_side, ends.acceptor_side));
  const TicketSecret secret{1, 2, 3};
  CHECK(prove(secret, {}, ends.dialler_side.handshake.exported("ticket")) ==
        prove(secret, {}, ends.acceptor_side.handshake.exported("ticket")));
}

}  // namespace
}  // namespace ccixfer::trust
