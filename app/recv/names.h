// Names at the receiver: the session's path made safe, final paths below the root, names of staged files. Pure functions.
// A path here is relative to the root, '/'-separated, without empty, '.' or '..' components; "" is the root itself.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "app/session/reserved.h"
#include "core/base/hash.h"
#include "core/base/result.h"

namespace ccixfer::recv {

using session::part_suffix;
using session::staging_name;                                  // in the root; refused as a name of the source's
inline constexpr std::string_view ledger_name = "ledger.db";  // in the staging directory
inline constexpr std::string_view temporary_suffix = ".tmp";  // a staged file of a pack: worthless after a crash

struct SplitPath {
  std::string_view parent;  // "": the root
  std::string_view name;
};
[[nodiscard]] SplitPath split_path(std::string_view path);
[[nodiscard]] std::string join_path(std::string_view base, std::string_view below);

// A path as a user typed it (leading, doubled and trailing slashes, '.' components) below the root.
// not_authorised: '..', NUL, too long, or the reserved name: it would leave the root or touch the staging.
[[nodiscard]] Result<std::string> normalise_path(std::string_view typed);

// Reserved for us, never written for a source: staging directories (of this root, and of others that may stand below it), and
// staged files in target directories; as any component, upper case or lower, for there are file systems that do not tell them
// apart.
[[nodiscard]] bool is_reserved_path(std::string_view path);

[[nodiscard]] Hash128 path_key(std::string_view path);  // names a final path in claims, ledger and staging
// <hex of the key>-<hex of the version>.part
[[nodiscard]] std::string staged_name(const Hash128& key, uint64_t version);
// Staged beside its target, where a rename out of the staging directory would cross file systems.
[[nodiscard]] std::string staged_beside_name(const Hash128& key);

struct KeyHash {
  size_t operator()(const Hash128& key) const { return static_cast<size_t>(key.low); }
};

}  // namespace ccixfer::recv
