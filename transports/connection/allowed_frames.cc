#include "transports/connection/allowed_frames.h"

#include <array>
#include <initializer_list>

namespace ccixfer::connection {
namespace {

using wire::Kind;

constexpr uint32_t kinds(std::initializer_list<Kind> list) {
  uint32_t set = 0;
  for (const Kind kind : list) set |= 1u << static_cast<unsigned>(kind);
  return set;
}

constexpr uint32_t alive = kinds({Kind::keepalive, Kind::keepalive_ack, Kind::bye});
constexpr uint32_t data = kinds({Kind::message, Kind::message_ack, Kind::rma_write, Kind::rma_write_ack, Kind::rma_read,
                                 Kind::rma_read_data, Kind::rma_read_end, Kind::mailbox_hint});

constexpr std::array<uint32_t, states_count> table = {
    0,                                                            // dialling
    kinds({Kind::hello_reply, Kind::handshake}),                  // hello_sent
    alive | kinds({Kind::connect_accept, Kind::connect_reject}),  // awaiting_accept
    kinds({Kind::hello, Kind::handshake}),                        // awaiting_hello
    alive,                                                        // requested
    alive | kinds({Kind::connect_ack}),                           // accepting
    alive | data,                                                 // open
    alive | data | kinds({Kind::connect_ack}),                    // closing: a disconnect may overtake the connect_ack
    0,                                                            // lingering
    0,                                                            // gone
};

}  // namespace

bool frame_allowed(State state, Kind kind) {
  return (table[static_cast<size_t>(state)] & (1u << static_cast<unsigned>(kind))) != 0;
}

}  // namespace ccixfer::connection
