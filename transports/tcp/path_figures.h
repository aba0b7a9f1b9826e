// What the kernel knows of the way of a connected TCP socket (TCP_INFO, tcp(7)). Private to this room.
#pragma once
#include <optional>

#include "core/ports/transport.h"

namespace ccixfer::tcp {

[[nodiscard]] std::optional<ports::PathFigures> figures_of(int fd);  // nullopt: no TCP socket, or a kernel that does not tell

}  // namespace ccixfer::tcp
