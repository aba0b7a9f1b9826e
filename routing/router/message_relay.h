// Messages of relayed connections: what comes on one leg goes out on the other, in order. A message
// that cannot go on holds its receive buffer, so that its sender waits. Beyond held_events_max it
// is copied, so that the acknowledgements of others always find a buffer.
// Errors: a connection of which too many messages wait is rejected; when the copies take more
// memory than there may be, the connection that has most of them is.
// Single-threaded. Bounds: held_events_max, out_messages_max, and `copied_bytes_max` of the
// constructor.
#pragma once
#include <functional>
#include <vector>

#include "core/base/counters.h"
#include "routing/router/connection_ender.h"
#include "routing/router/connection_table.h"
#include "routing/router/message_sender.h"
#include "routing/router/traffic.h"

namespace ccixfer::routing {

// Receive buffers held for messages that wait, over all connections.
inline constexpr size_t held_events_max = 256;
// Waiting on one leg; an honest peer's windows stay below.
inline constexpr size_t out_messages_max = 2048;

class MessageRelay {
 public:
  // `may_send`: empty, or whether a message may be sent now (RouterMechanisms::messages_apart).
  MessageRelay(MessageSender& sender, ConnectionEnder& ender, ConnectionTable& connections, size_t copied_bytes_max,
               std::function<bool()> may_send, Counters& counters, Traffic* traffic = nullptr);
  // To the peer of that leg; nothing if the leg is not live. May end the connection, or another
  // one.
  void post(RelayedConnection& connection, uint8_t to, std::vector<std::byte> message);
  void post_plain(RelayedConnection& connection, uint8_t to, MessageKind kind);
  // What came on leg `from` goes out on the other.
  void pass_on(RelayedConnection& connection, uint8_t from, Bytes message);
  // A message of the application's.
  void forward(RelayedConnection& connection, uint8_t from, cci::Event event);
  void flush(RelayedConnection& connection, uint8_t leg);
  void drop(RelayedConnection& connection, Leg& leg);  // what waits on it

 private:
  void post(RelayedConnection& connection, uint8_t to, Outgoing outgoing);
  [[nodiscard]] bool goes_out(RelayedConnection& connection, uint8_t to, const Outgoing& outgoing);
  void hold(RelayedConnection& connection, Outgoing& outgoing);
  void forget(RelayedConnection& connection, Outgoing& outgoing);
  void close_largest();

  MessageSender& sender_;
  ConnectionEnder& ender_;
  ConnectionTable& connections_;
  size_t copied_bytes_max_;
  std::function<bool()> may_send_;
  Counters& counters_;
  Traffic* const traffic_;  // nullptr: nobody wants to know
  size_t held_events_ = 0;
  size_t copied_bytes_ = 0;
};

}  // namespace ccixfer::routing
