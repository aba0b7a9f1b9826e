#include "app/recv/attributes.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "app/session/extended.h"
#include "app/session/item.h"

namespace ccixfer::recv {
namespace {

constexpr uint32_t owner_may_write = 0200;
constexpr std::string_view capabilities = "security.capability";

bool is_refused(int error) {
  return error == -EPERM || error == -EINVAL || error == -EACCES || error == -ENOTSUP || error == -ENOSYS;
}

}  // namespace

bool Policy::has(session::Option option) const { return (options & option) != 0; }

bool Policy::may_set(std::string_view extended_name) const {
  return session::is_wanted_extended(extended_name, options, uid == 0) && (setid || !extended_name.starts_with("security."));
}

bool loses_capabilities(const Policy& policy, const session::Entry& entry) {
  if (policy.may_set(capabilities) || !session::is_wanted_extended(capabilities, policy.options, policy.uid == 0)) return false;
  return std::any_of(entry.extended.begin(), entry.extended.end(), [](const auto& one) { return one.name == capabilities; });
}

Policy Policy::of_directories() const {
  Policy policy = *this;
  if (!directory_times) policy.options &= ~uint32_t{session::option_times};
  return policy;
}

uint32_t wanted_mode(const Policy& policy, const Current& current, const Attributes& wanted) {
  // An inherited setgid bit of a directory stays.
  if (!policy.has(session::option_permissions)) return (current.mode & ~0777u) | policy.created_mode(wanted);
  uint32_t mode = wanted.mode & 07777u;
  if (!policy.setid) mode &= ~(mode_setuid | mode_setgid);
  if (current.uid != wanted.uid) mode &= ~mode_setuid;
  if (current.gid != wanted.gid) mode &= ~mode_setgid;
  return mode;
}

int apply_attributes(ports::FileSystem& files, int fd, const Policy& policy, const Current& current, const Attributes& wanted) {
  Current now = current;
  bool is_mode_known = true;
  if (policy.has(session::option_owner) && (now.uid != wanted.uid || now.gid != wanted.gid)) {
    const bool may_give = policy.uid == 0;
    if (may_give || now.gid != wanted.gid) {
      const int error = files.set_owner(fd, may_give ? wanted.uid : keep_owner, wanted.gid);
      if (error < 0 && !is_refused(error)) return error;
      if (error >= 0) {
        if (may_give) now.uid = wanted.uid;
        now.gid = wanted.gid;
        is_mode_known = (now.mode & (mode_setuid | mode_setgid)) == 0;  // chown(2) clears them of files, and not of directories
        now.mode &= ~(mode_setuid | mode_setgid);
      }
    }
  }
  bool refused = false;
  const auto extend = [&](Extended which) {
    const int error = apply_extended(files, fd, policy, wanted, which);
    refused = refused || error == attributes_refused;
    return std::min(error, 0);
  };
  const uint32_t mode = wanted_mode(policy, now, wanted);
  bool sets_mode = mode != now.mode || (!is_mode_known && policy.has(session::option_permissions));
  // Who is not root may give attributes to what may be written only. A list changes the mode, and comes after it.
  const bool needs_write = policy.uid != 0 && policy.has(session::option_xattrs) && wanted.extended;
  if (needs_write && (now.mode & owner_may_write) == 0)
    sets_mode = files.set_mode(fd, now.mode | owner_may_write) >= 0 || sets_mode;
  if (needs_write) {
    if (const int error = extend(Extended::attributes); error < 0) return error;
  }
  if (sets_mode) {
    const int error = files.set_mode(fd, mode);
    if (error < 0 && !is_refused(error)) return error;
    refused = refused || (error < 0 && policy.has(session::option_permissions));
  }
  if (const int error = extend(needs_write ? Extended::lists : Extended::all); error < 0) return error;
  if (policy.has(session::option_times) && now.mtime != wanted.mtime) {
    const int error = files.set_mtime(fd, wanted.mtime);
    if (error < 0 && !is_refused(error)) return error;
    refused = refused || error < 0;
  }
  return refused ? attributes_refused : 0;
}

namespace {

using session::ExtendedAttribute;
using List = std::vector<ExtendedAttribute>;

const ExtendedAttribute* find(const List& list, std::string_view name) {
  const auto found =
      std::lower_bound(list.begin(), list.end(), name, [](const auto& one, auto wanted) { return one.name < wanted; });
  return found != list.end() && found->name == name ? &*found : nullptr;
}

bool is_default_acl(std::string_view name) { return name == session::default_acl_name; }
bool is_acl_name(std::string_view name) { return name == session::access_acl_name || is_default_acl(name); }

bool is_of(Extended which, std::string_view name) {
  return which == Extended::all || (which == Extended::lists) == is_acl_name(name);
}

int set_one(ports::FileSystem& files, int fd, const ExtendedAttribute& one) {
  if (is_acl_name(one.name)) return files.set_acl(fd, is_default_acl(one.name), one.value);
  return files.set_attribute(fd, one.name, one.value);
}

int remove_one(ports::FileSystem& files, int fd, std::string_view name) {
  return is_acl_name(name) ? files.set_acl(fd, is_default_acl(name), {}) : files.remove_attribute(fd, name);
}

// That this file system has no such attribute, or none that is so long, or that this account may not set it.
bool is_extended_refused(int error) { return is_refused(error) || error == -ENOSPC || error == -ERANGE || error == -E2BIG; }

// ENOSPC says of the disk that it is full, and on ext4 of a file that it has no room for more attributes.
bool is_full(ports::FileSystem& files, int fd) {
  constexpr uint64_t attribute_bytes_max = 64u << 10;  // xattr(7)
  ports::SpaceInfo space;
  return files.space(fd, space) >= 0 && space.free_bytes < attribute_bytes_max;
}

}  // namespace

int apply_extended(ports::FileSystem& files, int fd, const Policy& policy, const Attributes& wanted, Extended which) {
  if (!policy.has_extended() || !wanted.extended) return 0;
  List now;
  if (const int error = session::read_extended(files, fd, policy.options, policy.uid == 0, now); error < 0 && error != -E2BIG)
    return is_extended_refused(error) ? attributes_refused : error;
  bool refused = false;
  const auto note = [&](int error) {
    if (error == -ENOSPC && is_full(files, fd)) return error;
    refused = refused || (error < 0 && is_extended_refused(error));
    return error < 0 && !is_extended_refused(error) ? error : 0;
  };
  for (const ExtendedAttribute& one : now) {
    if (!is_of(which, one.name) || !policy.may_set(one.name) || find(*wanted.extended, one.name) != nullptr) continue;
    if (const int error = note(remove_one(files, fd, one.name)); error < 0) return error;
  }
  for (const ExtendedAttribute& one : *wanted.extended) {
    const ExtendedAttribute* there = find(now, one.name);
    if (!is_of(which, one.name) || !policy.may_set(one.name) || (there != nullptr && there->value == one.value)) continue;
    if (const int error = note(set_one(files, fd, one)); error < 0) return error;
  }
  return refused ? attributes_refused : 0;
}

uint16_t extended_differences(ports::FileSystem& files, int fd, const Policy& policy, const List& wanted) {
  List now;
  if (session::read_extended(files, fd, policy.options, policy.uid == 0, now) < 0) return 0;
  uint16_t differences = 0;
  const auto compare = [&](const List& these, const List& others) {
    for (const ExtendedAttribute& one : these) {
      const ExtendedAttribute* other = find(others, one.name);
      if (!policy.may_set(one.name) || (other != nullptr && other->value == one.value)) continue;
      differences |= is_acl_name(one.name) ? session::item_acl : session::item_xattrs;
    }
  };
  compare(now, wanted);
  compare(wanted, now);
  return differences;
}

}  // namespace ccixfer::recv
