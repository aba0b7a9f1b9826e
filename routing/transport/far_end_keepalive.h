// Looks whether the far ends of open connections still answer (FarEndWatch), asks them, and says
// when they do not. It sets the timer of an open connection, which also serves the messages and the
// end.
// Single-threaded. Source: routing/transport/README.md 'Keepalive and the end'.
#pragma once
#include "core/cci/endpoint.h"
#include "routing/transport/hop_post.h"
#include "routing/transport/routed_connection_table.h"
#include "routing/transport/routed_ender.h"

namespace ccixfer::routing {

class FarEndKeepalive {
 public:
  // `period`: of the silence of a connection that the application does not watch itself.
  FarEndKeepalive(Duration period, cci::Endpoint& lower, RoutedConnectionTable& connections, HopPost& post, RoutedEnder& ender,
                  ports::TransportSink& sink)
      : period_(period), lower_(lower), connections_(connections), post_(post), ender_(ender), sink_(sink) {}

  // The application watches the far end itself: no hop of the chain, the first included, ends the
  // connection for its silence.
  void ask(RoutedConnection& connection, Duration timeout);
  void begin(RoutedConnection& connection, Instant now);  // it is open
  // Sets its timer to the next look, the next message's time or the time of its end, whatever comes
  // first. May end the connection.
  void look(RoutedConnection& connection, Instant now);

 private:
  void watch_hops(RoutedConnection& connection);

  Duration period_;
  cci::Endpoint& lower_;
  RoutedConnectionTable& connections_;
  HopPost& post_;
  RoutedEnder& ender_;
  ports::TransportSink& sink_;
};

}  // namespace ccixfer::routing
