// Owner, mode and times of what is written, as the session's options ask for them and this process is
// permitted to set them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "app/session/entry.h"
#include "app/session/messages.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

struct Attributes {
  uint32_t mode = 0;  // 07777
  uint32_t uid = 0, gid = 0;
  ports::FileTime mtime;
  // Extended attributes and access control lists, all of them; none: not known, and left as they are.
  std::shared_ptr<const std::vector<session::ExtendedAttribute>> extended = {};
};
[[nodiscard]] inline Attributes attributes_of(const session::Entry& entry) {
  Attributes attributes{entry.mode, entry.uid, entry.gid, entry.mtime};
  if (entry.has_extended) attributes.extended = std::make_shared<const std::vector<session::ExtendedAttribute>>(entry.extended);
  return attributes;
}
// The attributes that something has already, to be set again as they are.
[[nodiscard]] inline Attributes attributes_of(const ports::FileStat& stat) { return {stat.mode, stat.uid, stat.gid, stat.mtime}; }

inline constexpr uint32_t keep_owner = ~uint32_t{0};  // for set_owner: that of user or group stays
inline constexpr uint32_t mode_setuid = 04000, mode_setgid = 02000;

// What holds for all files of a session.
struct Policy {
  uint32_t options = 0;         // session::Option
  uint32_t umask = 022;         // as measured below this root
  uint32_t uid = 0, gid = 0;    // that a new file gets by itself
  bool setid = true;            // set-id bits that the source asks for are set
  bool directory_times = true;  // with option_times: directories get theirs too
  bool devices = true;          // devices, sockets and pipes may be made
  [[nodiscard]] bool has(session::Option option) const;
  [[nodiscard]] bool has_extended() const { return has(session::option_acls) || has(session::option_xattrs); }
  // Whether an extended attribute may be set here: `security.` can give rights, as a set-ID bit does.
  [[nodiscard]] bool may_set(std::string_view extended_name) const;
  [[nodiscard]] Policy of_directories() const;
  [[nodiscard]] uint32_t created_mode(const Attributes& wanted) const { return wanted.mode & 0777u & ~umask; }  // by open(2) alone
};

// A file with capabilities (capabilities(7)) arrives without them.
[[nodiscard]] bool loses_capabilities(const Policy& policy, const session::Entry& entry);

// What a file has before its attributes are set: as read from its descriptor, or as a new file gets it.
struct Current {
  uint32_t mode = 0;
  uint32_t uid = 0, gid = 0;
  std::optional<ports::FileTime> mtime = {};  // none: it is not known, or is to be set in any case
};

// Sets the owner before the mode, because chown clears setuid, and the mtime last. Only what differs is
// set. An owner that we may not give is left as it is, as with rsync; then setuid and setgid do not
// survive. Gives 0, -errno, or attributes_refused: the session asked for modes or times, and the file
// system has none (vfat, SMB, FUSE).
inline constexpr int attributes_refused = 1;
[[nodiscard]] int apply_attributes(ports::FileSystem& files, int fd, const Policy& policy, const Current& current,
                                   const Attributes& wanted);
// Extended attributes and access control lists alone, which apply_attributes sets too. 0, -errno or attributes_refused.
enum class Extended : uint8_t { all, attributes, lists };
[[nodiscard]] int apply_extended(ports::FileSystem& files, int fd, const Policy& policy, const Attributes& wanted,
                                 Extended which = Extended::all);
// Which of the two differ from `wanted`, as the bits session::item_acl and item_xattrs.
[[nodiscard]] uint16_t extended_differences(ports::FileSystem& files, int fd, const Policy& policy,
                                            const std::vector<session::ExtendedAttribute>& wanted);
// The mode that `wanted` means here, for a file whose owner is now that of `current`.
[[nodiscard]] uint32_t wanted_mode(const Policy& policy, const Current& current, const Attributes& wanted);

}  // namespace ccixfer::recv
