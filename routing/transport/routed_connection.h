// The state of one connection of the routing transport. Internal to routing/transport.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/ports/transport.h"
#include "core/reliability/message_window.h"
#include "routing/transport/far_end_watch.h"
#include "routing/transport/fence_queue.h"
#include "routing/transport/fragmented_rma.h"
#include "routing/transport/hop_queue.h"
#include "routing/transport/messages.h"
#include "routing/transport/router_attempts.h"

namespace ccixfer::routing {

inline constexpr uint32_t routed_operations_max = 256;  // RMAs of one connection that have not ended
inline constexpr uint32_t routed_connections_max = 16384;
inline constexpr Duration request_timeout = std::chrono::seconds(10);  // an accepted hop must say what it wants
inline constexpr Duration accept_timeout = std::chrono::seconds(30);   // from connect_reply to connect_ack
inline constexpr Duration leave_timeout = std::chrono::seconds(10);    // after our disconnect: for what is in flight

enum class Mode : uint8_t { direct, routed };
enum class Phase : uint8_t {
  starting,          // dialled from above; the first router is dialled in the next turn
  dialling,          // a lower connection is being made
  requesting,        // connect_request is out
  hop_accepting,     // a hop was accepted below
  awaiting_request,  // its connect_request has not come
  offered,           // our application decides
  accepting,         // connect_reply is out; connect_ack awaited
  open,
  leaving,  // over: what is still in flight below ends first
};

struct RoutedConnection {
  ports::ConnectionId id;
  Mode mode = Mode::routed;
  Phase phase = Phase::starting;
  HopQueue hop;         // of a direct connection: the peer
  bool active = false;  // in the list of those with something to push
  bool closing_queued = false;

  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  Instant deadline = never;                  // of the step that is under way, at the accepting end or after our disconnect
  std::unique_ptr<RouterAttempts> attempts;  // at the initiator, until it is open
  cci::Event request;                        // direct, offered

  ports::ConnectionLimits limits;
  uint32_t fragment_bytes = 0;
  std::vector<ports::HopInfo> hops;

  FarEndWatch far_end;
  // What calls from above begin counts from the next turn on: the last one may be long ago.
  bool accept_unstamped = false;

  bool draining = false;  // a router of the path stops soon: told, or to be told once the connection is open

  // Out.
  reliability::MessageSender messages;  // from end to end
  size_t messages_begun = 0;            // and not ended
  FenceQueue fenced;
  Duration send_timeout = forever;

  // RMA.
  std::unique_ptr<FragmentedRma> rma;  // routed; from the first operation on
  std::unordered_map<uint64_t, ports::OperationResult>
      announcing;                                              // token of an RMA whose completion message is on its way: its end
  std::unordered_map<uint64_t, ports::Handle> direct_sources;  // direct RMA: token -> its registration
  uint32_t direct_in_flight = 0;

  // In.
  reliability::MessageReceiver incoming;
  bool message_open = false;  // direct: the lower transport is placing one into memory from above

  // The end.
  bool left = false;       // our application has gone: what is in flight ends first
  bool tell_sink = false;  // of the end: not for our own disconnect
  Status end_status = Status::disconnected;
  std::string end_reason;

  // Begun and not ended: what a fence waits for.
  [[nodiscard]] size_t begun() const { return messages_begun + (rma == nullptr ? 0 : rma->size()) - fenced.operations(); }
};

}  // namespace ccixfer::routing
