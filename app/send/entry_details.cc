#include "app/send/entry_details.h"

#include <fmt/format.h>

#include <cerrno>

#include "app/send/walk.h"
#include "app/send/walk_parts.h"
#include "app/session/extended.h"
#include "app/session/limits.h"

namespace ccixfer::send {
namespace {

constexpr uint64_t group_bit = uint64_t{1} << 32;

uint32_t append(WalkBatch& out, std::string_view text) {
  const auto at = static_cast<uint32_t>(out.text.size());
  out.text.append(text);
  return at;
}

}  // namespace

std::string EntryDetails::add(ports::FileSystem& files, WalkBatch& out, const Place& place) {
  WalkRecord& record = out.records.back();
  if (wish_.hard_links) {
    const HardLinks::Listed listed = hard_links_.list(record.stat, out.path(record));
    record.is_linked = listed.is_linked;
    record.linked_to_bytes = static_cast<uint32_t>(listed.first_path.size());
    record.linked_to_at = append(out, listed.first_path);
  }
  std::string problem;
  if (wish_.owner_names) {
    record.owners_at = static_cast<uint32_t>(out.text.size());
    const int user = add_owner(files, out, false, record.stat.uid, record.user_bytes);
    const int group = add_owner(files, out, true, record.stat.gid, record.group_bytes);
    if (user < 0) problem = fmt::format("the name of its user {} cannot be looked up: {}", record.stat.uid, words(user));
    if (group < 0) problem = fmt::format("the name of its group {} cannot be looked up: {}", record.stat.gid, words(group));
  }
  const int error = wish_.extended != 0 ? add_attributes(files, out, record, place) : 0;
  if (error < 0) problem = "its extended attributes cannot be read: " + words(error);
  return problem;
}

// The destination would take a number without a name for an owner of its own. Each that cannot be looked up is told once, as far
// as there is room for what was told: a name service that does not answer takes its time for each question.
int EntryDetails::add_owner(ports::FileSystem& files, WalkBatch& out, bool is_group, uint32_t id, uint32_t& bytes) {
  const uint64_t owner = id | (is_group ? group_bit : 0);
  if (id == 0 || told_.count(owner) > 0) return 0;
  if (told_.size() < told_max_) told_.insert(owner);
  std::string name;
  const int error = files.name_of_owner(is_group, id, name);
  if (error < 0) return error == -ENOENT ? 0 : error;
  if (name.size() > session::name_bytes_max) return 0;
  append(out, name);
  bytes = static_cast<uint32_t>(name.size());
  return 0;
}

int EntryDetails::add_attributes(ports::FileSystem& files, WalkBatch& out, WalkRecord& record, const Place& place) const {
  const auto told = [](int error) { return is_absent(error) || error == -EXDEV || error == -EACCES ? 0 : error; };
  if (place.fd >= 0) {
    const int result = add_extended(files, out, record, place.fd);
    return result == -EBADF ? -EACCES : result;  // a directory that was opened for the names in it alone
  }
  if (place.name.empty()) return told(place.error);
  ports::OpenFlags flags;
  flags.follow = place.follow;
  flags.no_link = !place.follow;
  const int fd = files.open(place.directory, place.name, flags, 0);
  if (fd < 0) return told(fd);
  const int result = add_extended(files, out, record, fd);
  files.close(fd);
  return result;
}

int EntryDetails::add_extended(ports::FileSystem& files, WalkBatch& out, WalkRecord& record, int fd) const {
  std::vector<session::ExtendedAttribute> list;
  if (const int error = session::read_extended(files, fd, wish_.extended, wish_.is_root, list); error < 0) return error;
  const std::vector<std::byte> encoded = session::encode_extended(list);
  record.has_extended = true;
  record.extended_bytes = static_cast<uint32_t>(encoded.size());
  record.extended_at = append(out, as_text(encoded));
  return 0;
}

}  // namespace ccixfer::send
