// Which frames and records may come in which state. Everything else is the peer's fault: counted, and the connection ends with a
// reason.
#pragma once
#include "core/wire/frame.h"
#include "transports/connection/state.h"

namespace ccixfer::rdma {

using connection::State;

[[nodiscard]] bool frame_allowed(State state, wire::Kind kind);
[[nodiscard]] bool record_allowed(State state);  // those of this room: operations

}  // namespace ccixfer::rdma
