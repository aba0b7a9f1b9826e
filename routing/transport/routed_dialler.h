// Makes routed connections at the initiator: dials one router after the other, asks each of them for
// the way, and agrees with the path on lengths (RouterAttempts decides whose answer is believed).
// Errors: a connect that fails is told above with the status and the words that say most, and its
// connection is gone.
// Single-threaded. Source: routing §VI, §VII.A; routing/transport/README.md 'Whom it dials'.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"
#include "routing/transport/hop_post.h"
#include "routing/transport/routed_connection_table.h"
#include "routing/transport/routed_transport.h"

namespace ccixfer::routing {

// Of the native URIs of our subnet.
[[nodiscard]] std::string native_scheme(const RoutedOptions& options, const cci::Endpoint& lower);

class RoutedDialler {
 public:
  RoutedDialler(const RoutedOptions& options, cci::Endpoint& lower, RoutedConnectionTable& connections, HopPost& post,
                ports::Entropy& entropy, ports::TransportSink& sink, Counters& counters)
      : options_(options),
        lower_(lower),
        connections_(connections),
        post_(post),
        entropy_(entropy),
        sink_(sink),
        counters_(counters) {}

  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request);

  // Each of these may be the end of the connection, which then is gone.
  void start(RoutedConnection& connection, Instant now);  // in the first turn after the dial
  void on_hop_connected(RoutedConnection& connection, const cci::Event& event, Instant now);
  void on_hop_lost(RoutedConnection& connection, std::string_view reason, Instant now);  // before it has answered
  void on_bye(RoutedConnection& connection, std::string_view reason, Instant now);
  // true: the path and the far end agreed, and the far end hears that we know.
  [[nodiscard]] bool on_reply(RoutedConnection& connection, Bytes message, Instant now);
  // false: it is malformed.
  [[nodiscard]] bool on_connect_pending(RoutedConnection& connection, Bytes message);
  void on_timeout(RoutedConnection& connection);
  void give_up(RoutedConnection& connection, Status status, std::string_view reason);
  void drop(RoutedConnection& connection);  // our application has gone

 private:
  void dial_next(RoutedConnection& connection, Instant now);
  void give_up_as_answered(RoutedConnection& connection);
  [[nodiscard]] uint32_t payload_bytes_of(const RoutedConnection& connection) const;

  const RoutedOptions& options_;
  cci::Endpoint& lower_;
  RoutedConnectionTable& connections_;
  HopPost& post_;
  ports::Entropy& entropy_;
  ports::TransportSink& sink_;
  Counters& counters_;
  std::optional<size_t> next_router_;  // that a connection begins with
};

}  // namespace ccixfer::routing
