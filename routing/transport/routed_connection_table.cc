#include "routing/transport/routed_connection_table.h"

#include "core/base/units.h"

namespace ccixfer::routing {

RoutedConnection* RoutedConnectionTable::add(Phase phase) {
  if (connections_.size() >= routed_connections_max) return nullptr;
  const auto name = connections_.add();
  RoutedConnection& connection = *connections_.find(name);
  connection.id = {name.index, name.generation};
  connection.phase = phase;
  return &connection;
}

void RoutedConnectionTable::remove(RoutedConnection& connection) {
  set_timer(connection, never);
  detach(connection);
  connections_.remove(connection.id.index);
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

RoutedConnection* RoutedConnectionTable::take_due(Instant now) {
  if (timers_.earliest() > now) return nullptr;
  RoutedConnection* due = connections_.at(timers_.earliest_slot());
  set_timer(*due, never);
  return due;
}

void RoutedConnectionTable::activate(RoutedConnection& connection) {
  if (std::exchange(connection.is_active, true)) return;
  active_.push_back(connection.id);
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
