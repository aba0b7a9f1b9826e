// Every bound of a session in one place, with units in the names.
#pragma once
#include <cstdint>

namespace ccixfer::session {

inline constexpr uint32_t piece_bytes = 4u << 20;      // a file is cut at these offsets, whatever the lanes
inline constexpr uint32_t segment_slack_bytes = 4096;  // trailer (and later the seal's tag) behind the data
inline constexpr uint32_t segment_bytes_max = piece_bytes + segment_slack_bytes;
inline constexpr uint32_t small_file_bytes_max = piece_bytes;  // such a file travels whole in a pack
inline constexpr uint32_t entries_segment_bytes = 64u << 10;   // an entries segment is closed beyond this ...
inline constexpr uint32_t entries_per_segment_max = 1024;      // ... or at this many entries
inline constexpr uint32_t pack_files_max = 1024;
inline constexpr uint32_t entries_outstanding_max = 32768;  // sent and not yet finished: bounds both ends' memory
// Of entries segments: a source keeps those that are not answered, a destination those that came
// ahead of their turn.
inline constexpr uint32_t entries_unanswered_bytes_max = 64u << 20;
inline constexpr uint32_t session_message_bytes_max = 1024;  // fits the smallest max_send_bytes, routed too
inline constexpr uint32_t path_bytes_max = 4096;
inline constexpr uint32_t name_bytes_max = 255;
inline constexpr uint32_t open_bytes_max = 64u << 10;       // an acceptor keeps it for every session that waits for its turn
inline constexpr uint32_t entry_tlv_bytes_max = 48u << 10;  // so that the longest entry fits an empty entries segment
inline constexpr uint8_t compress_level_max = 19;
inline constexpr uint32_t lanes_max = 1024;
inline constexpr uint32_t stripes = 1024;             // W: mailboxes of a lane session
inline constexpr uint32_t compared_pieces_max = 256;  // named by Compare with their hashes, and not answered, in a session
inline constexpr uint32_t control_messages_queued_max = 4096;
inline constexpr uint32_t control_messages_reserve = 64;  // beyond the queue's bound, for Abort, End and the like
inline constexpr uint32_t control_messages_in_flight_max = 64;
inline constexpr uint32_t control_messages_ahead_max = 2 * control_messages_in_flight_max;  // held by a receiver until a gap closes
inline constexpr uint32_t lane_messages_queued_max = 64;  // of one lane, waiting for room in its connection
inline constexpr uint32_t accepts_pending_max = 256;      // accepted, and the peer has not confirmed yet
inline constexpr uint32_t unlisted_named_max = 32;        // the others are only counted
inline constexpr uint32_t unlisted_path_bytes_max = 640;
inline constexpr uint32_t unlisted_reason_bytes_max = 200;
inline constexpr uint32_t reject_reason_bytes_max = 200;
inline constexpr uint32_t hello_early_bytes_max = 960;  // of first words in connect data, which has 1,024 bytes at most
inline constexpr uint16_t session_version = 3;

}  // namespace ccixfer::session
