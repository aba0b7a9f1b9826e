// Where the events of --json go: to standard output, unless that is where a pull writes its file (recv SRC_URI -).
#pragma once
#include "app/main/cli.h"

namespace ccixfer::program {

// A descriptor: 1, or 2.
[[nodiscard]] int json_fd_of(const Command& command);
// Of a command line that may be none, for what has to be said of that; -1: it has no --json.
[[nodiscard]] int json_fd_of(int argc, const char* const* argv);

}  // namespace ccixfer::program
