#include "app/recv/same_file.h"

#include <cerrno>

namespace ccixfer::recv {

int check_same_file(ports::FileSystem& files, int fd, uint64_t device, uint64_t inode) {
  ports::FileStat stat;
  if (const int error = files.fstat(fd, stat); error < 0) return error;
  if (stat.device == device && stat.inode == inode) return 0;
  ports::SpaceInfo space;
  const bool may_have_other_numbers = stat.device == device && files.space(fd, space) >= 0 && !space.lasting_identity;
  return may_have_other_numbers ? 0 : -ESTALE;
}

}  // namespace ccixfer::recv
