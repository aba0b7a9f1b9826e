// The connections of a routing transport: by their ids and by their lower connections, with a timer
// each; which of them have something to push, and which of them are over and are to be finished.
// Single-threaded. Bounds: routed_connections_max.
#pragma once
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "routing/transport/routed_connection.h"
#include "routing/transport/served_table.h"

namespace ccixfer::routing {

class RoutedConnectionTable : public ServedTable<RoutedConnection> {
 public:
  // nullptr: there are as many as may be.
  [[nodiscard]] RoutedConnection* add(Phase phase);
  void remove(RoutedConnection& connection);
  // nullptr: it is gone.
  [[nodiscard]] RoutedConnection* find(ports::ConnectionId id) const { return ServedTable::find({id.index, id.generation}); }
  [[nodiscard]] RoutedConnection* find_by_lower(cci::Connection lower) const;

  // The lower connection that it has now, instead of the one before.
  void attach(RoutedConnection& connection, cci::Connection lower);
  void detach(RoutedConnection& connection);

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
  std::unordered_map<uint64_t, ports::ConnectionId> by_lower_;
  std::vector<ports::ConnectionId> finishing_;
};

}  // namespace ccixfer::routing
