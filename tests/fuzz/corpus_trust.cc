// First inputs of the targets about trust: texts and files that are right, certificates, handshakes, and what was sealed. All of it
// is the same each time: the key is that of RFC 8410, Ed25519 signs without chance, and the handshakes were recorded once.
#include <openssl/pem.h>

#include <string>

#include "core/trust/identity_impl.h"
#include "core/trust/known_peers.h"
#include "core/trust/seal_key.h"
#include "core/trust/ticket.h"
#include "core/wire/cursor.h"
#include "tests/fuzz/corpus.h"

namespace ccixfer::fuzz {
namespace {

constexpr std::string_view key_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr std::string_view dialler_flight =
    "16030100b4010000b003031398054fad4fd2fe042c8b68493e0c224a8ee2ae05105d16acf7b3d96562c2770000061302130300ff01000081000b0004"
    "03000102000a00060004001d00170010000c000a09636369786665722f310016000000170000000d001c001a08070403050306030804080508060809"
    "080a080b040105010601002b0003020304002d00020101003300260024001d002086697345eb8f4d698479b825c14b4ef83d674498a03564f908c85a"
    "0fe1d3b11c";
constexpr std::string_view acceptor_flight =  // the hello, and the beginning of what is encrypted
    "160303005a0200005603033e9f81a42c7411392d1c5ac52feebc12bd4fe72354866f7d0ca54a3d9f178b5700130200002e002b000203040033002400"
    "1d0020465d285ea47020a5384799a5087229b12848b32f962f120523efe2787dde247717030300270ca7372906cfecbbd9d737f373ad55d8a783cada"
    "1094b92a68f7f35b41ec29ed";

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2)
    bytes += static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16));
  return bytes;
}

void keep(const char* target, const std::string& bytes) { put(target, as_bytes(bytes)); }

struct Certificate {
  std::string pem, der;
};
Certificate certificate_of(const trust::Identity& identity) {
  X509* certificate = identity.impl().certificate.get();
  const trust::BioPtr pem(BIO_new(BIO_s_mem())), der(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), certificate);
  i2d_X509_bio(der.get(), certificate);
  const auto all_of = [](BIO* bio) {
    char* text = nullptr;
    const long length = BIO_get_mem_data(bio, &text);
    return std::string(text, static_cast<size_t>(length));
  };
  return {all_of(pem.get()), all_of(der.get())};
}

void texts(const trust::Identity& identity, const Certificate& certificate) {
  trust::Ticket ticket;
  ticket.number = {1, 2, 3};
  ticket.secret = {4, 5, 6};
  ticket.listener = identity.id();
  ticket.expires_s = 1'800'000'000;
  ticket.addresses = {"tcp://10.0.0.1:7100", "cci://1:2:10.0.0.1:7100"};
  std::vector<std::byte> fields;
  wire::Writer out(fields);
  out.bytes(std::as_bytes(std::span(ticket.number)));
  out.bytes(std::as_bytes(std::span(ticket.secret)));
  out.bytes(std::as_bytes(std::span(ticket.listener.sha256)));
  out.i64(ticket.expires_s);
  out.u8(1);
  out.u8(6);
  out.text("tcp://");
  keep("trust_texts", trust::to_text(ticket));
  put("trust_texts", fields);
  keep("trust_texts", trust::to_string(identity.id()));
  keep("trust_texts", "# by hand\n\n" + trust::KnownPeers::line("tcp://10.0.0.1:7100", identity.id()) +
                          trust::KnownPeers::line("cci://1:2:[fe80::1]:7", identity.id()));
  keep("trust_texts", std::string(key_pem));
  keep("trust_texts", std::string(key_pem) + certificate.pem);
  keep("trust_texts", certificate.pem + certificate.pem);
  keep("trust_texts", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
  keep(
      "trust_texts",
      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n");
  keep("trust_texts", "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n");
}

void handshakes(const Certificate& certificate) {
  const auto begin = [](int how, int pieces = 0) { return std::string{static_cast<char>(how), static_cast<char>(pieces)}; };
  keep("trust_handshake", begin(0, 255) + from_hex(dialler_flight));
  keep("trust_handshake", begin(0) + from_hex(dialler_flight));
  keep("trust_handshake", begin(1, 255) + from_hex(acceptor_flight));
  keep("trust_handshake", begin(2).substr(0, 1) + certificate.der);
  keep("trust_handshake", begin(3, 0) + from_hex("0c") + from_hex("300a06082b06010505070301") + from_hex("3014820c") +
                              "dtn1.example" + from_hex("8704c0000207"));
  keep("trust_handshake", begin(3, 2) + from_hex("05") + from_hex("30030101ff") + from_hex("3000"));
  keep("trust_handshake", begin(4).substr(0, 1));
  keep("trust_handshake", begin(4).substr(0, 1) + from_hex("00400001"
                                                           "01900080"
                                                           "02500010"));
}

void sealed() {
  for (int cipher = 0; cipher < 2; ++cipher) {
    std::string input{static_cast<char>(cipher)};
    input += std::string("\x07\0\0\0\0\0\0\0", 8) + "\x06header" + std::string(trust::tag_bytes, 't') +
             "some text that was never sealed";
    keep("trust_seal", input);
  }
}

}  // namespace

void make_trust() {
  const trust::Identity identity = *trust::Identity::from_key(key_pem, "key");
  const Certificate certificate = certificate_of(identity);
  texts(identity, certificate);
  handshakes(certificate);
  sealed();
}

}  // namespace ccixfer::fuzz
