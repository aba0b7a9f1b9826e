// Who this process is: the key that it proves in handshakes, and the authority whose certificates it believes.
// Where they come from: [identity] of the configuration; for what it does not name, the account's key (Places::key, which
// `ccixfer keygen` makes), else that of the system for root.
// A key must be a regular file of this account or of root, with no permission for others; certificates may be read by all.
// Errors: usage: a file that is missing, damaged, or that others may use, in one line that names it. authentication: there is no
// identity. file_io, no_space: a new key cannot be kept.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "app/config/peers.h"
#include "app/trust/places.h"
#include "core/base/result.h"
#include "core/trust/identity.h"

namespace ccixfer::policy {

struct LocalIdentity {
  trust::Identity identity;
  std::optional<trust::Authority> authority;
  std::string file;   // of the key; "": made for this process only
  bool made = false;  // just now, and kept in `file`
};

// What happens where there is no identity.
enum class WithoutIdentity : uint8_t {
  refuse,
  make_for_this_process,  // a dialler with a ticket: the ticket is what it is known by
  make_and_keep,          // a listener that issues tickets: they name its id, so it must have it again after a restart
};

[[nodiscard]] Result<LocalIdentity> load_local_identity(const std::optional<program::IdentityConfig>& config, const Places& places,
                                                        WithoutIdentity without);

// A new key in `file`, whose directory exists, and who it is. Unless `force`, a file that is there is an error (usage) and stays.
[[nodiscard]] Result<trust::Identity> make_key(const std::string& file, bool force);

}  // namespace ccixfer::policy
