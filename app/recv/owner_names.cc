#include "app/recv/owner_names.h"

namespace ccixfer::recv {

void OwnerNames::map_one(ports::FileSystem& files, bool is_group, const std::string& name, uint32_t& id, Numbers& numbers) {
  if (id == 0) return;
  if (!name.empty() && numbers.size() < owner_names_max) {
    uint32_t here = id;
    if (files.owner_of_name(is_group, name, here) < 0) here = id;
    numbers[id] = here;
  }
  const auto found = numbers.find(id);
  if (found != numbers.end()) id = found->second;
}

void OwnerNames::map(ports::FileSystem& files, std::vector<session::Entry>& entries) {
  for (session::Entry& entry : entries) {
    if (entry.type == session::EntryType::leave) continue;
    map_one(files, false, entry.user, entry.uid, users_);
    map_one(files, true, entry.group, entry.gid, groups_);
  }
}

}  // namespace ccixfer::recv
