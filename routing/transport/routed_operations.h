// What the application asks of open routed connections: messages, and RMA operations, which a
// FragmentedRma each does in fragments. What is asked behind a fence waits until what was begun
// before has ended.
// In: requests, and the routing messages about fragments. Out: completions.
// Errors: a message about a fragment that there is not is counted; a malformed one is the peer's
// fault, and ends the connection.
// Single-threaded. Bounds: messages_in_flight_max, routed_operations_max, `fragments_max`.
// Source: routing §VII.C; CCI §III.C; routing/transport/README.md 'RMA'.
#pragma once
#include <span>
#include <vector>

#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "routing/transport/routed_messages.h"

namespace ccixfer::routing {

inline constexpr uint32_t routed_operations_max = 256;  // RMAs of one connection that have not ended

class RoutedOperations {
 public:
  // `fragments_max`: in flight, of a connection.
  RoutedOperations(uint32_t fragments_max, cci::Endpoint& lower, cci::MemoryTable& memory, RoutedConnectionTable& connections,
                   HopPost& post, RoutedMessages& messages, RoutedEnder& ender, ports::TransportSink& sink, Counters& counters);

  // Of an open connection.
  [[nodiscard]] Status send(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(RoutedConnection& connection, const ports::RmaRequest& request, uint64_t token);
  void push(RoutedConnection& connection);     // fragments and reads for which there is room
  void release(RoutedConnection& connection);  // what waited behind a fence and may begin now
  // What the network below referred to may be free meanwhile. A connection that is over becomes
  // active when it was.
  void release_lent();
  [[nodiscard]] static bool is_idle(const RoutedConnection& connection);  // all that was begun has ended

  void on_fragment_released(RoutedConnection& connection, Bytes message);
  void on_fragment_ack(RoutedConnection& connection, Bytes message);
  void on_read_reply(RoutedConnection& connection, Bytes message);
  void on_lower_read_ended(RoutedConnection& connection, uint64_t cookie, Status status);

  // The connection is over. No byte of the application's memory leaves after this, but those that
  // the network below has already.
  void withdraw(RoutedConnection& connection);
  // All end but those whose memory the network below still uses. true: there are none of these.
  [[nodiscard]] bool end_all(RoutedConnection& connection);

 private:
  class Way;  // what the operations of one connection need of it
  [[nodiscard]] static size_t begun(const RoutedConnection& connection);

  uint32_t fragments_max_;
  cci::Endpoint& lower_;
  cci::MemoryTable& memory_;
  RoutedConnectionTable& connections_;
  HopPost& post_;
  RoutedMessages& messages_;
  RoutedEnder& ender_;
  ports::TransportSink& sink_;
  Counters& counters_;
  std::vector<ports::ConnectionId> lending_;  // with operations whose source the network below still refers to
};

}  // namespace ccixfer::routing
