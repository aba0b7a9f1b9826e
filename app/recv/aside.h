// What stands aside of the tree that a session writes: older trees whose unchanged files are linked (--link-dest), and where
// replaced files are kept (--backup, --backup-dir). In a push these places are below the receiver's root, and the acceptor asks the
// gate about each. In a pull they are the user's own, and may be anywhere.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/recv/opened_root.h"
#include "core/base/result.h"

namespace ccixfer::recv {

struct SidePlace {
  std::string path;      // below the root
  bool outside = false;  // it is a path of the file system, as the user has it
};

struct Aside {
  struct Backup {
    std::optional<SidePlace> directory;  // none: beside the file
    std::string suffix;
  };
  std::vector<SidePlace> older;
  std::optional<Backup> backup;
  // As rsync has it: backups beside the files change their directories, so that these get no times.
  [[nodiscard]] bool keeps_directory_times() const { return !backup || backup->directory; }
};

// `given`: relative to `base`, the session's path, or from the root when it begins with a slash; it may have '..'.
// not_authorised: it leaves the root or is reserved.
[[nodiscard]] Result<std::string> beside(std::string_view base, std::string_view given);
// The path below the session's path. The session's path itself is "" if it is a directory; else it is a file's, and its last part.
[[nodiscard]] std::string_view below_base(std::string_view path, std::string_view base, bool is_directory);
// A descriptor of the directory; -errno: there is none.
[[nodiscard]] int open_side(OpenedRoot& root, const SidePlace& place);

}  // namespace ccixfer::recv
