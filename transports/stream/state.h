// Which frames may come over a stream in which state. Everything else is the peer's fault: counted, and the connection ends with a
// reason.
#pragma once
#include "core/wire/frame.h"
#include "transports/connection/state.h"

namespace ccixfer::stream {

using connection::State;

[[nodiscard]] bool frame_allowed(State state, wire::Kind kind);

}  // namespace ccixfer::stream
