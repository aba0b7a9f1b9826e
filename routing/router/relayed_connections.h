// The life of the relayed connections of a router: accepted from a hop, set up, open, ended. Each
// routing message goes to the part that it is for. The loss of either leg closes the other with the
// reason.
// In: events whose context is a connection's Ref.
// Errors: a peer that breaks the rules is counted, and both are told.
// Single-threaded. Bounds: ConnectionPlaces', hop_request_timeout, close_flush_timeout.
// Source: routing §VII; routing/router/README.md 'A connection's setup and end', 'A planned stop'.
#pragma once
#include <string_view>

#include "routing/router/admission.h"
#include "routing/router/connection_setup.h"
#include "routing/router/fragment_forwarder.h"
#include "routing/router/standstill_watch.h"

namespace ccixfer::routing {

inline constexpr Duration hop_request_timeout = std::chrono::seconds(10);
inline constexpr Duration close_flush_timeout = std::chrono::seconds(10);

class RelayedConnections {
 public:
  RelayedConnections(const Devices& devices, ConnectionTable& connections, ConnectionPlaces& places, ConnectionSetup& setup,
                     MessageRelay& relay, FragmentForwarder& forwarder, StandstillWatch& watch, const AdmissionObserver& observer,
                     Counters& counters, Traffic* traffic = nullptr);
  void set_now(Instant now) { now_ = now; }
  void on_request(uint32_t device, cci::Event& event);
  void on_event(const Ref& ref, cci::Event event);
  void push();  // what found no room before, and the end of those that close
  void run_timers();

  void close(RelayedConnection& connection, Status status, std::string_view reason, int told_by);
  void reject(RelayedConnection& connection, std::string_view why);

  void drain();            // nothing new is taken from now on
  void tell_drain();       // what is being set up is refused, and both ends of the others are told
  void close_all();        // what neither ended nor moved
  void account_for_all();  // the router is going

 private:
  void on_leg_event(RelayedConnection& connection, uint8_t which, cci::Event event);
  void on_accepted(RelayedConnection& connection, const cci::Event& event);
  void on_own_message_failed(RelayedConnection& connection, uint8_t which, const cci::Event& event);
  void on_mailbox_ready(RelayedConnection& connection, uint8_t which, const cci::Event& event);
  void on_lost(RelayedConnection& connection, uint8_t which, const cci::Event& event);
  void on_message(RelayedConnection& connection, uint8_t which, cci::Event event);
  void on_setup_message(RelayedConnection& connection, uint8_t which, MessageKind kind, Bytes message);
  void on_open_message(RelayedConnection& connection, uint8_t which, MessageKind kind, cci::Event event);
  void on_router_message(RelayedConnection& connection, uint8_t which, MessageKind kind, Bytes message);
  void on_watched(RelayedConnection& connection, uint8_t which, Bytes message);
  void on_bye(RelayedConnection& connection, uint8_t which, Bytes message);
  void on_timer(RelayedConnection& connection);
  void tell_observer(const RelayedConnection& connection, Admission::Step step, Status status, std::string_view reason) const;
  void try_finish(RelayedConnection& connection);

  const Devices& devices_;
  ConnectionTable& connections_;
  ConnectionPlaces& places_;
  ConnectionSetup& setup_;
  MessageRelay& relay_;
  FragmentForwarder& forwarder_;
  StandstillWatch& watch_;
  const AdmissionObserver& observer_;
  Counters& counters_;
  Traffic* const traffic_;  // nullptr: nobody wants to know
  bool draining_ = false;
  Instant now_{};
};

}  // namespace ccixfer::routing
