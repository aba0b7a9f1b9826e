#include "routing/transport/hop_post.h"

namespace ccixfer::routing {

void HopPost::post(RoutedConnection& connection, std::vector<std::byte> message) {
  connection.hop.push(std::move(message));
  flush(connection);
  if (!connection.hop.empty()) connections_.activate(connection);
}

void HopPost::say_plain(RoutedConnection& connection, MessageKind kind) {
  if (connection.hop.size() > out_replies_max) return;
  std::vector<std::byte> message;
  encode_plain(kind, message);
  post(connection, std::move(message));
}

void HopPost::post_message(RoutedConnection& connection, std::vector<std::byte> message, uint64_t flight) {
  connection.hop.push_message(std::move(message), flight);
  flush(connection);
}

void HopPost::flush(RoutedConnection& connection) {
  // Silent: only a failure would be told, and that is followed by the end of the connection.
  const auto send_below = [this](cci::Connection lower, Bytes message) { return lower_.send(lower, message, 0, true); };
  connection.hop.flush(send_below, [&connection](uint64_t flight) { connection.messages.sender.sent(flight); });
}

}  // namespace ccixfer::routing
