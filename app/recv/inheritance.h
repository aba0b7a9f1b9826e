// What a file gets from the directory that it is made in: the group of a set-group-ID directory, and
// the default access control list. Files are made in the staging directory and renamed from there. So
// without option_permissions they get here what open(2) would have given them, as with `cp`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

// A default list as the kernel's attribute has it, applied to a file that is made with `mode`: Linux's posix_acl_create.
struct InheritedAcl {
  std::string acl;  // the file's own; empty: it says no more than the mode
  uint32_t mode = 0;
};
[[nodiscard]] std::optional<InheritedAcl> inherited_acl(std::string_view default_acl, uint32_t mode);  // nullopt: malformed

// Of one directory, read once.
class Inheritance {
 public:
  Inheritance() = default;  // nothing
  [[nodiscard]] int read(ports::FileSystem& files, int directory);
  [[nodiscard]] bool is_nothing() const { return !group_ && default_acl_.empty(); }
  // Gives this to a file that was made elsewhere with `mode` less the umask. -errno: this process may not give it; a copy that is
  // made in the directory would get it.
  [[nodiscard]] int give(ports::FileSystem& files, int file, uint32_t mode) const;

 private:
  std::optional<uint32_t> group_;
  std::string default_acl_;
};

}  // namespace ccixfer::recv
