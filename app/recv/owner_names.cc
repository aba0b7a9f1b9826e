#include "app/recv/owner_names.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "core/base/units.h"

namespace ccixfer::recv {

std::optional<Error> OwnerNames::map_one(ports::FileSystem& files, bool is_group, const std::string& name, uint32_t& id,
                                         Numbers& numbers) const {
  if (id == 0) return std::nullopt;
  if (!name.empty()) {
    uint32_t here = id;
    const int error = files.owner_of_name(is_group, name, here);
    if (error < 0 && error != -ENOENT) {
      return Error{
          ErrorKind::file_io,
          fmt::format("the receiver cannot look up the {} {}: {}: mend its accounts or start it again, or use --numeric-ids",
                      is_group ? "group" : "user", printable(name), std::generic_category().message(-error))};
    }
    const uint32_t mapped = error < 0 ? id : here;
    if (numbers.size() >= kept_max_ && numbers.count(id) == 0) {
      id = mapped;
      return std::nullopt;
    }
    numbers[id] = mapped;
  }
  const auto found = numbers.find(id);
  if (found != numbers.end()) id = found->second;
  return std::nullopt;
}

std::optional<Error> OwnerNames::map(ports::FileSystem& files, std::vector<session::Entry>& entries) {
  for (session::Entry& entry : entries) {
    if (entry.type == session::EntryType::leave) continue;
    if (auto error = map_one(files, false, entry.user, entry.uid, users_)) return error;
    if (auto error = map_one(files, true, entry.group, entry.gid, groups_)) return error;
  }
  return std::nullopt;
}

}  // namespace ccixfer::recv
