// Names at the receiver: the session's path made safe, final paths below the root, and the names of
// staged files. A path here is relative to the root and has no empty, '.' or '..' component; '/'
// separates components, and "" is the root itself. Pure functions.
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
[[nodiscard]] bool is_below(std::string_view path, std::string_view outer);  // everything is below "", and nothing below itself
[[nodiscard]] std::string join_path(std::string_view base, std::string_view below);

// Makes a path below the root of one as a user typed it, which may have leading, doubled and trailing
// slashes and '.' components. not_authorised: it would leave the root or touch the staging directory
// ('..', NUL, a reserved name), or it is too long.
[[nodiscard]] Result<std::string> normalise_path(std::string_view typed);

// Whether a component is reserved and never written for a source: the staging directory of this root
// or of others below it, and files that are staged beside their targets. The case does not matter,
// because some file systems do not tell upper case from lower.
[[nodiscard]] bool is_reserved_path(std::string_view path);

[[nodiscard]] Hash128 path_key(std::string_view path);  // names a final path in claims, ledger and staging
// <hex of the key>-<hex of the version>.part
[[nodiscard]] std::string staged_name(const Hash128& key, uint64_t version);
// The name of a file that is staged beside its target, because a rename out of the staging directory
// would cross file systems.
[[nodiscard]] std::string staged_beside_name(const Hash128& key);

struct KeyHash {
  size_t operator()(const Hash128& key) const { return static_cast<size_t>(key.low); }
};

}  // namespace ccixfer::recv
