// Every bound of the stream transport, by name. Those that an application may set are in ports::TransportOptions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"
#include "core/wire/frame.h"

namespace ccixfer::stream {

inline constexpr uint32_t max_send_offered_bytes = 8192;

// Work of one connection in one turn: after that the others have theirs.
inline constexpr size_t receive_budget_bytes = 1u << 20;
inline constexpr size_t send_budget_bytes = 1u << 20;

// A chunk is what its network moves in chunk_time, as far as it is known; within chunk_bytes_min and wire::chunk_bytes_max. The
// fewer there are, the fewer times somebody is woken up for one; and a message waits for one chunk.
inline constexpr Duration chunk_time = std::chrono::milliseconds(1);
inline constexpr uint64_t chunk_bytes_min = 260u << 10;

// What is put together for one system call. A message waits for the chunk before it and no other.
inline constexpr size_t batch_items_max = 32;
inline constexpr size_t batch_refill_below_bytes = 64u << 10;
inline constexpr size_t batch_messages_bytes_max = 64u << 10;
inline constexpr size_t batch_control_bytes_max = 4u << 10;
inline constexpr size_t batch_control_kept_bytes_max = 16u << 10;
inline constexpr size_t batches_kept_max = 16;

// Bytes behind a payload that one receive may take along: small, as what is behind bulk data is copied once more.
inline constexpr size_t staging_behind_bulk_bytes = 4u << 10;
inline constexpr size_t staging_between_bytes = 512;  // and between two payloads that go into splice pipes
inline constexpr size_t staging_bytes = 32u << 10;
inline constexpr size_t splice_pipe_bytes_min = 16u << 10;  // less is copied, where it is not the rest of more
inline constexpr size_t discard_bytes = 64u << 10;

// Frames of a handshake that are not full. A flight has one, its last; each frame costs a step of TLS, and comes before any proof.
inline constexpr uint32_t handshake_short_frames_max = 8;

inline constexpr size_t hints_waiting_max = 1024;  // of a connection, that could not go out yet; beyond: lost

// Memory that was lent to the network and is wanted back: how often it is asked what the peer has acknowledged, how long a peer may
// acknowledge nothing, and how long it may all take; then the stream is reset, and the memory free.
inline constexpr Duration lent_look_interval = std::chrono::milliseconds(2);
inline constexpr Duration lent_stall_max = std::chrono::seconds(2);
inline constexpr Duration lent_wait_max = std::chrono::seconds(10);
inline constexpr size_t lent_reads_max = 512;  // ended reads of a connection with bytes not acknowledged; beyond: copied

}  // namespace ccixfer::stream
