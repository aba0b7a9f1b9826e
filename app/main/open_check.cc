#include "app/main/open_check.h"

#include <fmt/format.h>

#include "app/session/entry.h"
#include "app/session/tlv.h"

namespace ccixfer::program {
namespace {

constexpr uint32_t known_options =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times |
    session::option_owner | session::option_checksum | session::option_dry_run | session::option_directory |
    session::option_verify | session::option_update | session::option_size_only | session::option_ignore_existing |
    session::option_one_file_system | session::option_itemize | session::option_hard_links | session::option_acls |
    session::option_xattrs | session::option_specials | session::option_numeric_ids | session::option_sparse |
    session::option_whole_file | session::option_inplace;

}  // namespace

Result<PeerPath> check_open(const session::Open& open) {
  if ((open.options & ~known_options) != 0)
    return fail(ErrorKind::protocol, "the peer asks for options that this version does not have");
  if (open.unknown_mandatory != 0)
    return fail(ErrorKind::protocol, session::words_of_unknown("request to open a session", open.unknown_mandatory));
  PeerPath path = peer_path(open.path);
  if (!path.path.empty() && !session::is_safe_relative_path(path.path)) {
    return fail(ErrorKind::not_authorised, fmt::format("the path leaves the root: {}: name a place below it", open.path));
  }
  return path;
}

Result<void> check_second(const session::Open& open, bool shares_root) {
  if (open.is_second == shares_root) return {};
  return fail(ErrorKind::usage, shares_root
                                    ? "this receiver only helps another one with large files (recv --shares-root): name that "
                                      "one first, as the first DEST"
                                    : "this receiver has its root for itself: start it with --shares-root to have it help "
                                      "the first DEST");
}

}  // namespace ccixfer::program
