#include "app/recv/second_root.h"

#include <fmt/format.h>

#include <system_error>

#include "app/recv/names.h"
#include "core/base/units.h"

namespace ccixfer::recv {

Result<std::shared_ptr<SecondRoot>> SecondRoot::open(ports::FileSystem& files, const std::string& path) {
  const int fd = files.open(ports::FileSystem::no_directory, path, {.directory = true}, 0);
  if (fd < 0) {
    return fail(ErrorKind::file_io, fmt::format("cannot open the directory: {}: {}: name the root of the first receiver, as it is "
                                                "mounted here",
                                                printable(path), std::generic_category().message(-fd)));
  }
  return std::shared_ptr<SecondRoot>(new SecondRoot(files, fd));
}

SecondRoot::~SecondRoot() { files_.close(fd_); }

int SecondRoot::join(const session::SharedPlace& place, std::shared_ptr<JoinedShare>& out) const {
  const int staging = files_.open(fd_, staging_name, {.directory = true}, 0);
  if (staging < 0) return staging;
  return JoinedShare::join(files_, staging, place, out);
}

}  // namespace ccixfer::recv
