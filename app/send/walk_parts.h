// What the files of the walk share: how a directory is opened, and a -errno in words.
#pragma once
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "core/ports/file_system.h"

namespace ccixfer::send {

[[nodiscard]] inline ports::OpenFlags directory_flags(bool follow) {
  ports::OpenFlags flags;
  flags.directory = true;
  flags.follow = follow;
  return flags;
}

// `lists`: its names are read. What is given by its name is found in a directory that lets nobody list it, too.
[[nodiscard]] inline int open_directory(ports::FileSystem& files, int directory, std::string_view name, bool follow, bool lists) {
  ports::OpenFlags flags = directory_flags(follow);
  const int fd = files.open(directory, name, flags, 0);
  if (fd != -EACCES || lists) return fd;
  flags.anchor = true;
  return files.open(directory, name, flags, 0);
}

// Nothing of that name is there, or can be. Any other error says nothing of what is there.
[[nodiscard]] inline bool is_absent(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ENAMETOOLONG || error == -EILSEQ;
}

[[nodiscard]] inline std::string words(int error) { return std::generic_category().message(-error); }

}  // namespace ccixfer::send
