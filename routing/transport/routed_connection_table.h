// The connections of a routing transport: by their ids and by their lower connections, with a timer
// each; which of them have something to push, and which of them are over and are to be finished.
// Single-threaded. Bounds: routed_connections_max.
#pragma once
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"
#include "routing/transport/routed_connection.h"

namespace ccixfer::routing {

class RoutedConnectionTable {
 public:
  // nullptr: there are as many as may be.
  [[nodiscard]] RoutedConnection* add(Phase phase);
  void remove(RoutedConnection& connection);
  // nullptr: it is gone.
  [[nodiscard]] RoutedConnection* find(ports::ConnectionId id) const { return connections_.find(id.index, id.generation); }
  [[nodiscard]] RoutedConnection* find_by_lower(cci::Connection lower) const;
  template <typename Each>
  void for_each(const Each& each) const {
    connections_.for_each(each);
  }

  // The lower connection that it has now, instead of the one before.
  void attach(RoutedConnection& connection, cci::Connection lower);
  void detach(RoutedConnection& connection);

  // never: none.
  void set_timer(const RoutedConnection& connection, Instant when) { timers_.set(connection.id.index, when); }
  [[nodiscard]] Instant timer(const RoutedConnection& connection) const { return timers_.get(connection.id.index); }
  [[nodiscard]] Instant next_deadline() const { return timers_.earliest(); }
  // One whose timer has run down; it has none any more. nullptr: none.
  [[nodiscard]] RoutedConnection* take_due(Instant now);

  // A connection that has something to push is in the list of the active ones once.
  void activate(RoutedConnection& connection);
  [[nodiscard]] bool any_active() const { return !active_.empty(); }
  // `serve(connection)` for each that is not gone. What becomes active meanwhile is for the next
  // call.
  template <typename Serve>
  void serve_active(const Serve& serve) {
    for (const ports::ConnectionId id : std::exchange(active_, {})) {
      if (RoutedConnection* connection = find(id)) {
        connection->is_active = false;
        serve(*connection);
      }
    }
  }

  // It is over: nothing more is begun. It is to be finished once what is in flight has ended.
  void retire(RoutedConnection& connection, Status status, std::string_view reason, bool tell_above);
  void finish_soon(RoutedConnection& connection);
  [[nodiscard]] bool any_to_finish() const { return !finishing_.empty(); }
  template <typename Finish>
  void serve_finishing(const Finish& finish) {
    for (const ports::ConnectionId id : std::exchange(finishing_, {})) {
      if (RoutedConnection* connection = find(id)) {
        connection->is_finishing = false;
        finish(*connection);
      }
    }
  }

 private:
  SlotTable<RoutedConnection> connections_;
  std::unordered_map<uint64_t, ports::ConnectionId> by_lower_;
  DeadlineHeap timers_;
  std::vector<ports::ConnectionId> active_;
  std::vector<ports::ConnectionId> finishing_;
};

}  // namespace ccixfer::routing
