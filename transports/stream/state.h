// The life of one connection, and which frames may come in which state. Everything else is the peer's fault: counted, and the
// connection ends with a reason.
#pragma once
#include <cstdint>

#include "core/wire/frame.h"

namespace ccixfer::stream {

enum class State : uint8_t {
  dialling,         // dialler: the network connects
  hello_sent,       // dialler: hello is out
  awaiting_accept,  // dialler: hello_reply came; the peer's application decides
  awaiting_hello,   // acceptor: nothing valid came yet
  requested,        // acceptor: our application decides
  accepting,        // acceptor: connect_accept is out; connect_ack awaited
  open,
  closing,   // our application disconnected: what was sent before is being delivered, then bye goes out
  draining,  // over: our last frame goes out, then we wait for the peer to close; what comes is thrown away
  gone,
};
inline constexpr uint8_t states_count = 10;

[[nodiscard]] bool frame_allowed(State state, wire::Kind kind);
[[nodiscard]] bool may_follow(State from, State to);
[[nodiscard]] const char* to_string(State state);

}  // namespace ccixfer::stream
