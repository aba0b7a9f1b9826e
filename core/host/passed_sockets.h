// Sockets that the service manager (systemd) opened and passed to this process: socket activation. It listens before the service
// runs and while it is started again, so nobody who comes meanwhile is refused.
// Errors: usage: the variables say what is not so. Source: sd_listen_fds(3).
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::host {

inline constexpr int passed_first_fd = 3;
inline constexpr int passed_sockets_max = 1024;

struct PassedSocket {
  std::string name;  // FileDescriptorName= of its unit, by itself the unit's name; "": it has none
  Descriptor fd;     // close-on-exec
};

// What LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES say to process `self`; nullptr: not set. Nothing: none, or they are another
// process's. A name that has no socket does not count.
struct PassedSockets {
  int count = 0;
  std::vector<std::string> names;
};
[[nodiscard]] Result<PassedSockets> passed_sockets_of(const char* of_process, const char* count, const char* names, pid_t self);

// From the environment, which has them no more then. To be called before the process opens any descriptor.
[[nodiscard]] Result<std::vector<PassedSocket>> take_passed_sockets();

}  // namespace ccixfer::host
