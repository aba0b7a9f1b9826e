// The relayed connections of a router by name, by their timers, and those that have something to
// push.
#include "routing/router/connection_table.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

const Instant start = Instant{} + std::chrono::seconds(100);

std::vector<uint64_t> served(ConnectionTable& table) {
  std::vector<uint64_t> refs;
  table.serve_active([&refs](const RelayedConnection& connection) { refs.push_back(connection.ref()); });
  return refs;
}

}  // namespace

TEST_CASE("connection_table__a_name__finds_its_connection_with_either_leg_until_removed") {
  ConnectionTable table;
  RelayedConnection& connection = table.add();
  const uint64_t first = connection.ref(0), second = connection.ref(1);
  CHECK(table.find(first) == &connection);
  CHECK(table.find(second) == &connection);
  CHECK(Ref::of(second).tag == Tag::connection);
  table.remove(connection);
  CHECK(table.size() == 0);
  RelayedConnection& next = table.add();
  CHECK(next.index == Ref::of(first).index);
  CHECK(table.find(first) == nullptr);
  CHECK(table.find(next.ref(0)) == &next);
}

TEST_CASE("connection_table__timers__run_down_once_and_end_with_their_connection") {
  ConnectionTable table;
  RelayedConnection& first = table.add();
  RelayedConnection& second = table.add();
  table.set_timer(first, start + Duration(5));
  table.set_timer(second, start + Duration(3));
  CHECK(table.next_deadline() == start + Duration(3));
  CHECK(table.take_due(start + Duration(2)) == nullptr);
  CHECK(table.take_due(start + Duration(9)) == &second);
  CHECK(table.next_deadline() == start + Duration(5));
  table.remove(first);
  CHECK(table.take_due(start + Duration(9)) == nullptr);
  CHECK(table.next_deadline() == never);
}

TEST_CASE("connection_table__active__is_in_the_list_once_until_it_was_its_turn") {
  ConnectionTable table;
  RelayedConnection& connection = table.add();
  table.activate(connection);
  table.activate(connection);
  CHECK(served(table) == std::vector<uint64_t>{connection.ref(0)});
  CHECK(served(table).empty());
  table.activate(connection);
  RelayedConnection& gone = table.add();
  table.activate(gone);
  table.remove(gone);
  CHECK(served(table) == std::vector<uint64_t>{connection.ref(0)});
}
