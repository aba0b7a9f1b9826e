#include "app/send/entry_details.h"

#include <cerrno>

#include "app/send/walk.h"
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

int EntryDetails::add(ports::FileSystem& files, WalkBatch& out, const Place& place) {
  WalkRecord& record = out.records.back();
  if (wish_.hard_links) {
    const HardLinks::Listed listed = hard_links_.list(record.stat, out.path(record));
    record.is_linked = listed.is_linked;
    record.linked_to_bytes = static_cast<uint32_t>(listed.first_path.size());
    record.linked_to_at = append(out, listed.first_path);
  }
  if (wish_.owner_names) add_owners(files, out, record);
  if (wish_.extended == 0) return 0;
  if (place.fd >= 0) return add_extended(files, out, record, place.fd);
  if (place.name.empty()) return 0;
  ports::OpenFlags flags;
  flags.follow = place.follow;
  const int fd = files.open(place.directory, place.name, flags, 0);
  if (fd < 0) return 0;  // its content cannot be read either, which is told then
  const int result = add_extended(files, out, record, fd);
  files.close(fd);
  return result;
}

void EntryDetails::add_owners(ports::FileSystem& files, WalkBatch& out, WalkRecord& record) {
  record.owners_at = static_cast<uint32_t>(out.text.size());
  record.user_bytes = add_owner(files, out, false, record.stat.uid);
  record.group_bytes = add_owner(files, out, true, record.stat.gid);
}

uint32_t EntryDetails::add_owner(ports::FileSystem& files, WalkBatch& out, bool is_group, uint32_t id) {
  if (id == 0 || told_.size() >= owners_told_max || !told_.insert(id | (is_group ? group_bit : 0)).second) return 0;
  std::string name;
  if (files.name_of_owner(is_group, id, name) < 0 || name.empty() || name.size() > session::name_bytes_max) return 0;
  append(out, name);
  return static_cast<uint32_t>(name.size());
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
