// Makes routed connections at the acceptor: accepts hops, waits for what each of them asks for, and
// lets the application decide. Where too many are undecided, further hops wait for those.
// Errors: a peer whose request is malformed, late or not for us is rejected.
// Single-threaded. Bounds: RoutedOptions::pending_requests_max; what waits is bounded by the lower
// endpoint's requests.
// Source: routing §VII.A; routing/transport/README.md 'How a connection begins'.
#pragma once
#include <string_view>

#include "core/base/counters.h"
#include "core/base/ring_buffer.h"
#include "core/cci/endpoint.h"
#include "routing/transport/hop_post.h"
#include "routing/transport/routed_connection_table.h"
#include "routing/transport/routed_ender.h"
#include "routing/transport/routed_transport.h"

namespace ccixfer::routing {

inline constexpr Duration request_timeout = std::chrono::seconds(10);  // an accepted hop must say what it wants
inline constexpr Duration accept_timeout = std::chrono::seconds(30);   // from connect_reply to connect_ack

class RoutedAcceptor {
 public:
  RoutedAcceptor(const RoutedOptions& options, cci::Endpoint& lower, RoutedConnectionTable& connections, HopPost& post,
                 RoutedEnder& ender, ports::TransportSink& sink, Counters& counters)
      : options_(options), lower_(lower), connections_(connections), post_(post), ender_(ender), sink_(sink), counters_(counters) {}

  void on_hop(cci::Event event);  // a connect request with the role of one
  void take_waiting();            // hops for which there is room now
  void drop_waiting() { waiting_.clear(); }
  void on_hop_accepted(RoutedConnection& connection, const cci::Event& event, Instant now);
  void on_request(RoutedConnection& connection, Bytes message);
  [[nodiscard]] Status accept(RoutedConnection& connection);
  [[nodiscard]] Status reject(RoutedConnection& connection, std::string_view reason);
  // In the first turn after accept(), from which its time counts.
  void stamp(RoutedConnection& connection, Instant now);
  void on_timeout(RoutedConnection& connection);
  // It is about to end. If it is undecided, another hop gets its place.
  void forget(const RoutedConnection& connection);

 private:
  const RoutedOptions& options_;
  cci::Endpoint& lower_;
  RoutedConnectionTable& connections_;
  HopPost& post_;
  RoutedEnder& ender_;
  ports::TransportSink& sink_;
  Counters& counters_;
  uint32_t undecided_ = 0;
  RingBuffer<cci::Event> waiting_;
};

}  // namespace ccixfer::routing
