#include "transports/stream/moved_connection.h"

#include "transports/stream/secured.h"

namespace ccixfer::stream {

MovedConnection::MovedConnection() = default;
MovedConnection::~MovedConnection() = default;
MovedConnection::MovedConnection(MovedConnection&&) noexcept = default;
MovedConnection& MovedConnection::operator=(MovedConnection&&) noexcept = default;

}  // namespace ccixfer::stream
