#include "routing/router/connection_table.h"

#include <utility>

namespace ccixfer::routing {

void ConnectionTable::remove(const RelayedConnection& connection) {
  set_timer(connection, never);
  connections_.remove(connection.index);
}

RelayedConnection* ConnectionTable::take_due(Instant now) {
  if (timers_.earliest() > now) return nullptr;
  RelayedConnection* due = connections_.at(timers_.earliest_slot());
  set_timer(*due, never);
  return due;
}

void ConnectionTable::activate(RelayedConnection& connection) {
  if (connection.active) return;
  connection.active = true;
  active_.push_back(connection.ref(0));
}

std::vector<uint64_t> ConnectionTable::take_active() { return std::exchange(active_, {}); }

}  // namespace ccixfer::routing
