// The life of the connections of a routing transport that go through routers: set up by the
// RoutedDialler or the RoutedAcceptor, open, ended. Each routing message goes to the part that it is
// for.
// In: the lower endpoint's events. Guarantees: what is in flight ends first, then the application is
// told of the end. Errors: a peer that breaks the rules is counted, and both ends are told.
// Single-threaded. Bounds: leave_timeout.
// Source: routing/transport/README.md 'Keepalive and the end'.
#pragma once
#include <string_view>

#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "routing/transport/far_end_keepalive.h"
#include "routing/transport/routed_acceptor.h"
#include "routing/transport/routed_dialler.h"
#include "routing/transport/routed_operations.h"

namespace ccixfer::routing {

inline constexpr Duration leave_timeout = std::chrono::seconds(10);  // after our disconnect: for what is in flight

class RoutedConnections {
 public:
  RoutedConnections(cci::Endpoint& lower, RoutedConnectionTable& connections, HopPost& post, RoutedDialler& dialler,
                    RoutedAcceptor& acceptor, RoutedMessages& messages, RoutedOperations& operations, FarEndKeepalive& keepalive,
                    ports::TransportSink& sink, Counters& counters);

  void on_event(RoutedConnection& connection, const cci::Event& event, Instant now);
  void on_timer(RoutedConnection& connection, Instant now);
  void push(RoutedConnection& connection, Instant now);  // an active one: what it has to say
  // Of the application: orderly. What was begun ends first, and what still comes is answered
  // `disconnected`. The connection may be gone afterwards.
  void disconnect(RoutedConnection& connection);
  // Within a turn only, of one that is over: it goes once nothing of it is in flight.
  void finish(RoutedConnection& connection);

  // Those of RoutedEnder.
  void close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_peer);
  void reject(RoutedConnection& connection, std::string_view why);

 private:
  void on_lost(RoutedConnection& connection, const cci::Event& event, Instant now);
  void on_message(RoutedConnection& connection, Bytes message, Instant now);
  void on_setup_message(RoutedConnection& connection, MessageKind kind, Bytes message, Instant now);
  void on_open_message(RoutedConnection& connection, MessageKind kind, Bytes message, Instant now);
  void on_mailbox_hint(RoutedConnection& connection, Bytes message);
  void on_draining(RoutedConnection& connection);
  void on_bye(RoutedConnection& connection, Bytes message, Instant now);
  void opened(RoutedConnection& connection, Instant now);
  void go_on_leaving(RoutedConnection& connection, Instant now);

  cci::Endpoint& lower_;
  RoutedConnectionTable& connections_;
  HopPost& post_;
  RoutedDialler& dialler_;
  RoutedAcceptor& acceptor_;
  RoutedMessages& messages_;
  RoutedOperations& operations_;
  FarEndKeepalive& keepalive_;
  ports::TransportSink& sink_;
  Counters& counters_;
};

}  // namespace ccixfer::routing
