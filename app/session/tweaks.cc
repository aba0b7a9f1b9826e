#include "app/session/tweaks.h"

#include "app/session/extended.h"

namespace ccixfer::session {

namespace {

constexpr size_t acl_head_bytes = 4, acl_entry_bytes = 8;
enum AclTag : unsigned char { user_obj = 1, group_obj = 4, mask = 16, other = 32 };

// The classes of the mode stand in the list, too: its mask, where it has one, for the group's.
void fit_acl(std::string& acl, uint32_t mode) {
  bool has_mask = false;
  for (size_t at = acl_head_bytes; at < acl.size(); at += acl_entry_bytes) has_mask = has_mask || acl[at] == mask;
  for (size_t at = acl_head_bytes; at < acl.size(); at += acl_entry_bytes) {
    if (acl[at] == user_obj) acl[at + 2] = static_cast<char>((mode >> 6) & 7u);
    if (acl[at] == (has_mask ? mask : group_obj)) acl[at + 2] = static_cast<char>((mode >> 3) & 7u);
    if (acl[at] == other) acl[at + 2] = static_cast<char>(mode & 7u);
  }
}

}  // namespace

void apply(const Tweaks& tweaks, Entry& entry) {
  if (entry.type == EntryType::leave) return;
  if (entry.type != EntryType::symlink && !tweaks.modes.empty()) {
    entry.mode = tweaks.modes.apply(entry.mode, entry.type == EntryType::directory);
    for (ExtendedAttribute& one : entry.extended) {
      if (one.name == access_acl_name) fit_acl(one.value, entry.mode);
    }
  }
  if (tweaks.user.is_set) {
    entry.uid = tweaks.user.id;
    entry.user = tweaks.user.name;
  }
  if (tweaks.group.is_set) {
    entry.gid = tweaks.group.id;
    entry.group = tweaks.group.name;
  }
}

}  // namespace ccixfer::session
