// A network that changes a handshake: one bit anywhere in any flight. Either both sides notice nothing and have the same secret, or
// somebody says what is wrong, or the receiver waits for what a changed length promised. Nobody is ever done with somebody else.
#include <catch2/catch.hpp>
#include <optional>

#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/tls_rig.h"

namespace ccixfer::trust {
namespace {

using enum HandshakeSide;

struct Fixture {
  Identity dials = Identity::generate().value();
  Identity accepts = Identity::generate().value();
  std::optional<Authority> authority;
};

// Where the lengths of records stand in a flight, and that of the hello of either side, which is not encrypted.
std::vector<size_t> length_places(const std::vector<std::byte>& flight) {
  std::vector<size_t> places{6, 7, 8};
  for (size_t at = 0; at + 5 <= flight.size();) {
    places.push_back(at + 3);
    places.push_back(at + 4);
    at += 5 + (std::to_integer<size_t>(flight[at + 3]) << 8 | std::to_integer<size_t>(flight[at + 4]));
  }
  return places;
}

void require_safe(const Fixture& fixture, size_t flight_number, size_t at, int bit) {
  Side dials(dialler, fixture.dials, fixture.authority), accepts(acceptor, fixture.accepts, fixture.authority);
  bool of_a_length = false;
  static_cast<void>(run(dials, accepts, [&](size_t number, std::vector<std::byte>& flight) {
    if (number != flight_number || at >= flight.size()) return;
    for (const size_t place : length_places(flight)) of_a_length = of_a_length || place == at;
    flight[at] ^= std::byte{1} << bit;
  }));
  INFO("flight " << flight_number << " byte " << at << " bit " << bit);
  if (dials.handshake.done()) REQUIRE(dials.handshake.peer().id == fixture.accepts.id());
  if (accepts.handshake.done()) {
    REQUIRE(accepts.handshake.peer().id == fixture.dials.id());
    REQUIRE(dials.handshake.done());
    REQUIRE(accepts.handshake.exported("a").equals(dials.handshake.exported("a").bytes()));
  } else if (!of_a_length) {
    REQUIRE((dials.error || accepts.error));
  }
}

void flip_everything(const Fixture& fixture) {
  Side dials(dialler, fixture.dials, fixture.authority), accepts(acceptor, fixture.accepts, fixture.authority);
  const Flights flights = run(dials, accepts);
  REQUIRE((dials.handshake.done() && accepts.handshake.done()));
  for (size_t number = 0; number < flights.size(); ++number) {
    // A flight with signatures of EC may be some bytes longer or shorter the next time.
    for (size_t at = 0; at < flights[number].size(); ++at)
      require_safe(fixture, number, at, static_cast<int>((at * 5 + number) % 8));
  }
}

TEST_CASE("damage__one_bit_of_each_byte_between_two_keys__noticed_or_without_effect") { flip_everything({}); }

TEST_CASE("damage__one_bit_of_each_byte_between_certificates__noticed_or_without_effect") {
  const Facility facility("Facility");
  const Issued dials = facility.issue(), accepts = facility.issue();
  flip_everything({identity_of(dials.certificate_pem(), dials.key_pem()), identity_of(accepts.certificate_pem(), accepts.key_pem()),
                   authority_of(facility.pem())});
}

TEST_CASE("damage__the_last_flight_changed__the_dialler_hears_of_it_after_its_end") {
  const Fixture fixture;
  Side dials(dialler, fixture.dials), accepts(acceptor, fixture.accepts);
  static_cast<void>(run(dials, accepts, [](size_t number, std::vector<std::byte>& flight) {
    if (number == 2) flight.back() ^= std::byte{1};
  }));
  CHECK(accepts.refused_with(ErrorKind::authentication, "the handshake was changed on the way"));
  CHECK(dials.refused_with(ErrorKind::authentication, "the peer says that the handshake was changed on the way"));
}

TEST_CASE("damage__a_flight_cut_at_any_byte__nobody_is_done_too_early") {
  const Fixture fixture;
  Side dials(dialler, fixture.dials), accepts(acceptor, fixture.accepts);
  const Flights flights = run(dials, accepts);
  REQUIRE(flights.size() == 3);
  for (size_t number = 0; number < flights.size(); ++number) {
    for (size_t keep = 0; keep < flights[number].size(); keep += 7) {
      Side first(dialler, fixture.dials), second(acceptor, fixture.accepts);
      static_cast<void>(run(first, second, [&](size_t each, std::vector<std::byte>& flight) {
        if (each == number) flight.resize(std::min(keep, flight.size()));
      }));
      REQUIRE_FALSE(second.handshake.done());
      REQUIRE(first.handshake.done() == (number == 2));
      REQUIRE_FALSE(first.error);
      REQUIRE_FALSE(second.error);  // it waits for the rest
    }
  }
}

TEST_CASE("damage__flights_doubled_or_swapped_or_with_bytes_between__never_done_with_another_secret") {
  const Fixture fixture;
  const std::byte extra{0x17};
  for (int how = 0; how < 4; ++how) {
    for (size_t number = 0; number < 3; ++number) {
      Side dials(dialler, fixture.dials), accepts(acceptor, fixture.accepts);
      static_cast<void>(run(dials, accepts, [&](size_t each, std::vector<std::byte>& flight) {
        if (each != number) return;
        const std::vector<std::byte> copy = flight;
        if (how == 0) flight.insert(flight.end(), copy.begin(), copy.end());
        if (how == 1) std::reverse(flight.begin(), flight.end());
        if (how == 2) flight.insert(flight.begin() + static_cast<long>(flight.size() / 2), extra);
        if (how == 3) flight.erase(flight.begin() + static_cast<long>(flight.size() / 2));
      }));
      INFO(how << " " << number);
      const bool both = dials.handshake.done() && accepts.handshake.done();
      CHECK_FALSE(both);
    }
  }
}

}  // namespace
}  // namespace ccixfer::trust
