// How the acceptor judges a Hello that asks for a further lane of a session.
#pragma once
#include <cstdint>

namespace ccixfer::session {

enum class LaneAdmission : uint8_t {
  stranger,  // its sender has not proved that it is of the session, and is told that there is no such session
  repeated,  // it is of the session, and this connection was asked for before
  admitted,
};

}  // namespace ccixfer::session
