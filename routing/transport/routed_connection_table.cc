#include "routing/transport/routed_connection_table.h"

#include "core/base/units.h"

namespace ccixfer::routing {

RoutedConnection* RoutedConnectionTable::add(Phase phase) {
  if (size() >= routed_connections_max) return nullptr;
  const SlotName name = entries().add();
  RoutedConnection& connection = *ServedTable::find(name);
  connection.id = {name.index, name.generation};
  connection.phase = phase;
  return &connection;
}

void RoutedConnectionTable::remove(RoutedConnection& connection) {
  detach(connection);
  remove_entry(connection);
}

RoutedConnection* RoutedConnectionTable::find_by_lower(cci::Connection lower) const {
  const auto found = by_lower_.find(lower.packed());
  return found == by_lower_.end() ? nullptr : find(found->second);
}

void RoutedConnectionTable::attach(RoutedConnection& connection, cci::Connection lower) {
  detach(connection);
  connection.hop.attach(lower);
  by_lower_[lower.packed()] = connection.id;
}

void RoutedConnectionTable::detach(RoutedConnection& connection) {
  if (connection.hop.connection()) by_lower_.erase(connection.hop.connection().packed());
  connection.hop.detach();
}

void RoutedConnectionTable::retire(RoutedConnection& connection, Status status, std::string_view reason, bool tell_above) {
  connection.phase = Phase::leaving;
  connection.end.status = status;
  connection.end.reason = printable(reason);
  connection.end.tell_above = tell_above;
  set_timer(connection, never);
  finish_soon(connection);
}

void RoutedConnectionTable::finish_soon(RoutedConnection& connection) {
  if (std::exchange(connection.is_finishing, true)) return;
  finishing_.push_back(connection.id);
}

}  // namespace ccixfer::routing
