// What the transport keeps of an open connection on which nothing is in flight, as far as its record goes.
#include <catch2/catch.hpp>

#include "transports/datagram/connection.h"

using namespace ccixfer;

TEST_CASE("datagram_idle__the_record_of_a_connection__is_small") { CHECK(sizeof(datagram::Connection) <= 368); }
