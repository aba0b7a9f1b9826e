// The messages of open routed connections, both ways, numbered and acknowledged from end to end.
// Guarantees: those of core/reliability/message_window.h: each is delivered once, in order, and its
// end is told in the order of issue.
// Errors: a peer that breaks the rules of the window is rejected.
// Single-threaded. Bounds: messages_in_flight_max.
// Source: routing/transport/README.md 'Messages'.
#pragma once
#include <span>

#include "routing/transport/hop_post.h"
#include "routing/transport/routed_connection_table.h"
#include "routing/transport/routed_ender.h"

namespace ccixfer::routing {

class RoutedMessages {
 public:
  RoutedMessages(RoutedConnectionTable& connections, HopPost& post, RoutedEnder& ender, ports::TransportSink& sink)
      : connections_(connections), post_(post), ender_(ender), sink_(sink) {}

  void open(RoutedConnection& connection);
  // A message of the application.
  void begin(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token);
  // The completion message of an RMA operation that has ended well. The operation is over for the
  // application when the far end has the message.
  void announce(RoutedConnection& connection, Bytes message, uint64_t token, ports::OperationResult ending);
  // What the window and the room below allow, and an acknowledgement that is due.
  void push(RoutedConnection& connection, Instant now);
  void run_timer(RoutedConnection& connection, Instant now);
  void fail_all(RoutedConnection& connection);  // it is over

  void on_message(RoutedConnection& connection, Bytes message);
  // false: it was rejected.
  [[nodiscard]] bool on_acknowledgement(RoutedConnection& connection, Bytes message, Instant now);

 private:
  void push_back(RoutedConnection& connection, reliability::MessageOwner owner, std::span<const Bytes> parts);
  void acknowledge(RoutedConnection& connection);
  [[nodiscard]] bool deliver(RoutedConnection& connection, Bytes payload);  // false: no buffer above
  void on_ended(RoutedConnection& connection, const reliability::MessageOwner& owner, Status status);

  RoutedConnectionTable& connections_;
  HopPost& post_;
  RoutedEnder& ender_;
  ports::TransportSink& sink_;
};

}  // namespace ccixfer::routing
