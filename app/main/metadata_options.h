// What of files and directories is kept besides their content: rsync's options of these names.
// In: what the command line gave. Out: bits of the session's options.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/session/tweaks.h"
#include "core/base/result.h"

namespace ccixfer::program {

struct MetadataOptions {
  bool hard_links = false;   // -H
  bool acls = false;         // -A
  bool xattrs = false;       // -X
  bool sparse = false;       // -S
  bool numeric_ids = false;  // --numeric-ids
  std::string chown;         // USER:GROUP
  std::vector<std::string> chmod;
};

[[nodiscard]] uint32_t session_options(const MetadataOptions& metadata);  // session::Option bits
// --chown and --chmod; none: neither was given. `here`: the names of owners are those of this host, and must be known; else they
// may be known only to the peer. usage: they are malformed.
[[nodiscard]] Result<session::TweaksRef> tweaks_of(const MetadataOptions& metadata, bool here);
// The owners of --chown that are names which this host does not know, as `user NAME`.
[[nodiscard]] std::vector<std::string> unknown_owners(const MetadataOptions& metadata);
// The name of one that was given, for a side that does not dial; nullptr: none was.
[[nodiscard]] const char* given_of(const MetadataOptions& metadata);

}  // namespace ccixfer::program
