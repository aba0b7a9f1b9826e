#include "transports/stream/state.h"

#include <array>
#include <initializer_list>

namespace ccixfer::stream {
namespace {

using wire::Kind;

constexpr uint32_t kinds(std::initializer_list<Kind> list) {
  uint32_t set = 0;
  for (const Kind kind : list) set |= 1u << static_cast<unsigned>(kind);
  return set;
}
constexpr uint32_t states(std::initializer_list<State> list) {
  uint32_t set = 0;
  for (const State state : list) set |= 1u << static_cast<unsigned>(state);
  return set;
}

constexpr uint32_t alive = kinds({Kind::keepalive, Kind::keepalive_ack, Kind::bye});
constexpr uint32_t data = kinds({Kind::message, Kind::message_ack, Kind::rma_write, Kind::rma_write_ack, Kind::rma_read,
                                 Kind::rma_read_data, Kind::rma_read_end, Kind::mailbox_hint});

struct Row {
  const char* name;
  uint32_t frames;  // that may come
  uint32_t next;    // states that may follow
};

constexpr std::array<Row, states_count> table = {{
    {"dialling", 0, states({State::hello_sent, State::gone})},
    {"hello_sent", kinds({Kind::hello_reply}), states({State::awaiting_accept, State::draining, State::gone})},
    {"awaiting_accept", alive | kinds({Kind::connect_accept, Kind::connect_reject}),
     states({State::open, State::draining, State::gone})},
    {"awaiting_hello", kinds({Kind::hello}), states({State::requested, State::draining, State::gone})},
    {"requested", alive, states({State::accepting, State::draining, State::gone})},
    {"accepting", alive | kinds({Kind::connect_ack}), states({State::open, State::closing, State::draining, State::gone})},
    {"open", alive | data, states({State::closing, State::draining, State::gone})},
    // A disconnect may overtake the connect_ack.
    {"closing", alive | data | kinds({Kind::connect_ack}), states({State::draining, State::gone})},
    {"draining", 0, states({State::gone})},
    {"gone", 0, 0},
}};

}  // namespace

bool frame_allowed(State state, Kind kind) {
  return (table[static_cast<size_t>(state)].frames & (1u << static_cast<unsigned>(kind))) != 0;
}
bool may_follow(State from, State to) { return (table[static_cast<size_t>(from)].next & (1u << static_cast<unsigned>(to))) != 0; }
const char* to_string(State state) { return table[static_cast<size_t>(state)].name; }

}  // namespace ccixfer::stream
