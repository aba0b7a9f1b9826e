// One connection of the routing transport, through routers or direct. Each part names the one
// object that changes it. Idle, it costs one allocation and what is known of its path: queues come
// when something waits, and what the setup needs goes when the connection is open.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
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

inline constexpr uint32_t routed_connections_max = 16384;

// A direct connection has only the phases dialling, offered, accepting, open and leaving.
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

// What DirectConnections keeps of a connection to a peer of our own subnet.
struct DirectTraffic {
  std::unique_ptr<cci::Event> offer;                    // a request that the application has not decided
  uint32_t in_flight = 0;                               // sends and RMA operations that have not ended
  std::unordered_map<uint64_t, ports::Handle> sources;  // by token: the memory of an RMA operation
  bool message_open = false;                            // the lower transport is placing one into memory from above
};

// What RoutedDialler and RoutedAcceptor agreed on with the path and the far end.
struct RoutedPath {
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  ports::ConnectionLimits limits;
  uint32_t fragment_bytes = 0;
  std::vector<ports::HopInfo> hops;  // at the initiator
};

// What RoutedMessages keeps.
struct MessageTraffic {
  struct Announced {  // an RMA operation that has ended well, and whose completion message the far end does not have yet
    uint64_t token = 0;
    ports::OperationResult ending{Status::success};
  };
  reliability::MessageSender sender;  // from end to end
  reliability::MessageReceiver receiver;
  size_t begun = 0;  // messages that have begun and not ended
  Duration send_timeout = forever;
  RingBuffer<Announced> announced;  // in the order in which their messages end
};

// How the connection ends.
struct ConnectionEnd {
  bool left = false;         // our application has disconnected, and what is in flight ends first
  Instant deadline = never;  // by when what is in flight must have ended
  bool tell_above = false;   // the application hears of the end, as it did not disconnect itself
  Status status = Status::disconnected;
  std::string reason;
};

struct RoutedConnection {
  ports::ConnectionId id;
  [[nodiscard]] SlotName name() const { return {id.index, id.generation}; }
  Phase phase = Phase::starting;
  bool is_active = false;                 // RoutedConnectionTable's
  bool is_finishing = false;              // the same
  bool is_draining = false;               // RoutedConnections': a router of the path stops soon
  bool accept_is_unstamped = false;       // RoutedAcceptor's: its time counts from the next turn on
  std::unique_ptr<DirectTraffic> direct;  // nullptr: it goes through routers
  HopQueue hop;                           // HopPost's; of a direct connection, to its peer
  RoutedPath path;
  std::unique_ptr<RouterAttempts> attempts;  // RoutedDialler's, until it is open
  FarEndWatch far_end;                       // FarEndKeepalive's
  MessageTraffic messages;
  std::unique_ptr<FragmentedRma> rma;  // RoutedOperations', from the first operation on
  FenceQueue fenced;                   // the same
  ConnectionEnd end;

  [[nodiscard]] bool is_direct() const { return direct != nullptr; }
};

}  // namespace ccixfer::routing
