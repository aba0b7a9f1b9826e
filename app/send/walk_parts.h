// What the files of the walk share: how a directory is opened, and a -errno in words.
#pragma once
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

[[nodiscard]] inline std::string words(int error) { return std::generic_category().message(-error); }

}  // namespace ccixfer::send
