#include "core/host/passed_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/units.h"
#include "core/host/number_of.h"

namespace ccixfer::host {
Result<PassedSockets> passed_sockets_of(const char* of_process, const char* count, const char* names, pid_t self) {
  PassedSockets passed;
  if (of_process == nullptr || count == nullptr || number_of<pid_t>(of_process) != self) return passed;
  const auto number = number_of<int>(count);
  if (!number || *number < 0 || *number > passed_sockets_max)
    return fail(ErrorKind::usage, fmt::format("no number of sockets: LISTEN_FDS={}", printable(count)));
  passed.count = *number;
  passed.names.resize(static_cast<size_t>(passed.count));
  std::string_view rest = names == nullptr ? "" : names;
  for (std::string& name : passed.names) {
    const size_t end = std::min(rest.find(':'), rest.size());
    name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return passed;
}

Result<std::vector<PassedSocket>> take_passed_sockets() {
  auto passed = passed_sockets_of(std::getenv("LISTEN_PID"), std::getenv("LISTEN_FDS"), std::getenv("LISTEN_FDNAMES"), ::getpid());
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  if (!passed) return tl::unexpected(passed.error());
  std::vector<PassedSocket> sockets;
  for (int index = 0; index < passed->count; ++index) {
    const int fd = passed_first_fd + index;
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
      return fail(ErrorKind::usage, fmt::format("LISTEN_FDS={}: descriptor {} is not open", passed->count, fd));
    sockets.push_back({std::move(passed->names[static_cast<size_t>(index)]), Descriptor(fd)});
  }
  return sockets;
}

}  // namespace ccixfer::host
