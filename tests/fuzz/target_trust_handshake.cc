// A peer that says anything in a handshake, and shows anything as its certificate. The first byte chooses:
// 0, 1: the rest is what an acceptor, a dialler of ours gets; its second byte is the length of the pieces.
// 2: the rest is a certificate (DER) that is judged as it is.
// 3: the rest is two extensions of a certificate that our authority signed: subjectAltName, and one whose kind a byte chooses.
// 4: an honest handshake in which the rest changes bytes: flight u8, place u16, difference u8.
#include <algorithm>

#include "core/trust/handshake.h"
#include "core/trust/identity_impl.h"
#include "core/trust/openssl_objects.h"
#include "core/trust/peer_certificate.h"
#include "core/wire/cursor.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;
using trust::HandshakeSide;

namespace {

constexpr int64_t now_s = 1'800'000'000;
constexpr size_t changes_max = 64;

const trust::Identity& ours() {
  static const trust::Identity identity = trust::Identity::generate().value();
  return identity;
}

// Issuer and key of the authority, and a host's certificate to put extensions into.
struct Facility {
  trust::PkeyPtr key{EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")};
  trust::Authority authority = make();

  trust::Authority make() {
    const trust::X509Ptr root = certificate("root");
    const trust::X509Ptr dummy;
    X509_set_issuer_name(root.get(), X509_get_subject_name(root.get()));
    const unsigned char is_authority[] = {0x30, 0x03, 0x01, 0x01, 0xff};
    add(root.get(), NID_basic_constraints, std::as_bytes(std::span(is_authority)));
    fuzz::must(X509_sign(root.get(), key.get(), nullptr) > 0);
    const trust::BioPtr pem(BIO_new(BIO_s_mem()));
    fuzz::must(PEM_write_bio_X509(pem.get(), root.get()) == 1);
    char* text = nullptr;
    const long length = BIO_get_mem_data(pem.get(), &text);
    auto read = trust::Authority::from_pem({text, static_cast<size_t>(length)}, "ca", "", "");
    fuzz::must(read.has_value());
    return *std::move(read);
  }
  [[nodiscard]] trust::X509Ptr certificate(const char* name) const {
    trust::X509Ptr made(X509_new());
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_TIME_set(X509_getm_notBefore(made.get()), 0);
    ASN1_TIME_set(X509_getm_notAfter(made.get()), now_s * 2);
    const auto add_name = [](X509_NAME* to, const char* text) {
      X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text), -1, -1, 0);
    };
    add_name(X509_get_subject_name(made.get()), name);
    X509_set_pubkey(made.get(), key.get());
    return made;
  }
  static void add(X509* to, int nid, Bytes value) {
    const std::unique_ptr<ASN1_OCTET_STRING, trust::FreedBy<ASN1_OCTET_STRING_free>> octets(ASN1_OCTET_STRING_new());
    ASN1_OCTET_STRING_set(octets.get(), reinterpret_cast<const unsigned char*>(value.data()), static_cast<int>(value.size()));
    const std::unique_ptr<X509_EXTENSION, trust::FreedBy<X509_EXTENSION_free>> extension(
        X509_EXTENSION_create_by_NID(nullptr, nid, 1, octets.get()));
    X509_add_ext(to, extension.get(), -1);
  }
};

const Facility& facility() {
  static const Facility made;
  return made;
}

void judge(X509* certificate) {
  for (const HandshakeSide side : {HandshakeSide::dialler, HandshakeSide::acceptor}) {
    for (const trust::Authority* authority : {static_cast<const trust::Authority*>(nullptr), &facility().authority}) {
      const trust::Verdict verdict = trust::judge_certificate(certificate, nullptr, side, authority, now_s);
      fuzz::must(verdict.why.empty() == (verdict.x509_error == X509_V_OK));
      fuzz::must(verdict.peer.certified || verdict.peer.names.empty());
      for (const char c : verdict.why) fuzz::must(static_cast<unsigned char>(c) >= 0x20);
      for (const std::string& name : verdict.peer.names) {
        for (const char c : name) fuzz::must(c > ' ' && c <= '~');
      }
    }
  }
}

void feed(HandshakeSide side, Bytes said) {
  trust::Handshake handshake({side, ours(), facility().authority, now_s, std::nullopt});
  const size_t piece = said.empty() ? 1 : 1 + std::to_integer<size_t>(said[0]) * 16;
  said = said.subspan(std::min<size_t>(1, said.size()));
  fuzz::must(handshake.step({}).has_value());
  for (; !said.empty(); said = said.subspan(std::min(piece, said.size()))) {
    if (const auto answer = handshake.step(said.first(std::min(piece, said.size()))); !answer) {
      fuzz::must(answer.error().kind == ErrorKind::protocol || answer.error().kind == ErrorKind::authentication);
    }
    static_cast<void>(handshake.take_output());
  }
  fuzz::must(!handshake.done());  // nobody guesses our half of the key
}

void judge_der(Bytes der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const trust::X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (certificate != nullptr) judge(certificate.get());
}

void judge_extensions(Bytes input) {
  constexpr std::array kinds{NID_ext_key_usage,
                             NID_key_usage,
                             NID_basic_constraints,
                             NID_name_constraints,
                             NID_certificate_policies,
                             NID_crl_distribution_points,
                             NID_authority_key_identifier,
                             NID_subject_key_identifier,
                             NID_netscape_cert_type,
                             NID_policy_constraints,
                             NID_inhibit_any_policy,
                             NID_sbgp_ipAddrBlock,
                             NID_sbgp_autonomousSysNum,
                             NID_issuer_alt_name};
  wire::Reader in(input);
  const int kind = kinds[in.u8() % kinds.size()];
  const Bytes other = in.bytes(std::min<size_t>(in.u8(), in.remaining()));
  const trust::X509Ptr certificate = facility().certificate("host");
  X509_NAME_add_entry_by_txt(X509_get_issuer_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("root"), -1, -1, 0);
  Facility::add(certificate.get(), NID_subject_alt_name, in.rest());
  if (!other.empty()) Facility::add(certificate.get(), kind, other);
  fuzz::must(X509_sign(certificate.get(), facility().key.get(), nullptr) > 0);
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate.get(), &der);
  const std::unique_ptr<unsigned char, trust::FreedMemory> owner(der);
  judge_der(std::as_bytes(std::span(der, static_cast<size_t>(length))));
}

void change_bytes(Bytes input) {
  trust::Handshake dials({HandshakeSide::dialler, ours(), std::nullopt, now_s, std::nullopt});
  trust::Handshake accepts({HandshakeSide::acceptor, ours(), std::nullopt, now_s, std::nullopt});
  fuzz::must(dials.step({}).has_value());
  std::vector<std::byte> flight = dials.take_output();
  for (uint8_t number = 0; !flight.empty(); ++number) {
    wire::Reader in(input);
    for (size_t i = 0; i < changes_max && in.remaining() >= 4; ++i) {
      const bool here = in.u8() % 4 == number;
      const size_t place = in.u16() % flight.size();
      const auto difference = static_cast<std::byte>(in.u8());
      if (here) flight[place] ^= difference;
    }
    trust::Handshake& to = number % 2 == 0 ? accepts : dials;
    static_cast<void>(to.step(flight));
    flight = to.take_output();
    fuzz::must(number < 16);
  }
  if (accepts.done()) fuzz::must(dials.done() && dials.exported("a").equals(accepts.exported("a").bytes()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes rest = fuzz::bytes_of(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      feed(HandshakeSide::acceptor, rest);
      break;
    case 1:
      feed(HandshakeSide::dialler, rest);
      break;
    case 2:
      judge_der(rest);
      break;
    case 3:
      judge_extensions(rest);
      break;
    default:
      change_bytes(rest);
  }
  return 0;
}
