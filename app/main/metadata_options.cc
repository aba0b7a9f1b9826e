#include "app/main/metadata_options.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <system_error>

#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/units.h"
#include "core/host/accounts.h"

namespace ccixfer::program {

uint32_t session_options(const MetadataOptions& metadata) {
  uint32_t options = 0;
  if (metadata.hard_links) options |= session::option_hard_links;
  if (metadata.acls) options |= session::option_acls | session::option_permissions;  // as with rsync, which needs the mode for it
  if (metadata.xattrs) options |= session::option_xattrs;
  if (metadata.sparse) options |= session::option_sparse;
  if (metadata.numeric_ids) options |= session::option_numeric_ids;
  return options;
}

namespace {

constexpr uint32_t nobody = 65'534;  // for a name that is known to the peer, if to anybody

Result<session::OwnerWish> owner_of(const std::string& text, bool is_group, bool here) {
  session::OwnerWish wish;
  if (text.empty()) return wish;
  wish.is_set = true;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wish.id);
  if (problem == std::errc() && end == text.data() + text.size()) return wish;
  const int error = host::id_of_account(is_group, text, wish.id);
  const char* what = is_group ? "group" : "user";
  if (error < 0 && error != -ENOENT) {
    return fail(ErrorKind::file_io, fmt::format("--chown: {}: the {} cannot be looked up: {}: try again, or give its number",
                                                printable(text), what, std::generic_category().message(-error)));
  }
  if (error < 0 && (here || text.size() > session::name_bytes_max)) {
    return fail(ErrorKind::usage,
                fmt::format("bad value: --chown: {}: no such {} here: give a name or a number", printable(text), what));
  }
  if (error < 0) wish.id = nobody;
  if (!here) wish.name = text;
  return wish;
}

}  // namespace

Result<session::TweaksRef> tweaks_of(const MetadataOptions& metadata, bool here) {
  if (metadata.chown.empty() && metadata.chmod.empty()) return session::TweaksRef();
  auto tweaks = std::make_shared<session::Tweaks>();
  const mode_t umask = ::umask(022);
  ::umask(umask);
  for (const std::string& text : metadata.chmod) {
    if (auto added = tweaks->modes.add(text, umask); !added) return tl::unexpected(added.error());
  }
  const size_t colon = metadata.chown.find(':');
  auto user = owner_of(metadata.chown.substr(0, colon), false, here);
  if (!user) return tl::unexpected(user.error());
  auto group = owner_of(colon == std::string::npos ? std::string() : metadata.chown.substr(colon + 1), true, here);
  if (!group) return tl::unexpected(group.error());
  tweaks->user = *user;
  tweaks->group = *group;
  return session::TweaksRef(std::move(tweaks));
}

const char* given_of(const MetadataOptions& metadata) {
  return metadata.hard_links       ? "--hard-links"
         : metadata.acls           ? "--acls"
         : metadata.xattrs         ? "--xattrs"
         : metadata.sparse         ? "--sparse"
         : metadata.numeric_ids    ? "--numeric-ids"
         : metadata.chown != ""    ? "--chown"
         : !metadata.chmod.empty() ? "--chmod"
                                   : nullptr;
}

}  // namespace ccixfer::program
