// Every bound of the RDMA transport, by name. Those that an application may set are in ports::TransportOptions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::rdma {

inline constexpr uint32_t max_send_offered_bytes = 8192;

// Bytes of an RMA operation that travel in a packet: above, the cards move them. A copy of so few costs less than what it takes to
// set a card to work on them. Both ends go by it.
inline constexpr uint32_t inline_bytes_max = 3840;

// Packets that one end may send before the other has said that it has taken some of them. Both begin with credits_first: enough for
// a greeting, and all that somebody who says nothing ever takes of the shared receive queue.
inline constexpr uint16_t credits_first = 4;
inline constexpr uint16_t credits_max = 64;
inline constexpr uint32_t credits_held_max = 4096;  // more than any end gives: the peer counts wrongly

// Work of one connection in one turn: after that the others have theirs.
inline constexpr size_t packets_per_turn_max = 64;

// A large operation goes in pieces, some of them under way at a time: a packet behind them waits for those that are written.
inline constexpr uint32_t piece_bytes_max = 512u << 10;
inline constexpr uint32_t pieces_in_flight_max = 8;

// Memory in which pieces wait whose own place no card knows. It is made with the first of them.
inline constexpr uint32_t staging_slots = 8;

inline constexpr size_t hints_waiting_max = 1024;     // of a connection, that could not go out yet; beyond: lost
inline constexpr size_t waiting_diallers_max = 1024;  // while no more connections may be undecided; beyond: refused

// How long a card may take to let go of memory that its owner takes back this instant; then its connection is broken instead.
inline constexpr Duration withdraw_wait_max = std::chrono::milliseconds(20);
// And how long all goodbyes together may take to leave when a transport is destroyed.
inline constexpr Duration last_words_wait_max = std::chrono::milliseconds(50);

}  // namespace ccixfer::rdma
