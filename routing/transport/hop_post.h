// Posts routing messages to the next hop of a connection, in order. What finds no room below waits
// in the connection's HopQueue, and the connection becomes active.
// Single-threaded. Bounds: out_replies_max; else by the callers.
#pragma once
#include <utility>
#include <vector>

#include "core/cci/endpoint.h"
#include "routing/transport/routed_connection_table.h"

namespace ccixfer::routing {

// Messages without content (a keepalive_ack among them) are dropped once so much waits: only a
// flood gets there.
inline constexpr size_t out_replies_max = 1024;

class HopPost {
 public:
  HopPost(cci::Endpoint& lower, RoutedConnectionTable& connections) : lower_(lower), connections_(connections) {}

  void post(RoutedConnection& connection, std::vector<std::byte> message);
  template <typename Message>
  void say(RoutedConnection& connection, const Message& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    post(connection, std::move(bytes));
  }
  void say_plain(RoutedConnection& connection, MessageKind kind);
  // A message of the application, in this flight of its sender, which hears when it is out.
  void post_message(RoutedConnection& connection, std::vector<std::byte> message, uint64_t flight);
  void flush(RoutedConnection& connection);

 private:
  cci::Endpoint& lower_;
  RoutedConnectionTable& connections_;
};

}  // namespace ccixfer::routing
