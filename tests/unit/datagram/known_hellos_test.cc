// Hellos that opened a connection open no other.
#include "transports/datagram/known_hellos.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::datagram;

namespace {

KnownHellos::Name name(uint64_t key, uint64_t host = 1) { return host << 32 | key; }

}  // namespace

TEST_CASE("known_hellos__a_hello__is_known_while_its_connection_lives_and_after_it") {
  KnownHellos hellos;
  CHECK_FALSE(hellos.knows(name(7)));
  hellos.add(name(7));
  CHECK(hellos.knows(name(7)));
  CHECK_FALSE(hellos.knows(name(8)));
  CHECK_FALSE(hellos.knows(name(7, 2)));
  hellos.end(name(7));
  hellos.end(name(7));
  CHECK(hellos.knows(name(7)));
}

TEST_CASE("known_hellos__more_ended_than_are_remembered__the_oldest_is_forgotten") {
  KnownHellos hellos;
  hellos.add(name(0, 9));
  for (uint64_t i = 0; i < hellos_remembered_max; ++i) {
    hellos.add(name(i));
    hellos.end(name(i));
  }
  CHECK(hellos.knows(name(0)));
  hellos.end(name(1000000));  // never was one: it takes nobody's place
  CHECK(hellos.knows(name(0)));
  hellos.add(name(hellos_remembered_max));
  hellos.end(name(hellos_remembered_max));
  CHECK_FALSE(hellos.knows(name(0)));
  CHECK(hellos.knows(name(1)));
  CHECK(hellos.knows(name(0, 9)));
}
