// The name of an identity's certificate, for people: nothing is decided by it.
#pragma once
#include <string>

#include "core/trust/identity.h"

namespace ccixfer::trust {

// The common name, else the whole name; printable, in one line, cut to a readable length; "": the certificate is made from the key
// and has no name of its own.
[[nodiscard]] std::string subject_of(const Identity& identity);

}  // namespace ccixfer::trust
