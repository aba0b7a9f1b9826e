// Extended attributes and access control lists of a file: which of them the options ask for, how they are read, and how they travel
// in a TLV of an entry. Access control lists stand among them under the names that Linux has for them.
// A list is sorted by name, and each name comes once. Bounds: extended_bytes_max for a whole list as it travels. A file that has
// more counts as one whose attributes cannot be read.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/session/entry.h"
#include "core/base/bytes.h"
#include "core/ports/file_system.h"

namespace ccixfer::session {

inline constexpr size_t extended_bytes_max = 32u << 10;
inline constexpr size_t extended_name_bytes_max = 255;
inline constexpr std::string_view access_acl_name = "system.posix_acl_access";
inline constexpr std::string_view default_acl_name = "system.posix_acl_default";

// Whether the options ask for this attribute. As with rsync, those beyond `user.` are for root alone, and `system.` has only ACLs.
[[nodiscard]] bool is_wanted_extended(std::string_view name, uint32_t options, bool is_root);
// Of an open file or directory. -E2BIG: they are too long to travel; else 0 or -errno.
[[nodiscard]] int read_extended(ports::FileSystem& files, int fd, uint32_t options, bool is_root,
                                std::vector<ExtendedAttribute>& out);
[[nodiscard]] std::vector<std::byte> encode_extended(const std::vector<ExtendedAttribute>& list);
// A peer's bytes. False: they are malformed: out of order, a name that no system has, or a list that is no access control list.
[[nodiscard]] bool decode_extended(Bytes value, std::vector<ExtendedAttribute>& out);
// As linux/posix_acl_xattr.h has it: a version, and entries whose tags ascend, with each of those that must be there.
[[nodiscard]] bool is_acl(std::string_view value);

}  // namespace ccixfer::session
