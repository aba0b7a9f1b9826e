// The bounds that all transports share. Those that an application may set are in ports::TransportOptions.
#pragma once
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

// Whoever has dialled and said nothing for so long makes room for those behind, once there are pending_requests_max: a hello comes
// with the connection, or a lost packet later.
inline constexpr Duration silence_when_crowded_max = std::chrono::milliseconds(250);

}  // namespace ccixfer::connection
