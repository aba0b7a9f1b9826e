#include "core/host/threads.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace ccixfer::host {

Result<std::thread> begin_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& problem) {
    return fail(ErrorKind::file_io,
                fmt::format("no thread can be made: {}: raise the limit of processes (ulimit -u; TasksMax= of a "
                            "service)",
                            problem.code().message()));
  }
}

}  // namespace ccixfer::host
