#include "core/host/kernel_version.h"

#include <sys/utsname.h>

#include <cstdio>

namespace ccixfer::host {

KernelVersion parse_kernel_version(const char* release) {
  KernelVersion version;
  if (std::sscanf(release, "%u.%u", &version.major_number, &version.minor_number) != 2) return {};
  return version;
}

KernelVersion running_kernel() {
  struct utsname names {};
  return ::uname(&names) == 0 ? parse_kernel_version(names.release) : KernelVersion{};
}

}  // namespace ccixfer::host
