// The relayed connections of a router, and when each of them is to be looked at again; and those
// that have something to push. Connections are named by their packed Ref, with either leg.
// Single-threaded. Bounds: the caller's.
#pragma once
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"
#include "routing/router/relayed_connection.h"

namespace ccixfer::routing {

class ConnectionTable {
 public:
  RelayedConnection& add() { return add_to(connections_); }
  void remove(const RelayedConnection& connection);
  // nullptr: it is gone.
  [[nodiscard]] RelayedConnection* find(uint64_t packed) const { return find_in(connections_, packed); }
  [[nodiscard]] size_t size() const { return connections_.size(); }
  template <typename Each>
  void for_each(const Each& each) const {
    connections_.for_each(each);
  }

  // never: none.
  void set_timer(const RelayedConnection& connection, Instant when) { timers_.set(connection.index, when); }
  [[nodiscard]] Instant next_deadline() const { return timers_.earliest(); }
  // One whose timer has run down; it has none any more. nullptr: none.
  [[nodiscard]] RelayedConnection* take_due(Instant now);

  // A connection that has something to push is in the list of the active ones once.
  void activate(RelayedConnection& connection);
  // All, some of which may be gone; each is_taken() when it is its turn.
  [[nodiscard]] std::vector<uint64_t> take_active();
  static void is_taken(RelayedConnection& connection) { connection.active = false; }

 private:
  SlotTable<RelayedConnection> connections_{Ref::generation_max};
  DeadlineHeap timers_;
  std::vector<uint64_t> active_;
};

}  // namespace ccixfer::routing
