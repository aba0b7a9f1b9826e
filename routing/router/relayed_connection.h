// One routed connection at a router: two legs, which are connections of the router's devices, and
// what is known of it. Each part names the one object that changes it. Idle, it costs one
// allocation and the strings that name its ends: queues come when something waits, and what the
// setup needs goes when the connection is open.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/cci/endpoint.h"
#include "routing/map/router_map.h"
#include "routing/router/connection_fragments.h"
#include "routing/router/connection_places.h"
#include "routing/router/network_flows.h"
#include "routing/router/ref.h"
#include "routing/router/router_view.h"
#include "routing/router/stood_still.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

// One message on its way out: its bytes, or the event that still holds them in its receive buffer.
struct Outgoing {
  std::vector<std::byte> copy;
  cci::Event event;
  bool is_event = false;
  bool counted = false;  // in the router's sum of events, or of copied bytes
  [[nodiscard]] Bytes bytes() const { return is_event ? event.data() : Bytes(copy); }
};

// What the FragmentForwarder has seen of a leg.
struct LegTraffic {
  // The shortest time from our asking for a fragment to its first byte, or from our offering one to
  // its end.
  Duration wait = forever;
  uint64_t pulled_bytes = 0, taken_bytes = 0;  // of fragments that are over
};

// What the StandstillWatch keeps of a leg.
struct LegProgress {
  // By Direction: what the leg gives us, and what it takes.
  std::array<LegFlow, 2> flows;
  uint64_t arriving_bytes = 0;  // of fragments that arrived from the leg when we looked last
  bool skips = false;           // at the last look the leg had passed over a fragment that waits for it
  Instant moved_at = never;     // the last look at which the leg had moved; never: it has not moved yet
  LegFlow& operator[](Direction direction) { return flows[static_cast<size_t>(direction)]; }
};

struct Leg {
  uint32_t device = 0;
  cci::Connection connection;
  bool live = false;
  bool is_end = false;       // the routed connection ends there: no router is beyond
  bool unwatched = false;    // the ends watch one another, and no keepalive of ours is on it
  RingBuffer<Outgoing> out;  // MessageRelay's
  LegTraffic traffic;
  LegProgress progress;
};

inline constexpr int nobody = -1;  // instead of a leg: neither of the two

// What the observer is told of a connection when it is over (admission.h). Only routers with an observer keep it.
struct Account {
  ports::PeerIdentity peer = {};  // of the leg towards the initiator
  std::string to = {};
  Instant since{};
  bool done = false;  // an end has said that all is done
};

enum class ConnectionPhase : uint8_t { accepting, awaiting_request, dialling, requesting, open, closing };
[[nodiscard]] constexpr bool is_setting_up(ConnectionPhase phase) {
  return phase != ConnectionPhase::open && phase != ConnectionPhase::closing;
}

// What the ConnectionSetup keeps until the connection is open.
struct ConnectAttempt {
  ConnectRequest request;
  Address to;
  std::vector<NextHop> candidates;  // not tried yet, the best one last
  NextHop hop;                      // being tried
  Status answer = Status::no_route;
  std::string answer_reason;
  Instant requested_at{};
  Instant deadline = never;  // of the whole connect
};

// What the StandstillWatch keeps of a connection.
struct ConnectionProgress {
  uint64_t look = 0;   // the last one at which it held a buffer
  Duration stands{0};  // at that
  uint8_t stands_leg = 0;
  bool stands_taking = false;
  Instant pressed_until{};  // a router before or behind us has others waiting
  Instant press_again{};
};

// The side of its ref() is a leg.
struct RelayedConnection : NamedEntry<Tag::connection> {
  ConnectionPhase phase = ConnectionPhase::accepting;
  bool is_active = false;                  // ConnectionTable's
  uint8_t crossed = 0;                     // routers between the initiator and here
  uint8_t beyond = 0;                      // routers between here and the destination
  std::array<Leg, 2> legs;                 // 0: towards the initiator, 1: towards the destination
  std::string hop_uri;                     // what was dialled for the second leg
  ConnectionPlaces::Peer* peer = nullptr;  // whose place it has
  EndNames ends;                           // by which its ends are remembered when they stand still
  std::unique_ptr<ConnectAttempt> attempt;
  std::unique_ptr<Account> account;
  uint64_t forwarded_bytes = 0;  // both ways
  size_t copied_bytes = 0;       // MessageRelay's: of messages that wait, and hold no receive buffer
  ConnectionFragments fragments;
  ConnectionProgress progress;
  [[nodiscard]] std::string leg_name(uint8_t leg) const { return leg == 1 ? hop_uri : "the side of the initiator"; }
};

[[nodiscard]] ConnectionView view_of(const RelayedConnection& connection);

}  // namespace ccixfer::routing
