#include "transports/connection/state.h"

#include <array>
#include <cstddef>
#include <initializer_list>

namespace ccixfer::connection {
namespace {

constexpr uint32_t states(std::initializer_list<State> list) {
  uint32_t set = 0;
  for (const State state : list) set |= 1u << static_cast<unsigned>(state);
  return set;
}

struct Row {
  const char* name;
  uint32_t next;  // states that may follow
};

constexpr std::array<Row, states_count> table = {{
    {"dialling", states({State::hello_sent, State::gone})},
    {"hello_sent", states({State::awaiting_accept, State::lingering, State::gone})},
    {"awaiting_accept", states({State::open, State::lingering, State::gone})},
    {"awaiting_hello", states({State::requested, State::lingering, State::gone})},
    {"requested", states({State::accepting, State::lingering, State::gone})},
    {"accepting", states({State::open, State::closing, State::lingering, State::gone})},
    {"open", states({State::closing, State::lingering, State::gone})},
    {"closing", states({State::lingering, State::gone})},
    {"lingering", states({State::gone})},
    {"gone", 0},
}};

}  // namespace

bool may_follow(State from, State to) {
  return (table[static_cast<std::size_t>(from)].next & (1u << static_cast<unsigned>(to))) != 0;
}
const char* to_string(State state) { return table[static_cast<std::size_t>(state)].name; }

}  // namespace ccixfer::connection
