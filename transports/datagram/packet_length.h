// How long a connection's packets may be now, and what follows for what they carry. Where the network knows its paths that is what
// both ends agreed on, until it turns out that such packets do not arrive; else core/reliability/path_mtu.h finds it out by probes.
// Private to this room; single-threaded.
#pragma once
#include "transports/datagram/connection.h"

namespace ccixfer::datagram {

// Both ends have told what they take: `c.datagram_bytes`.
void begin_packet_length(Connection& c, bool is_path_known);
// Tells it to all whom it concerns. Again when the machines for messages and RMA are open.
void apply_packet_length(Connection& c);
// What an acknowledgement says of the path. Takes the probes out of `lost`: they are no sign of congestion. `in_silence`: nothing
// arrived, so the losses say nothing of lengths.
void learn_path(Connection& c, std::span<const reliability::SentPacket> acked, std::vector<reliability::SentPacket>& lost,
                bool in_silence);

}  // namespace ccixfer::datagram
