// Owner, mode and times of what is written, by the session's options and what this process is permitted.
#pragma once
#include <cstdint>

#include "app/session/entry.h"
#include "app/session/messages.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

struct Attributes {
  uint32_t mode = 0;  // 07777
  uint32_t uid = 0, gid = 0;
  ports::FileTime mtime;
};
[[nodiscard]] inline Attributes attributes_of(const session::Entry& entry) {
  return {entry.mode, entry.uid, entry.gid, entry.mtime};
}

// What holds for all files of a session.
struct Policy {
  uint32_t options = 0;       // session::Option
  uint32_t umask = 022;       // as measured below this root
  uint32_t uid = 0, gid = 0;  // that a new file gets by itself
  [[nodiscard]] bool has(session::Option option) const;
  [[nodiscard]] uint32_t created_mode(const Attributes& wanted) const { return wanted.mode & 0777u & ~umask; }  // by open(2) alone
};

// As read from a descriptor's file, or as a new one has it.
struct Current {
  uint32_t mode = 0;
  uint32_t uid = 0, gid = 0;
};

// Owner before mode (chown clears setuid), then the mtime. Owners that we may not give are left as they are, as rsync does; then
// setuid and setgid do not survive. Only what differs is called. 0, -errno, or attributes_refused: the file system has no such
// modes or times (vfat, SMB, FUSE), and the session asked for them; without option_permissions that is nothing to speak of.
inline constexpr int attributes_refused = 1;
[[nodiscard]] int apply_attributes(ports::FileSystem& files, int fd, const Policy& policy, const Current& current,
                                   const Attributes& wanted);
// The mode that `wanted` means here, for an owner that came out as `current`.
[[nodiscard]] uint32_t wanted_mode(const Policy& policy, const Current& current, const Attributes& wanted);

}  // namespace ccixfer::recv
