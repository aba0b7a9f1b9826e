// The setup of a relayed connection, from the initiator's request to the answer: checks what the
// request says, tries the next hops in order, and agrees on lengths. The initiator hears of success
// only after the destination said so.
// Errors: a connect that fails is answered with the status and the words of the last hop that said
// something, and ended.
// Single-threaded. Bounds: candidates_tried_max, hops_max, connect_time_max, hop_dial_timeout,
// hop_patience, peers_logged_max.
// Source: routing §VII; routing/router/README.md 'A connection's setup and end'.
#pragma once
#include <string>
#include <string_view>

#include "core/base/counters.h"
#include "routing/map/source_policy.h"
#include "routing/router/bad_peers.h"
#include "routing/router/buffer_grants.h"
#include "routing/router/connection_ender.h"
#include "routing/router/connection_table.h"
#include "routing/router/devices.h"
#include "routing/router/hop_turns.h"
#include "routing/router/message_relay.h"
#include "routing/router/peer_rights.h"
#include "routing/router/record_store.h"

namespace ccixfer::routing {

// A connect takes no longer than that at this router, whatever it asks for: it has a place among those that are being set up.
inline constexpr Duration connect_time_max = std::chrono::hours(2);
inline constexpr Duration hop_dial_timeout = std::chrono::seconds(5);
// When a hop has not answered for so long, the initiator is told which one it is.
inline constexpr Duration hop_patience = std::chrono::seconds(1);

class ConnectionSetup {
 public:
  ConnectionSetup(const Devices& devices, RecordStore& records, const PeerRights& rights, ConnectionTable& connections,
                  const ConnectionPlaces& places, const BufferGrants& grants, MessageRelay& relay, ConnectionEnder& ender,
                  ports::Entropy& entropy, Counters& counters, Traffic* traffic = nullptr);
  void on_request(RelayedConnection& connection, Bytes message, Instant now);
  void on_hop_connected(RelayedConnection& connection, const cci::Event& event, Instant now);
  // The connection to the next hop was lost before the hop had answered.
  void on_hop_lost(RelayedConnection& connection, std::string_view why, Instant now);
  // The next hop says that it waits for one beyond it.
  void on_connect_pending(RelayedConnection& connection, Bytes message);
  // The next hop has answered. true: the connection is open.
  [[nodiscard]] bool on_reply(RelayedConnection& connection, Bytes message, Instant now);
  // The time of the next hop, or of the whole connect, is over.
  void on_timer(RelayedConnection& connection, Instant now);
  // Ends a connect that did not succeed: the initiator gets the answer.
  void refuse(RelayedConnection& connection, RefusedAs why, Status status, std::string_view reason);
  // The router stops: the initiator, or the router before us, has to try another way.
  void refuse_as_draining(RelayedConnection& connection);
  void drop_hop(RelayedConnection& connection);  // leaves the next hop that is being tried
  void drain() { draining_ = true; }
  [[nodiscard]] std::string draining_reason(const RelayedConnection& connection) const;

 private:
  [[nodiscard]] ClaimFault claim_fault(const RelayedConnection& connection);
  void note_liar(const Leg& leg, std::string_view what);
  void dial_next(RelayedConnection& connection, Instant now);
  [[nodiscard]] bool dial(RelayedConnection& connection, NextHop hop);
  static void note_answer(RelayedConnection& connection, Status status, std::string reason);
  void await_hop(const RelayedConnection& connection, Instant now);
  [[nodiscard]] uint32_t payload_bytes_max(const Leg& leg) const;
  void open(RelayedConnection& connection, ConnectReply reply, Instant now);

  const Devices& devices_;
  RecordStore& records_;
  const PeerRights& rights_;
  ConnectionTable& connections_;
  const ConnectionPlaces& places_;
  const BufferGrants& grants_;
  MessageRelay& relay_;
  ConnectionEnder& ender_;
  HopTurns turns_;
  Counters& counters_;
  Traffic* const traffic_;  // nullptr: nobody wants to know
  PeersLogged liars_logged_;
  bool draining_ = false;
};

}  // namespace ccixfer::routing
