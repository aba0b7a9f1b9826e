#include "core/trust/subject.h"

#include "core/trust/identity_impl.h"
#include "core/trust/x509_words.h"

namespace ccixfer::trust {

std::string subject_of(const Identity& identity) {
  if (!identity.has_own_certificate()) return "";
  const std::string quoted = name_of(X509_get_subject_name(identity.impl().certificate.get()));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace ccixfer::trust
