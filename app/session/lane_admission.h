// What the acceptor takes a Hello for that names a session.
#pragma once
#include <cstdint>

namespace ccixfer::session {

enum class LaneAdmission : uint8_t {
  stranger,  // it is not proved: for its sender there is no such session
  repeated,  // proved, and asked for before
  admitted,
};

}  // namespace ccixfer::session
