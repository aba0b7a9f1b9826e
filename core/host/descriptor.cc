#include "core/host/descriptor.h"

#include <unistd.h>

namespace ccixfer::host {

void Descriptor::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

}  // namespace ccixfer::host
