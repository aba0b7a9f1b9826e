// Owner, mode and times of what is written, as the session's options ask for them and this process is
// permitted to set them.
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
  uint32_t options = 0;         // session::Option
  uint32_t umask = 022;         // as measured below this root
  uint32_t uid = 0, gid = 0;    // that a new file gets by itself
  bool setid = true;            // set-id bits that the source asks for are set
  bool directory_times = true;  // with option_times: directories get theirs too
  [[nodiscard]] bool has(session::Option option) const;
  [[nodiscard]] Policy of_directories() const;
  [[nodiscard]] uint32_t created_mode(const Attributes& wanted) const { return wanted.mode & 0777u & ~umask; }  // by open(2) alone
};

// As read from a descriptor's file, or as a new one has it.
struct Current {
  uint32_t mode = 0;
  uint32_t uid = 0, gid = 0;
};

// Sets the owner before the mode, because chown clears setuid, and the mtime last. Only what differs is
// set. An owner that we may not give is left as it is, as with rsync; then setuid and setgid do not
// survive. Gives 0, -errno, or attributes_refused: the session asked for modes or times, and the file
// system has none (vfat, SMB, FUSE).
inline constexpr int attributes_refused = 1;
[[nodiscard]] int apply_attributes(ports::FileSystem& files, int fd, const Policy& policy, const Current& current,
                                   const Attributes& wanted);
// The mode that `wanted` means here, for a file whose owner is now that of `current`.
[[nodiscard]] uint32_t wanted_mode(const Policy& policy, const Current& current, const Attributes& wanted);

}  // namespace ccixfer::recv
