// What a transport keeps of an open connection on which nothing is in flight. What was in flight once
// stays a while: one message's place, and the books on RMA once there was one.
#include <catch2/catch.hpp>
#include <cstdio>

#include "transports/datagram/connection.h"
#include "transports/stream/connection.h"

using namespace ccixfer;

TEST_CASE("transport_idle__the_record_of_a_connection__is_small") {
  std::printf("an idle connection: a record of %zu bytes over a stream, of %zu over datagrams\n", sizeof(stream::Connection),
              sizeof(datagram::Connection));
  CHECK(sizeof(stream::Connection) <= 512);
  CHECK(sizeof(datagram::Connection) <= 1024);
}
