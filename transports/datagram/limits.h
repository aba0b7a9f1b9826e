// Every bound of the datagram transport, by name. Those that an application may set are in ports::TransportOptions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::datagram {

// The most that an end takes in a datagram. The floor keeps max_send_bytes above ports::max_send_bytes_floor.
inline constexpr uint32_t datagram_bytes_min = 1472;  // Ethernet's 1,500 less IPv4 and UDP
inline constexpr uint32_t datagram_bytes_max = 8972;  // jumbo frames
// Where the path is not known, a connection's packets have at most this length until probes have shown that longer ones pass. A
// hello is padded to it: no answer to an unvalidated address is longer, and a path that does not carry it carries no hello.
inline constexpr uint32_t packet_bytes_base = 1200;
inline constexpr size_t hello_bytes_min = packet_bytes_base;
// What is too long for a packet as the path is now (a message, or a chunk of before) goes in parts of this length. At most 9 of
// them.
inline constexpr uint32_t part_bytes = 1024;
[[nodiscard]] constexpr uint32_t parts_of(uint32_t bytes) { return (bytes + part_bytes - 1) / part_bytes; }
// The bits of all parts, of which the first is bit 0.
[[nodiscard]] constexpr uint32_t all_parts(uint32_t parts) { return (1u << parts) - 1; }
static_assert(parts_of(datagram_bytes_max) <= 9);

inline constexpr Duration cookie_life = std::chrono::seconds(15);
inline constexpr size_t hellos_remembered_max = 4096;  // of connections that ended: a late copy of a hello opens nothing
inline constexpr Duration hello_pause_first = std::chrono::milliseconds(250);
inline constexpr Duration hello_pause_max = std::chrono::seconds(2);
inline constexpr uint32_t hello_attempts_remembered = 16;

// A peer that is perhaps at another address than it was.
inline constexpr uint32_t path_challenges_max = 5;    // that go there without an answer; the pauses are those of hellos
inline constexpr uint32_t unproved_bytes_factor = 3;  // of what came from there may go there: RFC 9000, 8.1
inline constexpr Duration path_check_pause = std::chrono::seconds(1);  // after a check that found nothing new

// Work of one connection in one turn: after that the others have theirs.
inline constexpr uint32_t send_budget_datagrams = 256;
inline constexpr uint32_t burst_datagrams_least = 16;  // that the pacer lets go at once, after a pause
inline constexpr uint32_t burst_datagrams_most = 64;   // on a fast path: a batch of the network

inline constexpr uint32_t messages_window_max = 1024;  // numbers of one connection in flight, whatever was negotiated
inline constexpr uint32_t chunks_window = 4096;        // of one RMA operation in flight, from the first one missing
inline constexpr size_t held_bytes_max = 16u << 20;    // messages that came before their turn, all connections together
inline constexpr size_t held_bytes_of_one_max = held_bytes_max / 16;  // of one of them
inline constexpr uint32_t operation_slots_max = 1u << 16;

// A connection on which nothing has been under way for so long rests: it keeps numbers and no machines. Congestion control begins
// anew then (RFC 5681, 4.1, asks for that after one timeout), but for what a PathMemory recalls.
inline constexpr Duration rest_after = std::chrono::seconds(10);

// receiver_not_ready: sent again after a pause that doubles.
inline constexpr Duration retry_pause_first = std::chrono::milliseconds(1);
inline constexpr Duration retry_pause_max = std::chrono::milliseconds(50);

// Connections of groups of one endpoint, and what each that receives remembers: senders, and numbers of each.
inline constexpr size_t groups_max = 64;
inline constexpr size_t group_senders_max = 64;
inline constexpr size_t group_numbers_window = 256;

inline constexpr size_t hints_outstanding_max = 1024;  // of a connection, not acknowledged yet; beyond: lost
inline constexpr uint32_t end_notices = 3;             // of an endpoint that is destroyed: nobody will repeat them

}  // namespace ccixfer::datagram
