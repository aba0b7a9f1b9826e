// The place where the metrics are asked for, as a socket has it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "app/config/metrics.h"

namespace ccixfer::metrics {

void remove_stale(const program::MetricsPlace& place);  // a Unix socket that a process left behind: nobody answers there
// Which file a Unix socket is. Its number is taken as long as its process has the socket.
struct SocketFile {
  uint64_t device = 0, number = 0;
  friend bool operator==(const SocketFile&, const SocketFile&) = default;
};
[[nodiscard]] std::optional<SocketFile> file_at(const std::string& place);  // none: there is no socket, or `place` is no path
// What was asked for, with the port that the socket `fd` got.
[[nodiscard]] std::string name_of_place(int fd, const std::string& asked);

}  // namespace ccixfer::metrics
