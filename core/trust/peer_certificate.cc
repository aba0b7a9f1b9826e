#include "core/trust/peer_certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/key_kinds.h"
#include "core/trust/x509_words.h"

namespace ccixfer::trust {
namespace {

constexpr int chain_depth_max = 8;
constexpr int security_level = 2;  // OpenSSL's: 112 bits, so no RSA below 2,048 and no SHA-1

std::string_view text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

// Empty: it is no host name. A zero byte in it, as in `good.example\0.evil.example`, is one reason.
std::string host_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool good = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '*';
    if (!good) return {};
    name += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

std::string address_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  return inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? std::string() : std::string(text.data());
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const NamesPtr all(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* each = sk_GENERAL_NAME_value(all.get(), i);
    std::string name;
    if (each->type == GEN_DNS) name = host_name(text_of(each->d.dNSName));
    if (each->type == GEN_IPADD) name = address_text(text_of(each->d.iPAddress));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

// Called at each error. Above the peer's own certificate a revocation list may be missing: a facility may give the list of the
// authority that signs hosts and none of the one that signed that authority. The list at fault is known here only.
int at_error(int good, X509_STORE_CTX* context) {
  if (good == 1) return 1;
  const int error = X509_STORE_CTX_get_error(context);
  const X509_CRL* list = X509_STORE_CTX_get0_current_crl(context);
  if (list != nullptr) {
    const bool expired = error == X509_V_ERR_CRL_HAS_EXPIRED;
    *static_cast<std::string*>(X509_STORE_CTX_get_app_data(context)) =
        day_of(expired ? X509_CRL_get0_nextUpdate(list) : X509_CRL_get0_lastUpdate(list));
  }
  return error == X509_V_ERR_UNABLE_TO_GET_CRL && X509_STORE_CTX_get_error_depth(context) > 0 ? 1 : 0;
}

// What is wrong with our lists is not the peer's fault, and the alert says only that its certificate cannot be checked.
int error_for_the_peer(int error) {
  const bool of_lists =
      error == X509_V_ERR_UNABLE_TO_GET_CRL || error == X509_V_ERR_CRL_HAS_EXPIRED || error == X509_V_ERR_CRL_NOT_YET_VALID;
  return of_lists ? X509_V_ERR_CRL_PATH_VALIDATION_ERROR : error;
}

void refuse(Verdict& verdict, int x509_error, std::string why) {
  verdict.x509_error = x509_error;
  verdict.why = std::move(why);
}

struct Judging {
  X509* certificate;
  STACK_OF(X509) * intermediates;
  HandshakeSide judge;
  const Authority& authority;
  int64_t wall_time_s;
};

struct ChainResult {
  int error = X509_V_OK;
  std::string why;
};

ChainResult check_chain(const Judging& judging, unsigned long flags) {
  const StoreCtxPtr context(X509_STORE_CTX_new());
  CHECK(context != nullptr);
  CHECK(X509_STORE_CTX_init(context.get(), judging.authority.impl().store.get(), judging.certificate, judging.intermediates) == 1);
  const bool of_server = judging.judge == HandshakeSide::dialler;
  CHECK(X509_STORE_CTX_set_purpose(context.get(), of_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT) == 1);
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, judging.wall_time_s);
  X509_VERIFY_PARAM_set_depth(rules, chain_depth_max);
  X509_VERIFY_PARAM_set_auth_level(rules, security_level);
  if (judging.authority.impl().has_lists) flags |= X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
  CHECK(X509_VERIFY_PARAM_set_flags(rules, flags) == 1);
  std::string list_day;
  X509_STORE_CTX_set_app_data(context.get(), &list_day);
  X509_STORE_CTX_set_verify_cb(context.get(), at_error);
  if (X509_verify_cert(context.get()) == 1) return {};
  const int error = X509_STORE_CTX_get_error(context.get());
  return {
      error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error,
      why_refused(error, X509_STORE_CTX_get_current_cert(context.get()), X509_STORE_CTX_get_error_depth(context.get()), list_day)};
}

// A chain to a root where there is one, so that the lists of all authorities on the way count. Else to an intermediate authority of
// ours, which need not stand below a root. Not at once: OpenSSL then ends at the first one of ours and checks its list with the
// wrong key.
void judge_chain(Verdict& verdict, const Judging& judging) {
  ChainResult result = check_chain(judging, 0);
  const bool no_root =
      result.error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT || result.error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
  if (no_root) result = check_chain(judging, X509_V_FLAG_PARTIAL_CHAIN);
  if (result.error != X509_V_OK) refuse(verdict, error_for_the_peer(result.error), std::move(result.why));
}

std::shared_ptr<const ShownCertificate> shown_of(X509* certificate, STACK_OF(X509) * intermediates, HandshakeSide judge) {
  auto shown = std::make_shared<ShownCertificate>();
  CHECK(X509_up_ref(certificate) == 1);
  shown->certificate.reset(certificate);
  if (intermediates != nullptr) shown->intermediates.reset(X509_chain_up_ref(intermediates));
  shown->judge = judge;
  return shown;
}

}  // namespace

std::string why_no_longer(const ProvedPeer& peer, const std::optional<Authority>& authority, int64_t wall_time_s) {
  if (!peer.certified || peer.shown == nullptr) return {};
  if (!authority) return "no authority of ours vouches for the peer's certificate any more";
  const CleanErrors clean;
  Verdict verdict;
  const ShownCertificate& shown = *peer.shown;
  judge_chain(verdict, {shown.certificate.get(), shown.intermediates.get(), shown.judge, *authority, wall_time_s});
  return verdict.why;
}

Verdict judge_certificate(X509* certificate, STACK_OF(X509) * intermediates, HandshakeSide judge, const Authority* authority,
                          int64_t wall_time_s) {
  const CleanErrors clean;
  Verdict verdict;
  if (const std::string kind = why_key_is_refused(X509_get0_pubkey(certificate)); !kind.empty()) {
    refuse(verdict, X509_V_ERR_EE_KEY_TOO_SMALL,
           fmt::format("the peer's key is not taken ({}): use Ed25519, RSA of 2048 bits or more, or EC on P-256", kind));
    return verdict;
  }
  verdict.peer.id = peer_id_of(certificate);
  const bool known_by_key = authority == nullptr || X509_self_signed(certificate, 1 /* look at the signature too */) == 1;
  if (known_by_key) return verdict;

  if (X509_check_ca(certificate) != 0) {
    refuse(verdict, X509_V_ERR_INVALID_PURPOSE, "the peer's certificate is that of an authority: get one for the host");
    return verdict;
  }
  judge_chain(verdict, {certificate, intermediates, judge, *authority, wall_time_s});
  if (!verdict.why.empty()) return verdict;
  verdict.peer.certified = true;
  verdict.peer.names = names_of(certificate);
  verdict.peer.shown = shown_of(certificate, intermediates, judge);
  return verdict;
}

}  // namespace ccixfer::trust
