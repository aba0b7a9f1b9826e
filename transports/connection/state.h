// The life of one connection, on every transport.
#pragma once
#include <cstdint>

namespace ccixfer::connection {

enum class State : uint8_t {
  dialling,         // dialler: the network connects, or looks the name up
  hello_sent,       // dialler: hello is out
  awaiting_accept,  // dialler: hello_reply came; the peer's application decides
  awaiting_hello,   // acceptor on a network with streams: nothing valid has come yet
  requested,        // acceptor: our application decides
  accepting,        // acceptor: accept is out; the dialler's acknowledgement is awaited
  open,
  closing,    // our application disconnected: what was sent before is being delivered, then goodbye goes out
  lingering,  // over: our last frame goes out; what comes is discarded
  gone,       // its slot is removed at the end of the turn
};
inline constexpr uint8_t states_count = 10;

[[nodiscard]] bool may_follow(State from, State to);
[[nodiscard]] const char* to_string(State state);

// Operations are taken, and what the peer began is served.
[[nodiscard]] constexpr bool is_established(State state) {
  return state == State::accepting || state == State::open || state == State::closing;
}
// The dial has not ended.
[[nodiscard]] constexpr bool is_dialling(State state) {
  return state == State::dialling || state == State::hello_sent || state == State::awaiting_accept;
}
// Nobody has decided whether we want it.
[[nodiscard]] constexpr bool is_pending(State state) { return state == State::awaiting_hello || state == State::requested; }

}  // namespace ccixfer::connection
