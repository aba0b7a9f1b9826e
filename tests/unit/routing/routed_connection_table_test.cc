// The connections of a routing transport, and which of them are to be looked at.
#include "routing/transport/routed_connection_table.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;

namespace {

std::vector<RoutedConnection*> active_of(RoutedConnectionTable& table) {
  std::vector<RoutedConnection*> found;
  table.serve_active([&](RoutedConnection& each) { found.push_back(&each); });
  return found;
}

}  // namespace

TEST_CASE("routed_connection_table__removed__its_id_and_its_lower_connection_find_nothing") {
  RoutedConnectionTable table;
  RoutedConnection& connection = *table.add(Phase::offered);
  const ports::ConnectionId id = connection.id;
  CHECK(connection.phase == Phase::offered);
  table.attach(connection, {4, 1});
  CHECK(table.find(id) == &connection);
  CHECK(table.find_by_lower({4, 1}) == &connection);
  table.set_timer(connection, Instant{});
  table.remove(connection);
  CHECK(table.find(id) == nullptr);
  CHECK(table.find_by_lower({4, 1}) == nullptr);
  CHECK(table.next_deadline() == never);
  const RoutedConnection& next = *table.add(Phase::open);
  CHECK(next.id.index == id.index);
  CHECK(next.id != id);
  CHECK(table.find(id) == nullptr);
}

TEST_CASE("routed_connection_table__another_lower_connection__the_one_before_finds_nothing") {
  RoutedConnectionTable table;
  RoutedConnection& connection = *table.add(Phase::dialling);
  table.attach(connection, {4, 1});
  table.attach(connection, {5, 1});
  CHECK(table.find_by_lower({4, 1}) == nullptr);
  CHECK(table.find_by_lower({5, 1}) == &connection);
  CHECK(connection.hop.is_live());
  table.detach(connection);
  CHECK(table.find_by_lower({5, 1}) == nullptr);
  CHECK_FALSE(connection.hop.is_live());
}

TEST_CASE("routed_connection_table__timers__the_earliest_that_is_due_comes_first_and_once") {
  RoutedConnectionTable table;
  RoutedConnection& late = *table.add(Phase::open);
  RoutedConnection& early = *table.add(Phase::open);
  table.set_timer(late, Instant{} + seconds(2));
  table.set_timer(early, Instant{} + seconds(1));
  CHECK(table.next_deadline() == Instant{} + seconds(1));
  CHECK(table.timer(late) == Instant{} + seconds(2));
  CHECK(table.take_due(Instant{} + seconds(1) - Duration{1}) == nullptr);
  CHECK(table.take_due(Instant{} + seconds(1)) == &early);
  CHECK(table.timer(early) == never);
  CHECK(table.take_due(Instant{} + seconds(1)) == nullptr);
  CHECK(table.take_due(Instant{} + seconds(3)) == &late);
}

TEST_CASE("routed_connection_table__active_twice__is_served_once_and_again_when_asked") {
  RoutedConnectionTable table;
  RoutedConnection& connection = *table.add(Phase::open);
  RoutedConnection& gone = *table.add(Phase::open);
  table.activate(gone);
  table.activate(connection);
  table.activate(connection);
  table.remove(gone);
  CHECK(table.any_active());
  int served = 0;
  table.serve_active([&](RoutedConnection& each) {
    CHECK(&each == &connection);
    if (++served < 5) table.activate(each);
  });
  CHECK(served == 1);
  CHECK(active_of(table) == std::vector<RoutedConnection*>{&connection});
  CHECK_FALSE(table.any_active());
}

TEST_CASE("routed_connection_table__retired__leaves_without_a_timer_and_is_finished_once") {
  RoutedConnectionTable table;
  RoutedConnection& connection = *table.add(Phase::open);
  table.set_timer(connection, Instant{});
  CHECK_FALSE(table.any_to_finish());
  table.retire(connection, Status::unreachable, "a\nb", true);
  CHECK(connection.phase == Phase::leaving);
  CHECK(connection.end.status == Status::unreachable);
  CHECK(connection.end.reason.find('\n') == std::string::npos);
  CHECK(connection.end.tell_above);
  CHECK(table.next_deadline() == never);
  table.finish_soon(connection);
  int finished = 0;
  table.serve_finishing([&](RoutedConnection& each) {
    CHECK(&each == &connection);
    ++finished;
    table.finish_soon(each);
  });
  CHECK(finished == 1);
  table.serve_finishing([&](RoutedConnection& each) { table.remove(each); });
  CHECK_FALSE(table.any_to_finish());
}
