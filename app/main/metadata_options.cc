#include "app/main/metadata_options.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

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

constexpr uint32_t nobody = 65'534;          // for a name that is known to the peer, if to anybody
constexpr uint32_t id_max = UINT32_MAX - 1;  // chown(2) takes the last number for no change

bool is_digit(char c) { return c >= '0' && c <= '9'; }

tl::unexpected<Error> no_owner(const std::string& text, const std::string& why) {
  return fail(ErrorKind::usage, fmt::format("bad value: --chown: {}: {}", printable(text), why));
}

// What stands for the user and what for the group.
std::pair<std::string, std::string> parts_of(const std::string& chown) {
  const size_t colon = chown.find(':');
  return {chown.substr(0, colon), colon == std::string::npos ? std::string() : chown.substr(colon + 1)};
}

Result<session::OwnerWish> owner_of(const std::string& text, bool is_group, bool here) {
  session::OwnerWish wish;
  if (text.empty()) return wish;
  wish.is_set = true;
  if (std::all_of(text.begin(), text.end(), is_digit)) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wish.id);
    if (problem == std::errc() && wish.id <= id_max) return wish;
    return no_owner(text, fmt::format("a number is at most {}", id_max));
  }
  if (text.front() == '-' || text.front() == '+' || text.find(':') != std::string::npos)
    return no_owner(text, "give USER:GROUP, names or numbers");
  const int error = host::id_of_account(is_group, text, wish.id);
  const char* what = is_group ? "group" : "user";
  if (error < 0 && error != -ENOENT) {
    return fail(ErrorKind::file_io, fmt::format("--chown: {}: the {} cannot be looked up: {}: try again, or give its number",
                                                printable(text), what, std::generic_category().message(-error)));
  }
  // One that begins with a digit is rather a number that is mistyped than a name that only the peer knows.
  if (error < 0 && (here || is_digit(text.front()) || text.size() > session::name_bytes_max))
    return no_owner(text, fmt::format("no such {} here: give a name or a number", what));
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
  const auto parts = parts_of(metadata.chown);
  auto user = owner_of(parts.first, false, here);
  if (!user) return tl::unexpected(user.error());
  auto group = owner_of(parts.second, true, here);
  if (!group) return tl::unexpected(group.error());
  tweaks->user = *user;
  tweaks->group = *group;
  return session::TweaksRef(std::move(tweaks));
}

std::vector<std::string> unknown_owners(const MetadataOptions& metadata) {
  std::vector<std::string> unknown;
  const auto parts = parts_of(metadata.chown);
  for (const bool is_group : {false, true}) {
    const std::string& name = is_group ? parts.second : parts.first;
    uint32_t id = 0;
    if (!std::all_of(name.begin(), name.end(), is_digit) && host::id_of_account(is_group, name, id) == -ENOENT)
      unknown.push_back(fmt::format("{} {}", is_group ? "group" : "user", printable(name)));
  }
  return unknown;
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
