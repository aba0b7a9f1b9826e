// Where the metrics are asked for: an address of the loopback with a port, or a Unix socket. Errors: usage, it is neither.
#pragma once
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::metrics {

inline constexpr std::string_view unix_prefix = "unix:";

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string path = {};  // of a Unix socket; "": it is an address
};

[[nodiscard]] Result<Place> parse_place(const std::string& text);
void remove_stale(const Place& place);  // a Unix socket that a process left behind: nobody answers there
// What was asked for, with the port that the socket `fd` got.
[[nodiscard]] std::string name_of_place(int fd, const std::string& asked);

}  // namespace ccixfer::metrics
