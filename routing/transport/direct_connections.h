// The direct connections of a routing transport, to peers of our own subnet: what is asked of one is
// asked of its lower connection, and what happens there is told above. Messages go from the lower
// transport straight into memory from above.
// In: requests, and the lower endpoint's events. Errors: the lower endpoint's.
// Guarantees: each operation ends once, before the end of its connection is told.
// Single-threaded. Bounds: routed_connections_max; else those of the lower endpoint.
// Source: routing §V.A.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "routing/transport/routed_connection_table.h"

namespace ccixfer::routing {

class DirectConnections {
 public:
  DirectConnections(cci::Endpoint& lower, cci::MemoryTable& memory, RoutedConnectionTable& connections, ports::TransportSink& sink,
                    Counters& counters)
      : lower_(lower), memory_(memory), connections_(connections), sink_(sink), counters_(counters) {}
  ~DirectConnections();  // the lower endpoint is gone by then; withdraws all memory
  DirectConnections(const DirectConnections&) = delete;
  DirectConnections& operator=(const DirectConnections&) = delete;

  // `uri`: the peer's native one.
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request, const std::string& uri);
  void on_request(cci::Event event);
  [[nodiscard]] Status accept(RoutedConnection& connection);
  [[nodiscard]] Status reject(RoutedConnection& connection, std::string_view reason);
  [[nodiscard]] ports::PeerIdentity peer(const RoutedConnection& connection) const;
  // It may be gone afterwards.
  void disconnect(RoutedConnection& connection);

  // Of an open connection.
  [[nodiscard]] Status send(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(RoutedConnection& connection, const ports::RmaRequest& request, uint64_t token);

  // Of a connection, or of one of its operations.
  void on_event(RoutedConnection& connection, const cci::Event& event);
  // Those of cci::MessageTaker.
  [[nodiscard]] MutableBytes message_begins(RoutedConnection& connection, uint32_t length_bytes);
  void message_ends(RoutedConnection& connection, bool complete);

  // Within a turn only, of one that is over: it goes once nothing of it is in flight.
  void finish(RoutedConnection& connection);

 private:
  void opened(RoutedConnection& connection);
  void on_connected(RoutedConnection& connection, const cci::Event& event);
  void on_accepted(RoutedConnection& connection, const cci::Event& event);
  void on_operation_ended(RoutedConnection& connection, uint64_t token, ports::OperationResult ending);
  void close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_above);

  cci::Endpoint& lower_;
  cci::MemoryTable& memory_;
  RoutedConnectionTable& connections_;
  ports::TransportSink& sink_;
  Counters& counters_;
};

}  // namespace ccixfer::routing
