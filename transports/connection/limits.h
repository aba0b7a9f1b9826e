// The bounds that all transports share. Those that an application may set are in ports::TransportOptions.
#pragma once
#include <cstddef>

#include "core/base/time.h"
#include "core/reliability/probes.h"

namespace ccixfer::connection {

using reliability::keepalive_probes_max;

// How long a patient connection, which waits for an answer to ride with, may wait if nobody turns us before.
inline constexpr Duration patience_max = std::chrono::microseconds(200);

// After our disconnect: how long what was sent before may take to be delivered, and how long the last frame may take to go out and
// the peer to go.
inline constexpr Duration disconnect_flush_max = std::chrono::seconds(10);
inline constexpr Duration goodbye_wait_max = std::chrono::seconds(2);

// Whoever has dialled and said nothing for so long makes room for those behind, once there are pending_requests_max: what it has to
// say comes with the connection, or a lost packet later.
inline constexpr Duration silence_when_crowded_max = std::chrono::milliseconds(250);

// Connections whose proof of who they are may go on in one turn; the others have theirs in the next one. A step may cost half a
// millisecond.
inline constexpr size_t handshakes_per_turn_max = 8;

}  // namespace ccixfer::connection
