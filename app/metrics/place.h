// The place where the metrics are asked for, as a socket has it.
#pragma once
#include <string>

#include "app/config/metrics.h"

namespace ccixfer::metrics {

void remove_stale(const program::MetricsPlace& place);  // a Unix socket that a process left behind: nobody answers there
// What was asked for, with the port that the socket `fd` got.
[[nodiscard]] std::string name_of_place(int fd, const std::string& asked);

}  // namespace ccixfer::metrics
