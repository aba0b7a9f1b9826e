// A thread, or why there is none: a process may have as many as `ulimit -u`, or TasksMax= of its service, lets it.
#pragma once
#include <functional>
#include <thread>

#include "core/base/result.h"

namespace ccixfer::host {

// Errors: file_io.
[[nodiscard]] Result<std::thread> begin_thread(std::function<void()> body);

}  // namespace ccixfer::host
