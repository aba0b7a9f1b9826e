// Keys and certificates of this process: reading, making, and which are refused.
#include "core/trust/identity.h"

#include <openssl/pem.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/hex.h"
#include "tests/unit/trust/tls_rig.h"

namespace ccixfer::trust {
namespace {

// RFC 8410, section 10.3.
const std::string known_key =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";

std::string complaint(const Result<Identity>& identity) {
  if (identity) return "";
  CHECK(identity.error().kind == ErrorKind::usage);
  CHECK(identity.error().message.find('\n') == std::string::npos);
  return identity.error().message;
}
std::string complaint_of_key(const std::string& pem) { return complaint(Identity::from_key(pem, "my.key")); }
std::string complaint_of(const std::string& certificate, const std::string& key) {
  return complaint(Identity::from_certificate(certificate, "host.pem", key, "host.key"));
}
bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

std::string encrypted(EVP_PKEY* key, bool traditional) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  const auto* password = reinterpret_cast<const unsigned char*>("secret");
  const int written = traditional
                          ? PEM_write_bio_PrivateKey_traditional(bio.get(), key, EVP_aes_128_cbc(), password, 6, nullptr, nullptr)
                          : PEM_write_bio_PKCS8PrivateKey(bio.get(), key, EVP_aes_256_cbc(), "secret", 6, nullptr, nullptr);
  REQUIRE(written == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(length)};
}

TEST_CASE("identity__the_key_of_rfc_8410__the_id_that_python_computes") {
  const auto identity = Identity::from_key(known_key, "my.key");
  REQUIRE(identity);
  CHECK(to_string(identity->id()) == "cx1-uhur-kycu-4bh2-zcm2-5hzh-kezm-3qd2-lw6e-5iwc-vu5b-77do-bust-napq");
  CHECK(identity->key_pem() == known_key);
  CHECK_FALSE(identity->has_own_certificate());
}

TEST_CASE("identity__the_certificate_of_a_key__the_bytes_that_another_library_makes") {
  const auto shown_by = [](const Identity& identity) {
    const Issued any = self_signed({});
    RawPeer peer(HandshakeSide::dialler);
    peer.certificate(any.certificate.get(), any.key.get());
    Side ours(HandshakeSide::acceptor, identity);
    run(ours, peer);
    REQUIRE(peer.done());
    return der_of(peer.shown().get());
  };
  const Identity identity = *Identity::from_key(known_key, "my.key");
  const std::string der = shown_by(identity);
  // pyca/cryptography: CN=ccixfer for both, serial 1, 1970 to 9999.
  CHECK(hex(peer_id_of(as_bytes(der)).sha256) == "0c31c6d4e775de2f55efe798b5701e84bcb2e965cd770a7d7623639c62901b8f");
  CHECK(shown_by(*Identity::from_key(identity.key_pem(), "copy.key")) == der);
}

TEST_CASE("identity__made_twice__two_ids_and_the_key_keeps_its_own") {
  const Identity first = Identity::generate().value(), second = Identity::generate().value();
  CHECK(first.id() != second.id());
  const auto again = Identity::from_key(first.key_pem(), "my.key");
  REQUIRE(again);
  CHECK(again->id() == first.id());
}

TEST_CASE("identity__a_key_file_of_the_wrong_kind__named_in_one_line") {
  const Issued host = self_signed({});
  const std::string key = Identity::generate().value().key_pem();
  const auto as = [&](const std::string& kind) {
    std::string text = key;
    for (size_t at = 0; (at = text.find("PRIVATE KEY", at)) != std::string::npos; at += kind.size()) text.replace(at, 11, kind);
    return text;
  };
  CHECK(has(complaint_of_key(""), "no PEM file with a private key: my.key: "));
  CHECK(has(complaint(Identity::from_key({}, "my.key")), "no PEM file with a private key: my.key: "));  // not even an empty text
  CHECK(has(complaint_of_key("hello\n"), "no PEM file with a private key: my.key: "));
  CHECK(has(complaint_of_key(pem_of(host.certificate.get())), "a certificate and not a private key: my.key: "));
  CHECK(has(complaint_of_key(as("PUBLIC KEY")), "a public key and not a private key: my.key: "));
  CHECK(has(complaint_of_key(as("OPENSSH PRIVATE KEY")), "a key of OpenSSH and not a private key: my.key: "));
  CHECK(has(complaint_of_key(as("CERTIFICATE REQUEST")), "a request for a certificate and not a private key: my.key: "));
  CHECK(has(complaint_of_key(as("\x1b[2J")), "and not a private key: my.key: "));
  CHECK_FALSE(has(complaint_of_key(as("\x1b[2J")), "\x1b"));
  CHECK(has(complaint_of_key(key + key), "more than one private key: my.key: "));
}

// As with `default_properties = fips=yes` in openssl.cnf, for good: in a child.
TEST_CASE("identity__openssl_that_offers_no_ed25519__is_told_and_the_key_is_not_called_damaged") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool is_set = EVP_set_default_properties(nullptr, "fips=yes") == 1;
    const auto made = Identity::generate();
    const auto read = Identity::from_key(known_key, "my.key");
    std::string damaged = known_key;
    damaged.replace(damaged.find("MC4C"), 4, "MC5C");
    const auto torn = Identity::from_key(damaged, "my.key");
    if (!is_set || made || read || torn) _exit(1);
    if (made.error().message.find("offers no Ed25519 (FIPS mode?)") == std::string::npos) _exit(2);
    if (read.error().message.find("of a kind that this OpenSSL does not offer (FIPS mode?): my.key: ") == std::string::npos)
      _exit(3);
    if (torn.error().message.find("damaged PEM: a private key: my.key: ") == std::string::npos) _exit(4);
    _exit(made.error().kind == ErrorKind::usage && read.error().kind == ErrorKind::usage ? 0 : 5);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("identity__a_key_with_a_passphrase__refused_and_nobody_is_asked") {
  const PkeyPtr rsa = make_key("RSA:2048");
  for (const bool traditional : {false, true})
    CHECK(has(complaint_of_key(encrypted(rsa.get(), traditional)), "a key with a passphrase: my.key: "));
}

TEST_CASE("identity__a_damaged_key_at_any_character__never_another_identity") {
  const Identity identity = *Identity::from_key(known_key, "my.key");
  for (size_t at = 0; at < known_key.size(); ++at) {
    for (const char c : {'!', '-', '\n', '\0', '\xff'}) {
      std::string text = known_key;
      text[at] = c;
      const auto read = Identity::from_key(text, "my.key");
      if (read) {
        // Another key of Ed25519 cannot be told from a damaged one, but these characters are no base64.
        CHECK(read->id() == identity.id());
      } else {
        CHECK(has(complaint(read), "my.key: "));
        CHECK_FALSE(has(complaint(read), "MC4C"));
        CHECK_FALSE(has(complaint(read), "INTu"));
      }
    }
    CHECK((complaint_of_key(known_key.substr(0, at)).find("my.key: ") != std::string::npos || at + 1 >= known_key.size()));
  }
}

TEST_CASE("identity__der_that_is_no_key_inside_good_pem__damaged") {
  CHECK(has(complaint_of_key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            "damaged PEM: a private key: my.key: "));
  // One byte behind the key.
  CHECK(has(complaint_of_key("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhCAA==\n"
                             "-----END PRIVATE KEY-----\n"),
            "damaged PEM: a private key: my.key: "));
  CHECK(has(complaint_of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", known_key),
            "damaged PEM: a certificate: host.pem: "));
}

TEST_CASE("identity__a_key_that_is_weak_or_unknown__refused_by_name") {
  const auto kind = [](const char* name) { return complaint_of_key(pem_of(make_key(name).get())); };
  CHECK(has(kind("RSA:1024"), "a key that is not taken (RSA of 1024 bits): my.key: "));
  CHECK(has(kind("EC:secp256k1"), "a key that is not taken (EC on the curve secp256k1): my.key: "));
  CHECK(has(kind("ED448"), "a key that is not taken (of the kind ED448): my.key: "));
  const Issued weak = self_signed({.key = "RSA:1024"});
  CHECK(has(complaint_of(weak.certificate_pem(), weak.key_pem()), "a key that is not taken (RSA of 1024 bits): host.key: "));
}

TEST_CASE("identity__a_certificate_signed_with_sha1__refused_with_openssl_s_reason") {
  const Issued host = Facility("Facility").issue({.digest = EVP_sha1()});
  CHECK(has(complaint_of(host.certificate_pem(), host.key_pem()), "not taken for TLS 1.3 (ca md too weak): host.pem: "));
}

TEST_CASE("identity__a_key_alone_that_is_not_ed25519__asks_for_its_certificate") {
  for (const char* kind : {"RSA:2048", "EC:P-256"}) {
    CHECK(has(complaint_of_key(pem_of(make_key(kind).get())), "a key that needs a certificate (it is not Ed25519): my.key: "));
  }
}

TEST_CASE("identity__a_certificate_of_a_facility__its_key_is_the_identity") {
  const Facility facility("Facility");
  for (const char* kind : {"RSA:2048", "EC:P-256", "EC:P-384", "EC:P-521", "ED25519"}) {
    INFO(kind);
    const Issued host = facility.issue({.key = kind});
    const auto identity = Identity::from_certificate(host.certificate_pem(), "host.pem", host.key_pem(), "host.key");
    REQUIRE(identity);
    CHECK(identity->has_own_certificate());
    unsigned char* der = nullptr;
    const int length = i2d_PUBKEY(host.key.get(), &der);
    const std::unique_ptr<unsigned char, FreedMemory> owner(der);
    CHECK(identity->id() == peer_id_of(std::as_bytes(std::span(der, static_cast<size_t>(length)))));
  }
}

TEST_CASE("identity__dates_of_our_certificate__are_told_and_mean_nothing_of_one_that_signed_itself") {
  const Facility facility("Facility");
  const Facility below("Below", &facility, {.not_after_s = test_now_s + day_s});
  const auto words = [](const Issued& host, int64_t at_s) {
    return Identity::from_certificate(host.certificate_pem(), "host.pem", host.key_pem(), "host.key").value().out_of_date(at_s);
  };
  const Issued host = facility.issue({.not_before_s = test_now_s, .not_after_s = test_now_s + 10 * day_s});
  CHECK(words(host, test_now_s).empty());
  CHECK(words(host, test_now_s + 10 * day_s).empty());
  CHECK(words(host, test_now_s + 10 * day_s + 1) == "has expired (2027-01-25)");
  CHECK(words(host, test_now_s - 1) == "is not valid before 2027-01-15");
  CHECK(words(below.issue(), test_now_s + 2 * day_s) == "has expired (2027-01-16)");  // that of the authority between
  CHECK(words(self_signed({.not_after_s = test_now_s}), test_now_s + day_s).empty());
  CHECK(Identity::generate().value().out_of_date(int64_t{1} << 40).empty());
}

TEST_CASE("identity__key_and_certificate_in_one_file__each_finds_its_own") {
  const Issued host = Facility("Facility").issue();
  const std::string both = host.key_pem() + host.certificate_pem();
  CHECK(complaint_of(both, both).empty());
  CHECK(complaint_of(host.certificate_pem() + host.key_pem(), both).empty());
}

TEST_CASE("identity__a_certificate_file_of_the_wrong_kind__named_in_one_line") {
  const Facility facility("Facility");
  const Issued host = facility.issue(), other = facility.issue();
  CHECK(has(complaint_of(host.key_pem(), host.key_pem()), "a private key and not a certificate: host.pem: "));
  CHECK(has(complaint_of("", host.key_pem()), "no PEM file with a certificate: host.pem: "));
  CHECK(has(complaint_of(host.certificate_pem(), host.certificate_pem()), "a certificate and not a private key: host.key: "));
  CHECK(has(complaint_of(facility.revocation_list({}), host.key_pem()), "a revocation list and not a certificate: host.pem: "));
  CHECK(has(complaint_of(other.certificate_pem(), host.key_pem()),
            "the first certificate is not that of the key: host.pem: the key is in host.key"));
  CHECK(has(complaint_of(facility.pem() + host.certificate_pem(), host.key_pem()),
            "the first certificate is not that of the key: host.pem: "));
}

TEST_CASE("identity__too_much_in_a_pem_file__refused") {
  std::string many;
  const std::string one = pem_of(self_signed({}).certificate.get());
  for (int i = 0; i < 1001; ++i) many += one;
  CHECK(has(complaint_of(many, known_key), "too much in one PEM file: host.pem: "));
  CHECK(has(complaint_of(std::string((16u << 20) + 1, '\n'), known_key), "too long for a PEM file: host.pem: "));
}

TEST_CASE("authority__files_that_are_none__named_in_one_line") {
  const Facility facility("Facility"), stranger("Stranger");
  const Issued host = facility.issue();
  const auto said = [](const std::string& ca, const std::string& crl) {
    const auto authority = Authority::from_pem(ca, "ca.pem", crl, crl.empty() ? "" : "crl.pem");
    return authority ? std::string() : authority.error().message;
  };
  CHECK(said(facility.pem(), "").empty());
  CHECK(said(facility.pem() + stranger.pem(), stranger.revocation_list({}) + facility.revocation_list({&host})).empty());
  CHECK(said(facility.pem() + facility.pem(), "").empty());
  CHECK(has(said("", ""), "no PEM file with a certificate: ca.pem: "));
  CHECK(has(said(host.key_pem(), ""), "a private key and not a certificate: ca.pem: "));
  CHECK(has(said(host.certificate_pem(), ""), "'host' is no authority: ca.pem: "));
  CHECK(has(said(facility.pem(), facility.pem()), "a certificate and not a revocation list: crl.pem: "));
  CHECK(has(said(facility.pem(), "hello"), "no PEM file with a revocation list: crl.pem: "));
  const auto empty_list = Authority::from_pem(facility.pem(), "ca.pem", "", "crl.pem");  // a copy that was cut off, say
  CHECK(has(empty_list ? "" : empty_list.error().message, "no PEM file with a revocation list: crl.pem: "));
  CHECK(has(said(facility.pem(), stranger.revocation_list({})),
            "a revocation list of 'Stranger', which is not an authority in ca.pem: crl.pem: "));
  CHECK(has(said(facility.pem(), Facility("Facility").revocation_list({})),
            "a revocation list that 'Facility' did not sign: crl.pem: "));
  const Facility weak("Weak", nullptr, {.key = "RSA:1024"});
  CHECK(has(said(weak.pem(), ""), "the key of 'Weak' is not taken (RSA of 1024 bits): ca.pem: "));
}

}  // namespace
}  // namespace ccixfer::trust
