#include "core/host/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "core/base/check.h"

namespace ccixfer::host {

uint64_t SystemEntropy::next_u64() {
  uint64_t value = 0;
  ssize_t bytes = -1;
  do {
    bytes = ::getrandom(&value, sizeof value, 0);
  } while (bytes < 0 && errno == EINTR);
  CHECK(bytes == static_cast<ssize_t>(sizeof value));  // up to 256 bytes come whole
  return value;
}

}  // namespace ccixfer::host
