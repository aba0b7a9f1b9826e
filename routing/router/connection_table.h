// The relayed connections of a router, and when each of them is to be looked at again; and those
// that have something to push. Connections are named by their packed Ref, with either leg.
// Single-threaded. Bounds: the caller's.
#pragma once
#include "routing/router/relayed_connection.h"
#include "routing/transport/served_table.h"

namespace ccixfer::routing {

class ConnectionTable : public ServedTable<RelayedConnection> {
 public:
  ConnectionTable() : ServedTable(Ref::generation_max) {}
  RelayedConnection& add() { return add_to(entries()); }
  void remove(const RelayedConnection& connection) { remove_entry(connection); }
  // nullptr: it is gone.
  [[nodiscard]] RelayedConnection* find(uint64_t packed) const {
    const Ref ref = Ref::of(packed);
    return ServedTable::find({ref.index, ref.generation});
  }
};

}  // namespace ccixfer::routing
