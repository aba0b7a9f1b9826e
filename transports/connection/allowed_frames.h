// Which frames of core/wire may come in which state of a connection, on every transport that speaks in them. Everything else is the
// peer's fault: counted, and the connection ends with a reason. A transport without proof of its ends refuses Kind::handshake
// itself.
#pragma once
#include "core/wire/frame.h"
#include "transports/connection/state.h"

namespace ccixfer::connection {

[[nodiscard]] bool frame_allowed(State state, wire::Kind kind);

}  // namespace ccixfer::connection
