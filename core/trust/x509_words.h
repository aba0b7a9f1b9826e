// Words for people about certificates: names, dates, and why one was refused.
#pragma once
#include <string>
#include <string_view>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

// The common name, or else the whole name, in quotes; printable and cut to a readable length.
[[nodiscard]] std::string name_of(const X509_NAME* name);
// Day of a date, 2026-11-01.
[[nodiscard]] std::string day_of(const ASN1_TIME* time);
// Why the check of a chain ended with `error`, what it was about, and what to do. `at` is the certificate where it ended, which is
// the peer's own one at `depth` 0; `list_day` is the date of the revocation list that is at fault.
[[nodiscard]] std::string why_refused(int error, const X509* at, int depth, std::string_view list_day);

}  // namespace ccixfer::trust
