// The numbers of the session wire that the encoder and the decoder of messages.h share.
#pragma once
#include <cstddef>
#include <cstdint>

#include "app/session/limits.h"

namespace ccixfer::session {

inline constexpr size_t message_header_bytes = 12;  // kind u8, flags u8, length u16, sequence u64
inline constexpr size_t message_length_at = 2;
inline constexpr size_t message_check_bytes = 4;
inline constexpr size_t message_payload_bytes_max = session_message_bytes_max - message_header_bytes - message_check_bytes;

inline constexpr size_t open_part_head_bytes = 4 + 4 + 2;  // total, offset, length
inline constexpr size_t open_part_bytes_max = message_payload_bytes_max - open_part_head_bytes;
inline constexpr size_t handshake_part_bytes_max = message_payload_bytes_max - 2;
inline constexpr size_t answer_runs_max = (message_payload_bytes_max - 10) / 5;
inline constexpr size_t want_ranges_max = (message_payload_bytes_max - 10) / 16;
inline constexpr size_t file_results_max = (message_payload_bytes_max - 2) / 13;
inline constexpr size_t itemized_runs_max = (message_payload_bytes_max - 10) / 6;
inline constexpr size_t compare_hashes_max = (message_payload_bytes_max - 26) / 16;
inline constexpr size_t deletion_names_bytes_max = message_payload_bytes_max - 26;
inline constexpr size_t deletion_name_head_bytes = 3;
inline constexpr size_t to_read_head_bytes = 39;  // of one file, before its path
inline constexpr size_t to_read_path_bytes_max = message_payload_bytes_max - 2 - to_read_head_bytes;
inline constexpr size_t give_runs_max = (message_payload_bytes_max - 2) / 12;
inline constexpr size_t placed_hashes_max = (message_payload_bytes_max - 18) / 16;
inline constexpr size_t place_reason_bytes_max = 512;
inline constexpr size_t abort_message_bytes_max = 512;

// Hello: magic u32, version u16, direction u8, flags u8, transfer 16 bytes, session u64, lane u16, TLVs (u16 length of the list,
// then the list), check u32.
inline constexpr uint32_t hello_magic = 0x48465843;  // "CXFH"
inline constexpr uint8_t hello_flag_sealed = 1;
inline constexpr uint8_t hello_flag_moves = 2;
inline constexpr uint16_t hello_tlv_proof = 0x8000 | 1;  // dial u64, proof 32 bytes; whoever does not know it cannot judge the lane
inline constexpr size_t hello_proof_bytes = 32;
inline constexpr uint16_t hello_tlv_early = 2;  // of each message: length u16, and its bytes

// A file has fewer pieces than that, whatever its size: no sum of piece numbers wraps.
inline constexpr uint64_t pieces_per_file_max = (~uint64_t{0} / piece_bytes) + 1;
[[nodiscard]] constexpr bool is_piece_range(uint64_t first, uint64_t count) {
  return count > 0 && count <= pieces_per_file_max && first <= pieces_per_file_max - count;
}

}  // namespace ccixfer::session
