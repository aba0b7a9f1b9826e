// What the files of the walk share: how a directory is opened, and a -errno in words.
#pragma once
#include <cerrno>
#include <string>
#include <system_error>

#include "core/ports/file_system.h"

namespace ccixfer::send {

[[nodiscard]] inline ports::OpenFlags directory_flags(bool follow) {
  ports::OpenFlags flags;
  flags.directory = true;
  flags.follow = follow;
  return flags;
}

// Nothing of that name is there, or can be. Any other error says nothing of what is there.
[[nodiscard]] inline bool is_absent(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ENAMETOOLONG || error == -EILSEQ;
}

[[nodiscard]] inline std::string words(int error) { return std::generic_category().message(-error); }

}  // namespace ccixfer::send
