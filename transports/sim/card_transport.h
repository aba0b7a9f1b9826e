// The transport of a process in the simulated world: the stream protocol over a SimNet, and where the network's cards check keys
// (LinkOptions::card), a card between the core and it. Guarantees: those of ports/transport.h. An operation that the card fails
// ends with Status::error, and its connection breaks at both ends.
// With `trust` connections are secured, as over any network of streams.
// Ownership: as SimNet's.
#pragma once
#include <memory>

#include "core/base/counters.h"
#include "core/ports/transport.h"
#include "transports/connection/hop_trust.h"
#include "transports/sim/sim_net.h"

namespace ccixfer::sim {

[[nodiscard]] std::unique_ptr<ports::Transport> make_transport(Fabric& fabric, NodeId node, const SimNetOptions& net,
                                                               const ports::TransportOptions& options, Counters& counters,
                                                               std::shared_ptr<connection::HopTrust> trust = nullptr);

}  // namespace ccixfer::sim
