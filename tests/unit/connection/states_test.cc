// The life of a connection as a table: which state may follow which.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "transports/connection/state.h"

namespace ccixfer::connection {
namespace {

// Written by the rules of transports/connection/README.md and state.h, not row by row, so that it is not the table again.
bool expected(State from, State to) {
  switch (to) {
    case State::dialling:
    case State::awaiting_hello:
      return false;         // how a connection begins, at the dialler's and at the acceptor's
    case State::requested:  // or with it, where a hello is one datagram
      return from == State::awaiting_hello;
    case State::hello_sent:
      return from == State::dialling;
    case State::awaiting_accept:
      return from == State::hello_sent;
    case State::accepting:
      return from == State::requested;
    case State::open:
      return from == State::awaiting_accept || from == State::accepting;
    case State::closing:  // only what may have something to deliver
      return from == State::open || from == State::accepting;
    case State::lingering:  // somebody is there to be told
      return from != State::dialling && from != State::lingering && from != State::gone;
    case State::gone:
      return from != State::gone;
  }
  return false;
}

TEST_CASE("states__table__only_forward_and_every_state_ends") {
  std::set<std::string> names;
  for (uint8_t from = 0; from < states_count; ++from) {
    const auto state = static_cast<State>(from);
    CAPTURE(to_string(state));
    names.insert(to_string(state));
    for (uint8_t to = 0; to < states_count; ++to) {
      const auto next = static_cast<State>(to);
      CAPTURE(to_string(next));
      REQUIRE(may_follow(state, next) == expected(state, next));
      // Nobody goes back: whatever follows stands further down, so that every life is short.
      if (may_follow(state, next)) REQUIRE(to > from);
    }
  }
  REQUIRE(names.size() == states_count);
}

}  // namespace
}  // namespace ccixfer::connection
