#include "app/main/metadata_options.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <array>
#include <charconv>

#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/units.h"

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
constexpr size_t account_bytes = 16u << 10;

Result<session::OwnerWish> owner_of(const std::string& text, bool is_group, bool here) {
  session::OwnerWish wish;
  if (text.empty()) return wish;
  wish.is_set = true;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wish.id);
  if (problem == std::errc() && end == text.data() + text.size()) return wish;
  std::array<char, account_bytes> buffer;
  passwd user{};
  group many{};
  passwd* found_user = nullptr;
  group* found_group = nullptr;
  const int error = is_group ? ::getgrnam_r(text.c_str(), &many, buffer.data(), buffer.size(), &found_group)
                             : ::getpwnam_r(text.c_str(), &user, buffer.data(), buffer.size(), &found_user);
  const bool is_known = error == 0 && (found_user != nullptr || found_group != nullptr);
  if (!is_known && (here || text.size() > session::name_bytes_max)) {
    return fail(ErrorKind::usage, fmt::format("bad value: --chown: {}: no such {} here: give a name or a number", printable(text),
                                              is_group ? "group" : "user"));
  }
  wish.id = !is_known ? nobody : is_group ? many.gr_gid : user.pw_uid;
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
