// The authority of a facility: certificates that we believe, and lists of those that were revoked.
#include <fmt/format.h>

#include <vector>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/key_kinds.h"
#include "core/trust/pem.h"
#include "core/trust/x509_words.h"

namespace ccixfer::trust {
namespace {

tl::unexpected<Error> wrong(std::string_view problem, std::string_view what, std::string_view to_do) {
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", problem, what, to_do));
}

// A list is believed only when an authority of the file signed it. So its issuers must all be there.
Result<void> check_list(X509_CRL* list, const std::vector<X509Ptr>& authorities, std::string_view ca_what,
                        std::string_view crl_what) {
  bool known = false;
  for (const X509Ptr& authority : authorities) {
    if (X509_NAME_cmp(X509_get_subject_name(authority.get()), X509_CRL_get_issuer(list)) != 0) continue;
    if (X509_CRL_verify(list, X509_get0_pubkey(authority.get())) == 1) return {};
    known = true;
  }
  const std::string issuer = name_of(X509_CRL_get_issuer(list));
  if (known) return wrong(fmt::format("a revocation list that {} did not sign", issuer), crl_what, "fetch it again");
  return wrong(fmt::format("a revocation list of {}, which is not an authority in {}", issuer, ca_what), crl_what,
               "add that authority's certificate there, or give its own list");
}

}  // namespace

Result<Authority> Authority::from_pem(std::string_view ca_pem, std::string_view ca_what, std::string_view crl_pem,
                                      std::string_view crl_what) {
  const CleanErrors clean;
  const Result<std::vector<X509Ptr>> authorities = read_certificates(ca_pem, ca_what);
  if (!authorities) return tl::unexpected(authorities.error());
  auto impl = std::make_shared<Impl>();
  impl->store.reset(X509_STORE_new());
  for (const X509Ptr& authority : *authorities) {
    const std::string name = name_of(X509_get_subject_name(authority.get()));
    if (X509_check_ca(authority.get()) != 1) {  // 1: it says so in its basic constraints
      return wrong(fmt::format("{} is no authority", name), ca_what, "give the certificate that signs the others");
    }
    if (const std::string kind = why_key_is_refused(X509_get0_pubkey(authority.get())); !kind.empty()) {
      return wrong(fmt::format("the key of {} is not taken ({})", name, kind), ca_what, "use an authority with a stronger key");
    }
    CHECK(X509_STORE_add_cert(impl->store.get(), authority.get()) == 1);
  }
  // A list that is configured and empty is a mistake, and not no list.
  if (!crl_pem.empty() || !crl_what.empty()) {
    const Result<std::vector<CrlPtr>> lists = read_revocation_lists(crl_pem, crl_what);
    if (!lists) return tl::unexpected(lists.error());
    for (const CrlPtr& list : *lists) {
      if (const Result<void> good = check_list(list.get(), *authorities, ca_what, crl_what); !good)
        return tl::unexpected(good.error());
      CHECK(X509_STORE_add_crl(impl->store.get(), list.get()) == 1);
    }
    impl->has_lists = true;
  }
  return Authority(std::move(impl));
}

}  // namespace ccixfer::trust
