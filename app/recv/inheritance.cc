#include "app/recv/inheritance.h"

#include <cerrno>
#include <vector>

#include "app/recv/attributes.h"

namespace ccixfer::recv {
namespace {

// linux/posix_acl_xattr.h: a version and entries of tag, permissions and id, little-endian.
constexpr size_t head_bytes = 4, entry_bytes = 8;
constexpr uint32_t version = 2;
enum Tag : uint32_t { user_obj = 1, user = 2, group_obj = 4, group = 8, mask = 16, other = 32 };

uint32_t number_at(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

}  // namespace

// Each of the three classes gets what both the mode asked for and the list allow; the mask stands for the group's class if there is
// one.
std::optional<InheritedAcl> inherited_acl(std::string_view default_acl, uint32_t mode) {
  if (default_acl.size() < head_bytes || (default_acl.size() - head_bytes) % entry_bytes != 0) return std::nullopt;
  if (number_at(default_acl, 0, head_bytes) != version) return std::nullopt;
  InheritedAcl result{std::string(default_acl), 0};
  bool says_more = false;
  size_t owner_at = 0, others_at = 0, group_at = 0, mask_at = 0;  // 0: none
  for (size_t at = head_bytes; at < default_acl.size(); at += entry_bytes) {
    const uint32_t tag = number_at(default_acl, at, 2);
    if (tag == user_obj) owner_at = at;
    if (tag == group_obj) group_at = at;
    if (tag == other) others_at = at;
    if (tag == mask) mask_at = at;
    says_more = says_more || tag == user || tag == group || tag == mask;
  }
  if (owner_at == 0 || group_at == 0 || others_at == 0) return std::nullopt;
  const auto limit = [&](size_t at, unsigned shift) {
    const uint32_t allowed = number_at(default_acl, at + 2, 2) & (mode >> shift) & 7u;
    result.acl[at + 2] = static_cast<char>(allowed);
    result.mode |= allowed << shift;
  };
  limit(owner_at, 6);
  limit(mask_at != 0 ? mask_at : group_at, 3);
  limit(others_at, 0);
  if (!says_more) result.acl.clear();
  return result;
}

int Inheritance::read(ports::FileSystem& files, int directory) {
  ports::FileStat stat;
  if (const int error = files.fstat(directory, stat); error < 0) return error;
  if ((stat.mode & mode_setgid) != 0) group_ = stat.gid;
  return files.get_acl(directory, true, default_acl_);
}

int Inheritance::give(ports::FileSystem& files, int file, uint32_t mode) const {
  if (group_) {
    ports::FileStat stat;
    if (const int error = files.fstat(file, stat); error < 0) return error;
    if (stat.gid != *group_) {
      if (const int error = files.set_owner(file, keep_owner, *group_); error < 0) return error;
    }
  }
  if (default_acl_.empty()) return 0;
  const auto inherited = inherited_acl(default_acl_, mode);
  if (!inherited) return -EINVAL;
  return inherited->acl.empty() ? files.set_mode(file, inherited->mode) : files.set_acl(file, false, inherited->acl);
}

}  // namespace ccixfer::recv
